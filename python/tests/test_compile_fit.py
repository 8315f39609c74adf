"""Constants of compiled iterations: fitted to samples made of known ones, and never to what is kept aside."""
import json
import math
import pathlib
from typing import Any, Dict, List

import pytest

from forerun import compile_fit


def elements_of(number: int, size: int) -> int:
    return size // (4 if number % 2 else 32)  # not as the bytes are, or one could not be told from the other


def pair(name: str, took_us: List[float], sizes: List[int], drawn: int = 0) -> Dict[str, Any]:
    """A pair with one forward graph of pointwise kernels, a node each; the last `drawn` of them draw random numbers."""
    names = [f"triton_poi_fused_add_{number}" for number in range(len(sizes))]
    record = {"time_ms": {"pipelined_median": 2.0}, "mem": {"peak_allocated": 100, "peak_reserved": 200},
              "kernel_names": names,
              "kernels": {"name": list(range(len(sizes))), "ns": [1000 * took for took in took_us]}}
    targets = [int(number >= len(sizes) - drawn) for number in range(len(sizes))]
    graph = {"kind": "forward", "targets": ["aten.add.Tensor", "prims.inductor_random.default"],
             "nodes": {"target": targets, "reads": [[] for _ in targets]},
             "kernels": [{"kind": "pointwise", "bytes": 1, "outputs": [f"buf{number}"], "origins": [number]}
                         for number in range(len(sizes))],
             "generated": [{"name": kernel, "bytes": size, "buffers": [f"op{number}"], "counts": [1, 1, 0],
                            "extents": {"x": elements_of(number, size), "r0_": 1}}
                           for number, (kernel, size) in enumerate(zip(names, sizes))]}
    return {"name": name, "mode": "default", "graphs": [graph], "compiled": {**record, "first_s": 20.0, "counted": {}},
            "eager": {**record, "status": "ok"}}


def test_kernels_have_a_fixed_time_a_share_of_the_bandwidth_and_arithmetic() -> None:
    sizes = [2 ** power for power in range(10, 30)] * 2
    moving = [size / (0.8 * compile_fit.H200_BYTES_PER_US) for size in sizes]
    drawing = [4e-6 * elements_of(number, size) if number >= 20 else 0.0 for number, size in enumerate(sizes)]
    took = [1.5 + math.hypot(*both) for both in zip(moving, drawing)]
    wrong = [100.0 for _ in sizes]
    rows = [pair("learned/a", took, sizes, drawn=20), pair("judged/b", wrong, sizes)]
    fitted = compile_fit.fit_kernels(rows)
    assert fitted["kernels"]["pointwise"]["fixed_us"] == pytest.approx(1.5, rel=0.05)
    assert fitted["kernels"]["pointwise"]["bandwidth_share"] == pytest.approx(0.8, rel=0.1)
    assert fitted["arithmetic_ps"]["random"] == pytest.approx(4, rel=0.1)


def test_kernels_that_the_profile_has_in_another_order_are_left_out() -> None:
    row = pair("learned/a", [1.0, 2.0], [10, 20])
    assert [kernel.size for kernel in compile_fit.generated_kernels(row)] == [10, 20]
    row["compiled"]["kernels"]["name"] = [1, 0]
    assert list(compile_fit.generated_kernels(row)) == []


def test_ranges_are_quantiles_and_never_a_point() -> None:
    assert compile_fit.quantiles([1.0, 1.0, 1.0]) == {"low": 0.97, "high": 1.03}
    wide = compile_fit.quantiles([0.5 + number / 100 for number in range(101)])
    assert wide == {"low": 0.55, "high": 1.45}


def test_the_table_is_of_what_is_kept_aside() -> None:
    said = {"iter_ms": 2.0, "compiled": {
        "iter_ms": 2.2, "iter_low_ms": 1.9, "iter_high_ms": 2.3, "gpu_ms": 0.003, "gpu_low_ms": 0.004,
        "gpu_high_ms": 0.005, "kernels": 2, "peak_allocated": 110, "peak_allocated_low": 90,
        "peak_allocated_high": 120, "peak_reserved": 200, "iter_ratio": 1.1}}
    rows = [(pair("learned/a", [1.0, 2.0], [10, 20]), said), (pair("judged/b", [1.0, 2.0], [10, 20]), said)]
    text = compile_fit.table(rows, every=False)
    assert "judged/b" in text and "learned/a" not in text and "+10.0 %" in text
    assert "iteration 1 of 1, GPU time 0 of 1, allocated 1 of 1" in text
    assert "learned/a" in compile_fit.table(rows, every=True)
    assert '"kept_aside": true' in compile_fit.summary([rows[1][0]])


def judged(name: str, measured: float, kept_aside: bool = False) -> Dict[str, Any]:
    figures = {"gpu_ms": 1.0, "iter_ms": 1.0, "peak_allocated": 1.0}
    return {"name": name, "mode": "default", "kept_aside": kept_aside, "bound": "host",
            "measured": {**figures, "gpu_ms": measured}, "predicted": figures}


def test_ranges_hold_for_families_that_were_left_out() -> None:
    alike = [judged(f"family{number}/a", 0.9 + number / 100) for number in range(20)]
    narrow = compile_fit.ranges_of(alike)["gpu"]
    assert narrow["low"] >= 0.9 and narrow["high"] <= 1.09
    # two of twenty set-ups may lie outside; three of one family that is far off may not
    odd = alike[:17] + [judged(f"odd/{number}", 1.5) for number in range(3)]
    wide = compile_fit.ranges_of(odd)["gpu"]
    assert wide["high"] > 1.5 and wide["low"] < 0.9
    assert compile_fit.ranges_of(odd + [judged("judged/c", 9.0, kept_aside=True)])["gpu"] == wide


def test_peaks_of_cuda_graphs_are_those_of_the_whole_run() -> None:
    row = pair("learned/a", [1.0], [10])
    row["compiled"] = {**row["compiled"], "kept_cache_mem": {"peak_allocated": 150, "peak_reserved": 300}}
    assert compile_fit.measured(row)["compiled"]["peak_allocated"] == 100
    assert compile_fit.measured(row)["compiled"]["peak_reserved_kept_cache"] == 300
    assert compile_fit.measured({**row, "mode": "reduce-overhead"})["compiled"]["peak_allocated"] == 150
    graphs = [{**judged(f"family{number}/a", 1.0), "mode": "reduce-overhead"} for number in range(9)]
    assert "allocated" not in compile_fit.ranges_of(graphs) and "captured_allocated" in compile_fit.ranges_of(graphs)


def test_ranges_are_never_made_narrower(tmp_path: pathlib.Path) -> None:
    cases = tmp_path / "eval.json"
    cases.write_text(json.dumps({"cases": [judged(f"family{number}/a", 1.2) for number in range(9)]}))
    constants = tmp_path / "kernels.json"
    known = {name: {"low": 0.5, "high": 1.1} for name in ("gpu", "gpu_bound", "host_bound", "allocated")}
    constants.write_text(json.dumps({"ranges": known, "kernels": 3}))
    assert compile_fit.main(["--ranges", str(cases), "--output", str(constants)]) == 0
    written = json.loads(constants.read_text())
    assert written["ranges"]["allocated"] == {"low": 0.5, "high": 1.1} and written["kernels"] == 3
    assert written["ranges"]["gpu"] == {"low": 0.5, "high": 1.2}


def test_what_was_measured_twice_is_held_against_itself() -> None:
    one, other = pair("learned/a", [1000.0], [10]), pair("learned/a", [1100.0], [10])
    other["eager"] = {**other["eager"], "time_ms": {"pipelined_median": 4.0}}
    text = compile_fit.repeated([one], [other, pair("learned/b", [1.0], [10])])
    assert "GPU time: 9.09 % of 1" in text and "eager: 50.00 % of 1" in text and "gain: 50.0 points of 1" in text
