"""Samplers and plans of configurations, random wirings and the split: all without torch."""

from __future__ import annotations

import collections
import json
import random
from pathlib import Path
from typing import Dict, List

import pytest
import zoo_program
from forerun.configuration import Configuration
from forerun.families import FAMILIES, TARGETS, USUAL, default_counts, nas_cells, plan, sample, split
from forerun.families.__main__ import main
from forerun.families.random_wiring import Wiring, barabasi_albert, erdos_renyi, watts_strogatz, wire

EVERY = {family: 30 for family in FAMILIES}


def example() -> Configuration:
    return sample("resnet", random.Random(1), id="h200/00000-resnet")


def test_a_configuration_survives_json() -> None:
    configuration = example()
    assert Configuration.from_json(configuration.line()) == configuration
    assert Configuration.from_json({**configuration.to_json(), "status": "ok"}) == configuration


def test_the_key_stands_for_all_but_the_id() -> None:
    fields = example().to_json()
    key = example().key
    assert Configuration.from_json({**fields, "id": "other"}).key == key
    reordered = {name: fields["run"][name] for name in reversed(list(fields["run"]))}
    assert Configuration.from_json({**fields, "run": reordered}).key == key
    assert Configuration.from_json({**fields, "run": {**fields["run"], "precision": "none"}}).key != key
    assert Configuration.from_json({**fields, "args": {}}).key != key
    assert example().with_batch(7777).key != key
    # The same in every process and version: finished work is found by it.
    plain = Configuration("", "vgg", {"bn": False, "fc": 512}, ("image", 2, 3, 64, 10), {"precision": "fp32"})
    assert plain.key == "31525a58b6a244a2"


@pytest.mark.parametrize("broken", [
    "[]", '{"id": "x"}', '{"id": "x", "family": "vgg", "args": [], "input": ["image", 1, 3, 64, 10], "run": {}}',
    '{"id": "x", "family": "vgg", "args": {}, "input": ["sound", 1, 3, 64, 10], "run": {}}'])
def test_a_broken_configuration_is_refused(broken: str) -> None:
    with pytest.raises(ValueError):
        Configuration.from_json(broken)


def test_with_batch_changes_nothing_else() -> None:
    changed = example().with_batch(3)
    assert changed.batch == 3
    assert changed.with_batch(example().batch) == example()


def test_a_plan_depends_on_its_seed_alone() -> None:
    counts = {"resnet": 20, "gpt2": 10, "randwire": 5}
    first = [configuration.line() for configuration in plan(3, counts)]
    assert [configuration.line() for configuration in plan(3, counts)] == first
    assert [configuration.line() for configuration in plan(4, counts)] != first


def test_draws_of_a_family_do_not_depend_on_other_families() -> None:
    alone = {configuration.key for configuration in plan(3, {"gpt2": 10})}
    together = {c.key for c in plan(3, {"resnet": 20, "gpt2": 12}) if c.family == "gpt2"}
    assert alone < together


def test_a_plan_has_what_was_asked_for() -> None:
    configurations = plan(1, EVERY, prefix="trial")
    assert collections.Counter(configuration.family for configuration in configurations) == EVERY
    assert len({configuration.key for configuration in configurations}) == len(configurations)
    for number, configuration in enumerate(configurations):
        assert configuration.id == f"trial/{number:05d}-{configuration.family}"
        assert json.loads(configuration.line()) == configuration.to_json()
    assert len({configuration.family for configuration in configurations[:100]}) > 15  # mixed


def test_run_settings_are_such_as_pytorch_has() -> None:
    configurations = plan(1, {family: 60 for family in FAMILIES})
    shares: Dict[str, float] = collections.defaultdict(float)
    for configuration in configurations:
        run, optimizer = configuration.run, configuration.run["optimizer"]
        shares[run["precision"]] += 1 / len(configurations)
        if optimizer["impl"] == "fused":
            assert optimizer["name"] in ("SGD", "Adam", "AdamW")
        if configuration.input[0] in ("image", "dense"):
            shares["channels_last"] += run["channels_last"] / len(configurations)
            shares["images"] += 1 / len(configurations)
        else:
            assert not run["channels_last"]
    assert shares["fp32"] == pytest.approx(0.4, abs=0.05)
    assert shares["tf32"] == pytest.approx(0.15, abs=0.05)
    assert shares["amp_bf16"] == pytest.approx(0.45, abs=0.05)
    assert shares["channels_last"] / shares["images"] == pytest.approx(0.35, abs=0.05)


def batches(family: str, target: str) -> List[int]:
    return sorted(configuration.batch for configuration in plan(5, {family: 60}, target=target))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_targets_shift_the_batch(family: str) -> None:
    middle = [batches(family, target)[30] for target in TARGETS]
    assert middle[0] * 2 < middle[1]
    assert middle[1] * 2 < middle[2]
    assert batches(family, TARGETS[0])[0] <= 2


def test_ranges() -> None:
    for configuration in plan(2, {family: 60 for family in FAMILIES}):
        kind, batch, first, second, last = configuration.input
        assert 1 <= batch <= 8192 * 16
        if configuration.family == "nas_cell":
            assert first in (1, 3, 4, 8) and 24 <= second <= 128 and second % 4 == 0 and last in (10, 100, 120)
        elif kind in ("image", "dense"):
            assert first in (1, 3, 4, 8) and 64 <= second <= 336 and last <= 1000
        elif kind == "tokens":
            assert 8 <= first <= 1024 and 900 <= second <= 64000
            assert last == ("hf" if configuration.family in ("bert", "gpt2", "llama", "t5") else "lm")
    for configuration in plan(2, {"randwire": 150}):
        args = configuration.args
        assert args["kind"] in ("ws", "er", "ba") and 8 <= args["nodes"] <= 40
        assert 16 <= args["ch"] <= 128 and 3 <= args["stages"] <= 5
        for stage in range(args["stages"]):
            wire(args["kind"], args["nodes"], args["seed"] + stage)  # a graph, not a ValueError
    for configuration in plan(2, {"nas_cell": 150}):
        args = configuration.args
        assert nas_cells.passes_input(nas_cells.parse(args["cell"]))
        assert 16 <= args["ch"] <= 128 and 1 <= args["cells"] <= 8


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="wide_resnet"):
        sample("resnett", random.Random(0))
    with pytest.raises(ValueError, match="near-limit"):
        sample("resnet", random.Random(0), target="slow")


def test_default_counts() -> None:
    counts = default_counts(1000)
    assert sum(counts.values()) == 1000 and set(counts) == set(USUAL)
    assert set(FAMILIES) - set(USUAL) == {"nas_cell"}
    assert counts["randwire"] >= 150 and min(counts.values()) >= 30
    assert default_counts(7, ["vgg", "gru"]) in ({"vgg": 4, "gru": 3}, {"vgg": 3, "gru": 4})


def test_the_program_prints_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "9", "--seed", "2", "--families", "vit,dlrm", "--prefix", "p"]) == 0
    lines = capsys.readouterr().out.splitlines()
    expected = plan(2, default_counts(9, ["vit", "dlrm"]), "p")
    assert [Configuration.from_json(line) for line in lines] == expected


def test_the_split_has_every_family_once() -> None:
    assert sorted(split.TRAIN + split.TEST + split.OOD) == sorted(FAMILIES)
    assert [split.side(family) for family in ("lstm", "gru", "randwire")] == ["train", "test", "ood"]
    assert split.side("nas_cell") == "ood"
    with pytest.raises(ValueError):
        split.side("capture")


def test_the_published_split_is_this_one() -> None:
    path = Path(zoo_program.ROOT) / "data" / "h200" / "split.json"
    assert path.read_text() == split.text()
    parts = json.loads(split.text())
    assert {part: list(beginnings) for part, beginnings in split.IDS.items()} == parts.pop("ids")
    assert parts == split.split()


def test_ids_go_before_families() -> None:
    splits = json.loads(split.text())
    assert split.part_of(splits, "h200/00001-resnet", "resnet") == "train"
    assert split.part_of(splits, "pairs/00077-mobilenet_v3", "mobilenet_v3") == "whatif"
    assert split.part_of(splits, "starter/00105-resnet", "resnet") == "twin"
    assert split.part_of(splits, "h200/1", "capture") is None


def fingerprint(wiring: Wiring) -> int:
    return sum((i + 1) * (k + 1) * neighbour for i, node in enumerate(wiring) for k, neighbour in enumerate(node))


def test_wirings_are_those_of_networkx() -> None:
    """The values that src/zoo/random_wiring_test.cpp expects, printed by networkx 3.6."""
    ws = watts_strogatz(100, 4, 0.75, 7)
    assert ws is not None and fingerprint(ws) == 2858832 and ws[-1] == [74, 67, 7, 66, 72, 12]
    full = [[1, 4, 2, 3], [0, 2, 3, 4], [1, 3, 0, 4], [2, 4, 1, 0], [3, 0, 2, 1]]
    assert watts_strogatz(5, 4, 0.75, 7) == full
    assert fingerprint(erdos_renyi(100, 0.2, 7)) == 74994538
    ba = barabasi_albert(100, 5, 7)
    assert fingerprint(ba) == 8533997 and ba[-1] == [1, 39, 12, 25, 31]


def test_a_wiring_needs_a_known_kind_and_enough_nodes() -> None:
    with pytest.raises(ValueError, match="ws, er or ba"):
        wire("ring", 8, 0)
    with pytest.raises(ValueError, match="at least 6"):
        wire("ba", 5, 0)


CELL = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"


def test_a_cell_survives_its_text() -> None:
    assert nas_cells.parse(CELL) == [["nor_conv_3x3"], ["none", "skip_connect"],
                                     ["avg_pool_3x3", "none", "nor_conv_1x1"]]
    assert nas_cells.text_of(nas_cells.parse(CELL)) == CELL


@pytest.mark.parametrize("broken,said", [
    ("", "has 1 nodes"), (CELL.rpartition("+")[0], "has 2 nodes"), (CELL + "+|none~0|", "has 4 nodes"),
    (CELL[1:], "node 1"), (CELL[:-1], "node 3"), (CELL.replace("|none~0|", "|"), "node 2"),
    (CELL.replace("skip_connect", "dil_conv_3x3"), "'dil_conv_3x3~1' into node 2 .* none, skip_connect"),
    (CELL.replace("conv_1x1~2", "conv_1x1~1"), "node 3 .* write nor_conv_1x1~2"),
    (CELL.replace("none~1", "none"), "write none~1")])
def test_a_broken_cell_is_refused(broken: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        nas_cells.parse(broken)


def test_cells_are_drawn_that_pass_their_input() -> None:
    rng = random.Random(4)
    drawn = [nas_cells.draw(rng) for _ in range(3000)]
    assert len(set(drawn)) > 2500
    first = collections.Counter(nas_cells.parse(cell)[0][0] for cell in drawn)
    assert set(first) == set(nas_cells.OPERATIONS) and max(first.values()) < 700
    assert not nas_cells.passes_input([["skip_connect"], ["none", "none"], ["none", "none", "nor_conv_3x3"]])
    assert nas_cells.passes_input([["skip_connect"], ["none", "avg_pool_3x3"], ["none", "none", "nor_conv_3x3"]])


def test_the_zoo_takes_what_is_sampled() -> None:
    path = zoo_program.program()
    if path is None:
        pytest.skip("the forerun program is not built: build it, or set FORERUN to its path")
    # Nobody samples models of 22 billion parameters.
    assert sorted(zoo_program.families(path)) == sorted([*FAMILIES, "vit_parallel"])
    for configuration in plan(11, {family: 3 for family in FAMILIES}):
        assert zoo_program.parameters(path, configuration) > 0
