"""Holding the simulated compiler to Inductor: reading generated code, which needs neither a GPU nor Inductor."""
import json
import pathlib
import subprocess
import sys
from typing import Any, Dict

import needs_torch  # noqa: F401  (skips first)
import pytest

from forerun import compile_check
from forerun.compile_check import Memory, Pass, figures_of

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "examples" / "setups.py")
KIB = 1024

FORWARD = """
    def call(self, args):
        primals_1, primals_2 = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
            extern_kernels.mm(primals_1, primals_2, out=buf0)
            buf1 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
            triton_poi_fused_relu_0.run(buf0, buf1, 16, stream=stream0)
            buf2 = buf0; del buf0  # reuse
            triton_poi_fused_add_1.run(buf1, buf2, 16, stream=stream0)
            buf3 = torch.ops.aten._scaled_dot_product_cudnn_attention.default(buf2, buf2, buf2)
            buf4 = buf3[0]
            buf5 = buf3[1]
            del buf3
            del buf2
        return (buf4, primals_1, reinterpret_tensor(buf1, (2, 8), (8, 1), 0), buf1, buf5, )
"""
BACKWARD = """
    def call(self, args):
        primals_1, view, relu, getitem_1, tangents_1 = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
            triton_poi_fused_mul_0.run(tangents_1, relu, buf0, 16, stream=stream0)
            del relu
            del view
            buf1 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
            extern_kernels.mm(buf0, primals_1, out=buf1)
            del buf0
        return (buf1, None, )
"""


def passes(sizes: Dict[str, int]) -> Any:
    given = ["primals_1", "view", "relu", "getitem_1", "tangents_1"]
    return [Pass(False, FORWARD, sizes, ["primals_1", "primals_2"], [("op0", 2 * KIB)]),
            Pass(True, BACKWARD, sizes, given, [("op1", KIB)])]


def test_what_code_allocates_frees_and_launches_is_followed() -> None:
    sizes = {f"buf{i}": 4 * KIB for i in range(6)}
    sizes.update(buf3=0, buf5=KIB // 4, tangents_1=4 * KIB)  # a tuple has no memory; what is small takes a whole block
    found = figures_of(passes(sizes))
    # Kept: what both views name is one buffer, and a statistic; what the caller gave is not counted.
    assert found["kept_values"] == 2 and found["kept"] == 4 * KIB + KIB // 2
    assert [found[which]["kernels"] for which in ("forward", "backward")] == [2, 1]
    assert [found[which]["libraries"] for which in ("forward", "backward")] == [2, 1]
    assert found["forward"]["peak"] == 12 * KIB + KIB // 2  # relu, its sum written over the product, attention's two
    # What autograd handed in and a statistic stay; the kept value goes before the second buffer comes.
    assert found["backward"]["peak"] == 12 * KIB + KIB // 2
    assert found["peak"] == 12 * KIB + KIB // 2 and found["kernels"] == 3
    assert found["moved"] == 3 * KIB


def test_what_a_pass_returns_is_named_by_its_buffers() -> None:
    assert passes({})[0].results() == ["buf4", "primals_1", "buf1", "buf1", "buf5"]
    memory = Memory()
    memory.hold("buf1", 512)
    memory.alias("view", "buf1")
    memory.drop("buf1")
    assert memory.alive == 512
    memory.drop("view")
    assert memory.alive == 0


def test_rows_are_printed_with_their_errors() -> None:
    made = {"kept": 1 << 30, "kernels": 100, "libraries": 0, "peak": 2 << 30, "moved": 4 << 20}
    said = {"kept": 1 << 30, "kernels": 90, "libraries": 0, "peak": 3 << 30, "moved": 5 << 20}
    row = {"name": "vit/vit", "inductor": made, "predicted": said}
    assert compile_check.line_of(row).split() == [
        "vit/vit", "1,024", "+0.0", "%", "100", "-10.0", "%", "0", "+0.0", "%", "2,048", "+50.0", "%", "4", "+25.0", "%"
    ]
    assert compile_check.means([row, {"name": "x", "problem": "none"}]).endswith("of 1")
    assert compile_check.line_of({"name": "x", "problem": "it breaks"}).endswith("it breaks")


def test_a_pytorch_without_cuda_is_refused() -> None:
    torch: Any = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this one has CUDA")
    done = subprocess.run([sys.executable, "-m", "forerun.compile_check", EXAMPLE], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "built for CUDA" in done.stderr


def test_set_ups_are_captured_one_by_one_and_those_that_fail_are_counted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "two.py"
    file.write_text(
        "import torch\n\n"
        "def good(device):\n"
        "    model = torch.nn.Linear(4, 4)\n"
        "    batch = (torch.randn(2, 4), torch.randint(4, (2,)))\n"
        "    return {'model': model, 'optimizer': torch.optim.SGD(model.parameters(), 0.1), 'batch': batch}\n\n"
        "def bad(device):\n"
        "    raise RuntimeError('no model')\n\n"
        "SETUPS = {'bad/0': bad, 'good/0': good}\n"
    )
    captures = tmp_path / "captures.jsonl"
    assert compile_check.main([str(file), "--captures", str(captures)]) == 3
    assert "1 of 2 set-ups could not be captured" in capsys.readouterr().err
    (record,) = map(json.loads, captures.read_text().splitlines())
    assert record["id"] == "good/0" and record["dynamo"]["graphs"] == 1
