#!/usr/bin/env python3
"""Shards as users run them: processes that are killed again and again, and parts that give the bytes of one run.

usage: shards_test.py PROGRAM

Each verb that takes --shard is run once as a whole, and once in shards; what `merge` prints must be the same bytes in
every form. Workers of the sweep are killed (SIGKILL) at random moments, each after it has done something or even
nothing, and started again: no case may be lost, and none done twice. Nothing is decided by how fast the machine is.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

SWEEP = ["sweep", "--over", "model=resnet18,gpt2_small,alexnet", "--over", "batch=1..12,100000", "--over",
         "precision=fp32,amp_bf16", "--over", "gpu=h200,t4", "--samples", "1M", "--price", "h200=3,t4=0.5"]
FORMS: list[list[str]] = [[], ["--json"], ["--csv"]]
KILLS = 12


class Shards:
    def __init__(self, program: str, folder: pathlib.Path) -> None:
        self.program = program
        self.folder = folder

    def run(self, *words: str | pathlib.Path, code: int = 0, program: str = "") -> subprocess.CompletedProcess[bytes]:
        command = [program or self.program, *map(str, words)]
        done = subprocess.run(command, capture_output=True, check=False, cwd=self.folder)
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr.decode()}"
        return done

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.program, *words], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)


def size_of(path: pathlib.Path) -> int:
    return path.stat().st_size if path.exists() else 0


def cases_in(path: pathlib.Path) -> list[int]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert lines[0]["schema"] == "forerun.part/1", lines[0]
    return [line["case"] for line in lines[1:]]


def killed_worker(shards: Shards, words: list[str], part: pathlib.Path, draw: random.Random) -> None:
    """Starts a worker and kills it: at once, or when its part has grown; it may also have come to its end before."""
    worker = shards.start(*words)
    wanted = size_of(part) + draw.choice([0, 1, 20_000, 60_000])
    while worker.poll() is None and size_of(part) < wanted:
        time.sleep(0.002)
    time.sleep(draw.random() * 0.02)
    worker.kill()
    worker.communicate()


def sweep_is_the_same(shards: Shards, draw: random.Random) -> None:
    whole = [shards.run(*SWEEP, *form) for form in FORMS]
    assert b"gpt2_small" in whole[0].stdout and b"does not fit" in whole[0].stdout and b"tokens/s" in whole[0].stdout
    parts = [shards.folder / f"part-{index}.jsonl" for index in range(3)]
    for index, part in enumerate(parts):
        words = [*SWEEP, "--shard", f"{index}/3", "--out", part.name, "--threads", str(1 + index)]
        for _ in range(KILLS):
            killed_worker(shards, words, part, draw)
        shards.run(*words)
        numbers = cases_in(part)
        assert sorted(numbers) == list(range(index, 3 * 13 * 2 * 2, 3)), f"shard {index}: {sorted(numbers)}"
        said = shards.run(*words).stdout.decode()
        assert f"{len(numbers)} of them found done before" in said, said
    for form, one in zip(FORMS, whole):
        for order in (parts, parts[::-1]):
            merged = shards.run("sweep", "merge", *order, *form)
            assert merged.stdout == one.stdout, f"{form}: not the bytes of one run"
            assert merged.stderr == one.stderr, f"{form}: {merged.stderr.decode()} {one.stderr.decode()}"
        shards.run("sweep", "merge", *parts, *form, "-o", "merged")
        assert (shards.folder / "merged").read_bytes() == one.stdout
    refused(shards, parts)


def refused(shards: Shards, parts: list[pathlib.Path]) -> None:
    def says(word: str, *words: str | pathlib.Path, code: int = 1) -> None:
        done = shards.run(*words, code=code)
        assert word in done.stderr.decode() and not done.stdout, f"{words}: {done.stderr.decode()}"

    before = parts[0].read_bytes()
    says("--price is 'h200=3,t4=0.5' there and", *SWEEP[:-1], "h200=4,t4=0.5", "--shard", "0/3", "--out", parts[0])
    says("is shard 0/3, not 1/3", *SWEEP, "--shard", "1/3", "--out", parts[0])
    assert parts[0].read_bytes() == before
    says("1 of 3 shards are missing: 1/3", "sweep", "merge", parts[0], parts[2])
    says("given twice", "sweep", "merge", parts[0], parts[0], parts[1], parts[2])
    says("forerun sweep merge", "schedule", "merge", *parts)
    torn = shards.folder / "torn.jsonl"
    torn.write_bytes(before[:-100])
    says("shard 0/3 lacks 1 of its 52 cases", "sweep", "merge", torn, parts[1], parts[2])


def none_can_be_built(shards: Shards) -> None:
    words = ["sweep", "resnet18", "--over", "imag=1..4"]
    for index in range(2):
        shards.run(*words, "--shard", f"{index}/2", "--out", f"bad-{index}")
    for form in FORMS:
        whole = shards.run(*words, *form, code=1)
        merged = shards.run("sweep", "merge", "bad-0", "bad-1", *form, code=1)
        assert (whole.stdout, whole.stderr) == (merged.stdout, merged.stderr), merged


def schedule_is_the_same(shards: Shards) -> None:
    (shards.folder / "jobs.csv").write_text("id,submit,duration,gpus,user\n" + "".join(
        f"j{i},{i * 7},{50 + i * 37 % 400},{1 + i % 4},u{i % 3}\n" for i in range(60)))
    words = ["schedule", "jobs.csv", "--gpus", "8", "--compare", "sjf", "srtf", "fifo", "--predictor", "error:40",
             "--repeat", "7", "--by", "user", "size", "--failure-hours", "5"]
    parts = [f"schedule-{index}" for index in range(4)]
    for index, part in enumerate(parts):
        shards.run(*words, "--shard", f"{index}/4", "--out", part, "--threads", "2")
        assert len(cases_in(shards.folder / part)) == 6  # three policies, seven seeds and true durations: 24
    for form in FORMS[:2]:
        assert shards.run("schedule", "merge", *parts, *form).stdout == shards.run(*words, *form).stdout, form
    (shards.folder / "jobs.csv").write_text("id,submit,duration,gpus,user\na,0,10,1,u\n")
    done = shards.run(*words, "--shard", "0/4", "--out", parts[0], code=1)
    assert b"the content of the file jobs.csv" in done.stderr, done.stderr


def simulated_data_is_the_same(shards: Shards) -> bool:
    lab = str(pathlib.Path(shards.program).with_name("forerun-lab"))
    if not os.path.exists(lab):
        return False
    words = ["simulate", "--count", "12", "--traced", "4", "--seed", "5"]
    shards.run(*words, "--out", "whole.bin", program=lab)
    for index in range(3):
        shards.run(*words, "--shard", f"{index}/3", "--out", f"simulated-{index}", program=lab)
    shards.run("simulate", "merge", "simulated-0", "simulated-2", "simulated-1", "--out", "merged.bin", program=lab)
    assert (shards.folder / "merged.bin").read_bytes() == (shards.folder / "whole.bin").read_bytes()
    return True


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory(prefix="forerun-shards-") as name:
        shards = Shards(os.path.abspath(sys.argv[1]), pathlib.Path(name))
        sweep_is_the_same(shards, random.Random(11))
        none_can_be_built(shards)
        schedule_is_the_same(shards)
        lab = simulated_data_is_the_same(shards)
    print(f"sweep (killed {3 * KILLS} times), schedule{' and simulate' if lab else ''}: parts give the bytes of one run"
          f"{'' if lab else '; simulate: forerun-lab was not built'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
