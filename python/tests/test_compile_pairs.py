"""Pairs of eager and compiled iterations: what needs no GPU of measuring them."""
import gzip
import json
import os
import pathlib
import time
from typing import Any, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun import collect, compile_pairs  # noqa: E402
from forerun.compiled_graphs import watch  # noqa: E402
from forerun.setup_pairs import Refused, Work  # noqa: E402

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "examples" / "setups.py")


def test_what_inductor_decides_is_noted() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16))
    torch._dynamo.reset()
    with watch() as watched, torch._inductor.config.patch(fx_graph_cache=False):
        torch.compile(model)(torch.randn(4, 8)).sum().backward()
    assert watched.problems == []
    assert [graph["kind"] for graph in watched.graphs] == ["forward", "backward"]
    forward = watched.graphs[0]
    kinds = [kernel["kind"] for kernel in forward["kernels"]]
    assert kinds.count("extern") == 1 and "reduction" in kinds
    product = forward["kernels"][kinds.index("extern")]
    assert product["call"] == "extern_kernels.addmm"
    names = [forward["targets"][forward["nodes"]["target"][origin]] for origin in product["origins"]]
    assert "aten.addmm.default" in names
    norm = forward["kernels"][kinds.index("reduction")]
    assert norm["extents"] == [4, 16] and norm["bytes"] > 0
    shape = forward["shapes"][forward["nodes"]["shape"][product["origins"][names.index("aten.addmm.default")]]]
    assert shape == [4, 16]


def _measures(name: str, turn: Any, results: Any) -> None:
    turn.take()
    if name == "dies":
        os._exit(9)
    results.put(gzip.compress(json.dumps({"name": name}).encode()))
    turn.end()


def test_a_process_that_dies_in_its_turn_gives_it_back(monkeypatch: Any) -> None:
    monkeypatch.setattr(compile_pairs, "in_process", lambda file, name, mode, turn, out: _measures(name, turn, out))
    rows = dict(compile_pairs.pairs("", ["dies", "first", "second"], "default", 1, time.monotonic() + 300))
    assert rows["dies"] == "its process ended with exit code 9"
    assert [json.loads(gzip.decompress(rows[name])) for name in ("first", "second")] == [
        {"name": "first"}, {"name": "second"}]


def _counts(count: Any, results: Any) -> None:
    while True:
        count.value += 1
        time.sleep(0.001)


def _holds(quiet: Any, count: Any, results: Any) -> None:
    with quiet.hold():
        time.sleep(0.1)
        before = count.value
        time.sleep(0.3)
        after = count.value
    while count.value == after:
        time.sleep(0.01)
    results.put((before, after))


def _dies_while_it_holds(quiet: Any, results: Any) -> None:
    with quiet.hold():
        os._exit(3)


def test_the_others_stand_still_while_one_is_timed() -> None:
    count: Any = Work.processes.Value("i", 0)
    quiet = compile_pairs.Quiet()
    other = Work(_counts, (count,))
    while count.value == 0:
        time.sleep(0.01)
    holder = Work(_holds, (quiet, count))
    found = None
    while found is None:
        found = holder.found(1)
    assert found[0] == found[1]
    dying = Work(_dies_while_it_holds, (quiet,))
    while dying.found(1) is None:
        pass
    quiet.end_of(dying.id)
    with quiet.broken() as may_begin:
        assert may_begin
    stood = count.value
    while count.value == stood:  # it runs again
        time.sleep(0.01)
    other.kill()


def test_nothing_begins_when_no_time_is_left() -> None:
    rows = dict(compile_pairs.pairs("", ["late"], "default", 1, time.monotonic()))
    assert rows == {"late": "not begun: no time was left"}
    turn = compile_pairs.Turn(
        Work.processes.Semaphore(1), Work.processes.Value("i", 0), compile_pairs.Quiet(), time.monotonic())
    with pytest.raises(Refused, match="no time was left"):
        turn.take()


def test_each_graph_of_the_first_iteration_runs_in_a_turn_of_its_own(monkeypatch: Any) -> None:
    from torch._inductor.output_code import CompiledFxGraph

    turn = compile_pairs.Turn(
        Work.processes.Semaphore(1), Work.processes.Value("i", 0), compile_pairs.Quiet(), time.monotonic() + 300)
    seen: List[bool] = []
    monkeypatch.setattr(CompiledFxGraph, "__call__", lambda graph, inputs: seen.append(turn.taken))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    undo = turn.guard()
    for _ in range(2):
        CompiledFxGraph.__call__(None, [])
        assert not turn.taken, "others may have theirs while the next graph is compiled"
    undo()
    CompiledFxGraph.__call__(None, [])
    assert seen == [True, True, False]


def test_what_is_recorded_is_skipped(tmp_path: Any, capsys: Any) -> None:
    earlier = tmp_path / "earlier.jsonl.gz"
    earlier.write_bytes(b"".join(gzip.compress(json.dumps({"name": name}).encode() + b"\n") for name in ("images",)))
    given = [EXAMPLE, "-o", str(tmp_path / "pairs.jsonl.gz")]
    assert compile_pairs.left_of(compile_pairs.parse([*given, "--skip", str(earlier)])) == ["tokens"]
    assert compile_pairs.left_of(compile_pairs.parse([*given, "--backwards"])) == ["tokens", "images"]
    assert compile_pairs.main([EXAMPLE, "nobody", "-o", given[2]]) == 1
    assert "no set-up nobody; there are images, tokens" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert compile_pairs.main(given) == 1
        assert "no CUDA GPU" in capsys.readouterr().err


def test_collect_hands_over(monkeypatch: Any, tmp_path: pathlib.Path) -> None:
    given: Any = []
    monkeypatch.setattr(compile_pairs, "main", lambda words: given.append(words) or 0)
    words = ["--compile=reduce-overhead", "--setups", EXAMPLE, "--out", str(tmp_path / "mine"), "--minutes", "3"]
    file = str(tmp_path / "mine" / collect.PAIRS)
    assert collect.main(words) == 0
    pathlib.Path(file).touch()
    assert collect.main(words) == 0
    first = [EXAMPLE, "-o", file, "--mode", "reduce-overhead", "--minutes", "3.0"]
    assert given == [first, [*first, "--skip", file]]
    for wrong in (["--compile", "--out", "x"], ["--setups", EXAMPLE, "--out", "x"], [*words, "--families", "vit"]):
        with pytest.raises(SystemExit):
            collect.main(wrong)
