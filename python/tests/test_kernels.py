"""Joining kernels to ops: launches by correlation id, ops by marks, plain to recorded iteration by order or name."""
from typing import List

from forerun.kernels import OP_MARK, PHASE_MARK, RECORDED_MARK, Event, kernels_of, match, profile_fields, unmatched


def launch(correlation: int, start: int, thread: int = 1) -> Event:
    return Event("cudaLaunchKernel", False, start, 5, correlation, thread, 0)


def kernel(name: str, correlation: int, start: int, duration: int = 100) -> Event:
    return Event(name, True, start, duration, correlation, 0, 7)


def mark(name: str, start: int, duration: int = 0) -> Event:
    return Event(name, False, start, duration, 10_000 + start, 1, 0)


def iteration(at: int, names: List[str], first_correlation: int) -> List[Event]:
    events = []
    for number, name in enumerate(names):
        events.append(launch(first_correlation + number, at + 20 * number + 2))
        events.append(kernel(name, first_correlation + number, at + 1000 + 150 * number))
    return events


def two_iterations(plain: List[str], recorded: List[str]) -> List[Event]:
    events = [
        mark(PHASE_MARK + "u", 90),
        mark(PHASE_MARK + "f", 100),
        mark(PHASE_MARK + "b", 300),
        mark(PHASE_MARK + "u", 400),
        mark(PHASE_MARK + "end", 500),
        Event("cudaDeviceSynchronize", False, 510, 900, 77, 1, 0),
        mark(RECORDED_MARK, 50_000),
    ]
    events += iteration(100, plain, 1)
    events += iteration(60_000, recorded, 101)
    events += [mark(f"{OP_MARK}{number}", 60_000 + 20 * number, 10) for number in range(len(recorded))]
    return events


def test_kernels_take_the_ops_of_their_recorded_counterparts() -> None:
    fields = profile_fields(two_iterations(["gemm", "add", "gemm"], ["gemm", "add", "gemm"]))
    assert fields["profile"]["aligned"]
    assert fields["kernels"]["op"] == [0, 1, 2]
    assert [fields["kernel_names"][index] for index in fields["kernels"]["name"]] == ["gemm", "add", "gemm"]
    assert unmatched(fields) == 0


def test_times_are_differences_that_sum_up() -> None:
    kernels = profile_fields(two_iterations(["a", "b"], ["a", "b"]))["kernels"]
    assert kernels["start"] == [1000, 150] and kernels["launch"] == [2, 20] and kernels["ns"] == [100, 100]


def test_a_kernel_that_only_one_iteration_ran_has_no_op() -> None:
    fields = profile_fields(two_iterations(["gemm", "extra", "gemm"], ["gemm", "gemm"]))
    assert not fields["profile"]["aligned"]
    assert fields["kernels"]["op"] == [0, -1, 1]
    assert unmatched(fields) == 100 / 300


def test_another_kernel_in_the_same_place_has_the_same_op() -> None:
    assert match(["a", "vectorized", "b", "c"], ["a", "unrolled", "b", "c"], [0, 1, 2, 3]) == ([0, 1, 2, 3], False)
    assert match(["a", "x", "b", "y", "z", "c"], ["a", "p", "b", "q", "c"], [0, 1, 2, 3, 4]) == (
        [0, 1, 2, -1, -1, 4],
        False,
    )


def test_kernels_of_several_streams_are_matched_by_launch() -> None:
    events = two_iterations(["gemm", "add"], ["gemm", "add"])
    late = [
        Event(event.name, True, event.start + 500, 100, event.correlation, 0, 8)
        if event.on_gpu and event.correlation == 1
        else event
        for event in events
    ]
    fields = profile_fields(late)  # in the plain iteration "add" overtook "gemm"
    assert fields["profile"]["aligned"]
    assert fields["kernels"]["op"] == [1, 0]
    assert [fields["kernel_names"][index] for index in fields["kernels"]["name"]] == ["add", "gemm"]


def test_a_launch_outside_every_mark_has_no_op() -> None:
    events = [event for event in two_iterations(["a", "b"], ["a", "b"]) if event.name != f"{OP_MARK}1"]
    assert profile_fields(events)["kernels"]["op"] == [0, -1]


def test_annotations_on_the_gpu_are_no_kernels() -> None:
    events = iteration(0, ["a"], 1) + [kernel("Optimizer.step#SGD", 1, 10), kernel("something", 999, 10)]
    assert [found.name for found in kernels_of(events)] == ["a"]


def test_phases_and_waits_are_counted_from_the_forward() -> None:
    profile = profile_fields(two_iterations(["a"], ["a"]))["profile"]
    assert profile["phases"] == {"update": [0.3, 0.4], "forward": [0.0, 0.2], "backward": [0.2, 0.3]}
    assert profile["sync"] == [["cudaDeviceSynchronize", 0.41, 0.9]]


def test_an_op_is_never_given_twice() -> None:
    assert match(["a", "a", "a"], ["a", "a"], [5, 6]) == ([5, 6, -1], False)
    assert match([], ["a"], [5]) == ([], False)
    assert match(["a"], [], []) == ([-1], False)
