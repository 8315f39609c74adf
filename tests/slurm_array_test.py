#!/usr/bin/env python3
"""`forerun sweep --slurm` on a real Slurm: a controller and two virtual nodes on loopback.

usage: slurm_array_test.py PROGRAM SOURCE-DIR     exit status 77 where slurm-wlm or munge is not installed

Shown: the merge job's result is the bytes of one run; a worker that is killed in the middle, and a task that is
requeued in the middle, lose nothing and do nothing twice; where a task is cancelled the merge is, and the same command
asked again does only what is missing. Workers are stopped (SIGSTOP) as soon as they have begun, so that the middle does
not depend on how fast the machine is.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

sys.dont_write_bytecode = True
SHARDS = 4
CASES = 600


class ArrayTest:
    def __init__(self, program: str, folder: pathlib.Path) -> None:
        import virtual_cluster  # type: ignore[import]
        self.program = program
        self.folder = folder
        self.cluster = virtual_cluster.VirtualCluster(folder / "cluster")
        self.environment = {**os.environ, **self.cluster.environment()}

    def command(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(words, env=self.environment, capture_output=True, check=False, cwd=self.folder)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}"
        return done

    def sweep(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[bytes]:
        return self.command(self.program, "sweep", "resnet50", "--over", f"batch=1..{CASES}", *words, code=code)

    def submit(self, result: str, *words: str) -> tuple[int, int]:
        """The ids of the array and of the merge job, as the program tells them."""
        said = self.sweep("--slurm", str(SHARDS), "--out", result, *words).stdout.decode()
        array, merge = (int(line.split(":")[0].removeprefix("job ")) for line in said.splitlines())
        assert f"{CASES} cases in {SHARDS} shards" in said and result in said, said
        return array, merge

    def jobs(self) -> list[dict]:
        answer = json.loads(self.command("squeue", "--json", "--states=all").stdout)
        assert not answer["errors"], answer["errors"]
        return answer["jobs"]

    def state(self, job: int) -> str:
        states = [one["job_state"] for one in self.jobs() if one["job_id"] == job]
        return states[0] if states else "PENDING"

    def wait_for(self, what: str, ready: Callable[[], object], patience: float = 200.0) -> None:
        deadline = time.monotonic() + patience
        while not ready():
            logs = [f"{log.name}: {log.read_text()[-400:]}" for log in self.folder.glob("*.parts/*.log")]
            assert time.monotonic() < deadline, f"{what}: did not happen\n" + "\n".join(logs)
            time.sleep(0.05)

    def part(self, result: str, shard: int) -> pathlib.Path:
        return self.folder / f"{result}.parts" / f"part-{shard}.jsonl"

    def cases(self, result: str, shard: int) -> list[int]:
        """Those that are whole; the last line may still be on its way."""
        lines = self.part(result, shard).read_bytes().split(b"\n")[1:-1] if self.part(result, shard).exists() else []
        return [json.loads(line)["case"] for line in lines]

    def worker(self, result: str, shard: int) -> int:
        """The process id of a shard's worker that is at work and now stopped, in the middle."""
        out = str(self.part(result, shard)).encode()
        while True:
            self.wait_for(f"shard {shard} begins", lambda: len(self.cases(result, shard)) >= 2)
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                except OSError:
                    continue
                if words[:1] == [self.program.encode()] and out in words:
                    os.kill(int(entry.name), signal.SIGSTOP)
                    assert len(self.cases(result, shard)) < CASES // SHARDS, "it has ended: give it more to do"
                    return int(entry.name)
            time.sleep(0.01)

    def expect_whole(self, result: str, merge: int, expected: bytes) -> None:
        self.wait_for("the merge ends", lambda: self.state(merge) in ("COMPLETED", "FAILED", "CANCELLED"))
        log = self.folder / f"{result}.parts" / "merge.log"
        assert self.state(merge) == "COMPLETED", log.read_text() if log.exists() else self.jobs()
        assert (self.folder / result).read_bytes() == expected, "not the bytes of one run"
        for shard in range(SHARDS):
            assert sorted(self.cases(result, shard)) == list(range(shard, CASES, SHARDS)), f"shard {shard}"


def killed_and_requeued(test: ArrayTest, expected: bytes) -> None:
    array, merge = test.submit("killed.jsonl", "--json", "--slurm-option", "time=5", "--slurm-option",
                               "comment=a 'b' $c")
    killed = test.worker("killed.jsonl", 1)
    os.kill(killed, signal.SIGKILL)  # which ends a stopped process too
    requeued = test.worker("killed.jsonl", 2)
    before = test.cases("killed.jsonl", 2)
    test.command("scontrol", "requeue", f"{array}_2")
    os.kill(requeued, signal.SIGCONT)
    test.expect_whole("killed.jsonl", merge, expected)
    assert test.cases("killed.jsonl", 2)[:len(before)] == before, "what was done before it was requeued stays"
    assert any(job["comment"] == "a 'b' $c" for job in test.jobs()), "words reach Slurm as they are"


def cancelled_and_asked_again(test: ArrayTest, expected: bytes) -> None:
    array, merge = test.submit("again.csv", "--csv")
    stopped = test.worker("again.csv", 3)
    said = test.sweep("--slurm", str(SHARDS), "--out", "again.csv", "--csv", code=1).stderr.decode()
    assert "is being written by another process" in said, said
    test.command("scancel", f"{array}_3")
    os.kill(stopped, signal.SIGCONT)
    test.wait_for("the merge is cancelled", lambda: test.state(merge) == "CANCELLED")
    assert not (test.folder / "again.csv").exists()
    done = test.cases("again.csv", 3)
    assert 2 <= len(done) < CASES // SHARDS, done
    refused = test.command(test.program, "sweep", "resnet50", "--over", "batch=1..7", "--slurm", str(SHARDS), "--out",
                           "again.csv", "--csv", code=1).stderr.decode()
    assert "--over is 'batch=1..600' there and 'batch=1..7' here" in refused, refused
    _, merge = test.submit("again.csv", "--csv")
    test.expect_whole("again.csv", merge, expected)
    assert test.cases("again.csv", 3)[:len(done)] == done


def dry_run(test: ArrayTest) -> None:
    said = test.sweep("--slurm", "3", "--out", "dry.jsonl", "--json", "--slurm-dry-run").stdout.decode()
    for word in ("--array=0-2", "--dependency=afterok:ARRAY-JOB", "dry.jsonl.parts/shard.sh", "SLURM_ARRAY_TASK_ID"):
        assert word in said, said
    assert not (test.folder / "dry.jsonl.parts").exists()


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    source = pathlib.Path(sys.argv[2])
    sys.path.insert(0, str(source / "examples" / "slurm"))
    import virtual_cluster
    if virtual_cluster.missing_programs():
        missing = ", ".join(virtual_cluster.missing_programs())
        print(f"skipped: not installed: {missing}; apt-get install slurm-wlm munge")
        return 77
    with tempfile.TemporaryDirectory(prefix="forerun-array-") as name:
        test = ArrayTest(os.path.realpath(sys.argv[1]), pathlib.Path(os.path.realpath(name)))
        dry_run(test)
        try:
            # A task that is requeued waits until its first credential has expired: two minutes, unless said otherwise.
            credentials = f"AuthInfo=socket={test.cluster.folder}/run/munge.socket,cred_expire=5"
            test.cluster.write(2, 2, further=[credentials])
            test.cluster.start(2, patience=60)
            killed_and_requeued(test, test.sweep("--json").stdout)
            cancelled_and_asked_again(test, test.sweep("--csv").stdout)
        finally:
            test.cluster.stop()
    print("an array with a killed and a requeued worker, and one cancelled and asked again: the bytes of one run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
