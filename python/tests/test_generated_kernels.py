"""Kernels that were timed alone: what is read of their code, and constants found again that times were made of."""
import json
import math
import pathlib
from typing import Any, Dict, List

import pytest

from forerun import compile_fit, generated_kernels
from forerun.generated_kernels import calls_of, fitted_host, fitted_kind, fitted_statistics, joined, kernels_of

CODE = """
triton_red_fused_sum_0 = async_compile.triton('triton_red_fused_sum_0', '''
    reduction_hint=ReductionHint.OUTER,
    x = tl_math.exp(tl.load(in_ptr0)) + tl_math.exp(y)
''', device_str='cuda')
triton_poi_fused_add_1 = async_compile.triton('triton_poi_fused_add_1', '''
    tl.atomic_add(out_ptr0, x)
''', device_str='cuda')

    def call(self, args):
        buf0 = extern_kernels.convolution(primals_1, primals_2, stride=(1, 1))
        triton_red_fused_sum_0.run(buf0, buf1, 64, 1000, stream=stream0)
        extern_kernels.mm(buf0, buf1, out=buf2)
        buf3 = torch.ops.aten.convolution_backward.default(buf2, buf1, primals_2)
        triton_poi_fused_add_1.run(buf2, buf4, 4096, stream=stream0)
        return (buf4, )
"""
TIMED = {"kernels": ["cudnn", "triton_red_fused_sum_0", "nvjet", "dgrad", "wgrad", "triton_poi_fused_add_1"],
         "ns": [5000, 2500, 4000, 3000, 3000, 1500], "issued_ms": 0.2}


def test_code_says_what_was_launched() -> None:
    launches, calls = calls_of(CODE)
    assert launches == [("triton_red_fused_sum_0", [64, 1000]), ("triton_poi_fused_add_1", [4096])]
    assert calls == ["convolution", "mm", "aten.convolution_backward.default"]
    row = joined(CODE, [("op0", 256000), ("op1", 32768)], TIMED)
    assert row["calls"] == {"kernel": 2, "library": 1, "attention": 0, "convolution": 1, "convolution_backward": 1}
    table = row["kernels"]
    assert table["kind"] == ["looped", "pointwise"] and table["hint"] == ["OUTER", ""]
    assert table["bytes"] == [256000, 32768] and table["us"] == [2.5, 1.5]
    assert table["functions"][0] == [0, 0, 2, 0] and table["adds"] == [False, True]


def test_bytes_that_do_not_belong_to_the_launches_are_unknown() -> None:
    assert joined(CODE, [("op0", 1)], TIMED)["kernels"]["bytes"] == [-1, -1]
    with pytest.raises(ValueError, match="other kernels"):
        joined(CODE, [], {**TIMED, "kernels": ["triton_poi_fused_add_1"], "ns": [1]})


def test_constants_are_found_again() -> None:
    samples = [(memory, 0.1 * memory, row, 2.0 + math.hypot(1.25 * memory, 0.1 * memory, 0.5 * row))
               for memory in (0.1, 1.0, 5.0, 20.0, 80.0) for row in (0.1, 1.0, 40.0)]
    found = fitted_kind(samples)
    assert found["fixed_us"] == pytest.approx(2.0, rel=0.05)
    assert found["bandwidth_share"] == pytest.approx(0.8, rel=0.05)
    assert found["step_ns"] == pytest.approx(0.5, rel=0.1)


def issued(name: str, counts: List[int], factor: float = 1.0) -> Dict[str, Any]:
    calls = dict(zip(("kernel", "library", "attention", "convolution", "convolution_backward"), counts))
    costs = {"kernel": 10, "library": 30, "attention": 50, "convolution": 40, "convolution_backward": 120}
    took = 60 + sum(costs[kind] * count for kind, count in calls.items())
    return {"name": name, "calls": calls, "issued_ms": factor * took / 1000, "gpu_ms": 0.1, "kernels": {}}


def test_what_is_kept_aside_is_not_fitted_to() -> None:
    counts = ([100, 0, 0, 0, 0], [50, 80, 0, 0, 0], [10, 10, 30, 0, 0], [30, 5, 0, 50, 0], [60, 5, 0, 0, 50],
              [1, 0, 0, 0, 0])
    rows = [issued(f"a/{place}", each) for place, each in enumerate(counts)]
    found = fitted_host([*rows, issued("judged/b", [10, 10, 10, 10, 10], factor=9.0)])
    assert found["kernel"] == pytest.approx(10, rel=0.1)
    assert found["convolution_backward"] == pytest.approx(120, rel=0.1)
    table = {"kind": ["looped"], "extents": [[8, 100]], "bytes": [3200], "hint": ["INNER"], "functions": [[0] * 4],
             "adds": [False], "us": [3.0]}
    both = [{"name": "a/0", "kernels": table}, {"name": "judged/b", "kernels": table}]
    assert len(kernels_of(both, "looped", columns=False)) == 1
    assert kernels_of(both, "looped", columns=True) == []


def test_a_program_s_calls_are_told_apart() -> None:
    compiled = {"pointwise": 3, "reductions": 2, "scatters": 1, "libraries": 9, "library_calls": [
        {"name": "aten.convolution_backward.default", "count": 2}, {"name": "aten.convolution.default", "count": 2},
        {"name": "aten.mm.default", "count": 5}]}
    assert compile_fit.calls_of(compiled) == {
        "kernel": 6, "library": 5, "attention": 0, "convolution": 2, "convolution_backward": 2}


def test_lines_are_read_again(tmp_path: pathlib.Path, capsys: Any) -> None:
    file = tmp_path / "times.jsonl"
    row = {"name": "a/0", "pass": "forward", **joined(CODE, [("op0", 256000), ("op1", 32768)], TIMED)}
    file.write_text(json.dumps(row) + "\n")
    assert generated_kernels.main(["--fit", str(file)]) == 0
    assert "looped_columns" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        generated_kernels.main([])


def test_files_that_cannot_be_read_are_named(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert generated_kernels.main(["--fit", str(tmp_path / "none")]) == 1
    assert "none: No such file" in capsys.readouterr().err
    (tmp_path / "packed.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    assert generated_kernels.main(["--fit", str(tmp_path / "packed.zst")]) == 1
    assert "unpacked first" in capsys.readouterr().err


def test_statistics_of_columns_are_fitted_where_bytes_do_not_hide_them() -> None:
    columns = {"fixed_us": 2.0, "bandwidth_share": 0.8, "step_ns": 0.0}

    def row(name: str, which: str, each: float) -> Dict[str, Any]:
        extents = [[1024 * scale, 256] for scale in (16, 64, 128)]
        elements = [count * length for count, length in extents]
        table = {"kind": ["looped"] * 3, "hint": ["OUTER"] * 3, "extents": extents, "bytes": [2 * n for n in elements],
                 "us": [2.0 + 1e-6 * each * n for n in elements]}
        return {"name": name, "pass": which, "kernels": table}

    rows = [row("a/0", "forward", 2.0), row("a/0", "backward", 9.0), row("judged/b", "forward", 9.0)]
    assert fitted_statistics(rows, columns) == pytest.approx(2.0, rel=0.02)
    assert fitted_statistics(rows[1:], columns) == 0.0
