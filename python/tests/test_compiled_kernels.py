"""Timing generated code: what it is given, which needs no GPU, and what is refused."""
import pathlib
from typing import Any

import needs_torch  # noqa: F401  (skips first)
import pytest
import torch

from forerun import compiled_kernels
from forerun.compiled_kernels import INTEGERS, Inputs, module_of, summary, with_kept

CODE = """
import torch


def get_args():
    from torch._dynamo.testing import rand_strided
    ids = rand_strided((2, 3), (3, 1), device="cpu", dtype=torch.int64)
    other = rand_strided((4,), (1,), device="cpu", dtype=torch.int64)
    weight = rand_strided((5, 2), (1, 5), device="cpu", dtype=torch.bfloat16)
    return [ids, other, weight]
"""


def test_integers_are_the_set_ups_own_and_numbers_are_drawn(tmp_path: pathlib.Path) -> None:
    (tmp_path / "forward.py").write_text(CODE)
    torch.save([torch.arange(6).reshape(2, 3)], tmp_path / INTEGERS)
    ids, other, weight = Inputs(tmp_path).of(module_of(tmp_path / "forward.py"))
    assert ids.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert other.tolist() == [0, 0, 0, 0]  # nothing is known of it
    assert weight.stride() == (1, 5) and weight.float().abs().sum() > 0


def test_the_backward_pass_is_given_what_the_forward_pass_kept() -> None:
    names = ["primals_1", "index", "mean", "tangents_1"]
    drawn = [torch.zeros(2), torch.zeros(3, dtype=torch.int64), torch.zeros(4), torch.zeros(5)]
    results = [torch.ones(9), torch.ones(2), torch.arange(3), torch.ones(7)]  # the last is of another size
    given = with_kept(drawn, names, results)
    assert given[0].tolist() == [1, 1] and given[1].tolist() == [0, 1, 2]
    assert given[2] is drawn[2] and given[3] is drawn[3]


def test_a_line_tells_what_was_timed() -> None:
    row = {"name": "vit", "compiled_s": 3.1, "timed_s": 0.2, "forward": {"kernels": ["a"], "ns": [1500000]},
           "backward": {"kernels": ["b", "c"], "ns": [1000000, 500000]}}
    assert summary(row) == "vit: 1 + 2 kernels, 1.50 + 1.50 ms; compiled 3.1 s, timed 0.2 s"
    assert summary({"name": "vit", "error": "RuntimeError: no\nmore"}) == "vit: RuntimeError: no"


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_machine_without_a_gpu_is_told_so(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert compiled_kernels.main([str(tmp_path), "-o", str(tmp_path / "out.gz")]) == 1
    assert "no CUDA GPU" in capsys.readouterr().err
