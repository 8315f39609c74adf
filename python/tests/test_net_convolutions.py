"""The list of convolutions of published networks, with a stand-in for the package that has them."""
import json
import sys
import types
from typing import Any, List

import needs_torch  # noqa: F401  (skips first)
import pytest

torch: Any = pytest.importorskip("torch")

from forerun import net_convolutions  # noqa: E402
from forerun.grids.sampling import Sample  # noqa: E402


def _network(output_stride: int = 32) -> Any:
    hole = 1 if output_stride == 32 else 2
    return torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, 2, 1), torch.nn.Conv2d(32, 32, 3, 1, hole, hole, groups=32),
                               torch.nn.Conv2d(32, 64, 1), torch.nn.Conv2d(64, 64, 1), torch.nn.Conv2d(64, 64, 1),
                               torch.nn.Conv2d(64, 64, (3, 3), (1, 2), 1))


@pytest.fixture(autouse=True)
def timm(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("timm")
    fake.list_modules = lambda: ["plain", "judged"]
    fake.list_models = lambda module: {"plain": ["plain_a", "plain_b", "broken"], "judged": ["judged_a"]}[module]
    fake.model_entrypoint = lambda name: types.SimpleNamespace(__module__=name.split("_")[0])

    def create(name: str, **settings: Any) -> Any:
        if name == "broken":
            raise RuntimeError("an image of one size only")
        return _network(**settings)

    fake.create_model = create
    monkeypatch.setitem(sys.modules, "timm", fake)


def _list(tmp_path: Any, *arguments: str) -> List[Sample]:
    out = tmp_path / "list.jsonl"
    assert net_convolutions.main(["-o", str(out), *arguments]) == 0
    return [Sample.from_json(json.loads(line), "list") for line in out.read_text().splitlines()]


def test_distinct_convolutions_of_a_network() -> None:
    found = net_convolutions.convolutions(net_convolutions.Network("plain_a", 64, 16))
    # Equal layers once; strides that differ by direction are left out.
    assert [(conv.channels, conv.filters, conv.size, conv.dilation) for conv in found] == [
        (3, 32, (64, 64), 1), (32, 32, (32, 32), 2), (32, 64, (32, 32), 1), (64, 64, (32, 32), 1)]
    assert [net_convolutions.kind(conv) for conv in found] == ["dense", "with holes", "dense", "dense"]


def test_the_list_is_seeded_and_leaves_out_what_is_judged(tmp_path: Any, capsys: Any) -> None:
    first = _list(tmp_path, "--count", "40", "--without", "judged")
    assert "broken" in capsys.readouterr().err  # named, and passed over
    assert len(first) == 40 == len({sample.id for sample in first})
    again = _list(tmp_path, "--count", "40", "--without", "judged")
    assert [sample.id for sample in first] == [sample.id for sample in again]
    assert {sample.op for sample in first} == {"aten.convolution.default", "aten.convolution_backward.default"}
    assert net_convolutions.main(["--without", "judged,plain,broken", "-o", str(tmp_path / "none")]) == 1
    assert "leaves no network" in capsys.readouterr().err
