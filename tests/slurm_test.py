#!/usr/bin/env python3
"""The Slurm bridge against a real Slurm: one controller and four virtual nodes with two file-backed GPUs each.

usage: slurm_test.py PROGRAM SOURCE-DIR     exit status 77 where slurm-wlm or munge is not installed

Shown: a job whose short time is predicted is backfilled past a waiting one, and one without prediction is not;
predicted priorities give shortest-job-first order; the simulator starts the jobs of a small trace in the same order as
Slurm; a soft limit is raised. Nothing is decided by how fast the machine is: the order of starts is, and limits are
minutes while jobs last seconds.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True


class Bridge:
    """The program under test and a cluster to try it on."""

    def __init__(self, program: str, source: pathlib.Path, folder: pathlib.Path) -> None:
        sys.path.insert(0, str(source / "examples" / "slurm"))
        import virtual_cluster  # type: ignore[import]
        self.program = program
        self.script = source / "examples" / "slurm" / "job_submit.lua"
        self.folder = folder
        self.cluster = virtual_cluster.VirtualCluster(folder / "cluster")
        self.environment = {**os.environ, **self.cluster.environment(), "SLURM_TIME_FORMAT": "%s"}

    def start(self, settings: list[str]) -> None:
        self.cluster.write(4, 2, self.script, [f'predictions = "{self.folder}/predictions.csv"', *settings])
        self.cluster.start(4, patience=60)

    def forerun(self, *words: str) -> str:
        done = subprocess.run([self.program, *words], env=self.environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"forerun {' '.join(words)}: {done.stderr}"
        return done.stdout

    def slurm(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
        return done.stdout

    def submit(self, name: str, gpus: int, seconds: int, *words: str) -> None:
        self.slurm("sbatch", "--job-name", name, "--output", "/dev/null", "--ntasks", str(gpus),
                   "--gpus-per-task", "1", *words, "--wrap", f"sleep {seconds}")

    def states(self) -> dict[str, str]:
        shown = self.slurm("squeue", "-h", "-t", "all", "-o", "%j %T")
        return dict(line.split() for line in shown.splitlines())

    def wait_for(self, what: str, ready: object, patience: float = 40.0) -> None:
        deadline = time.monotonic() + patience
        while not ready():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"{what}: did not happen; {self.states()}"
            time.sleep(0.2)

    def started_before(self, first: str, second: str) -> bool:
        """Whether `first` started at all while `second` still waited."""
        states = self.states()
        return states.get(first) in ("RUNNING", "COMPLETING", "COMPLETED") and states.get(second) == "PENDING"


def predict_jobs(bridge: Bridge) -> None:
    """Jobs that name a model, or their duration; `unpredicted` is none of them."""
    (bridge.folder / "jobs.csv").write_text(
        "id,model,batch,iterations,gpus,duration\n"
        "short,resnet18,32,300,1,\n"
        "s1,,,,8,40\ns2,,,,8,400\ns3,,,,8,4000\n"
        "soft,,,,1,5\n")
    text = bridge.forerun("slurm", "limits", str(bridge.folder / "jobs.csv"), "--startup", "10")
    (bridge.folder / "predictions.csv").write_text(text)
    rows = {line.split(",")[0]: line.split(",") for line in text.splitlines()[1:]}
    assert rows["short"][2] == "1", f"300 iterations of ResNet-18 fit in a minute: {rows['short']}"
    assert int(rows["short"][3]) > 100, f"memory of a GPU in MiB: {rows['short']}"


def short_predicted_job_is_backfilled(bridge: Bridge) -> None:
    """Six of eight GPUs are taken for what Slurm must think is two minutes; a job that wants all eight waits."""
    bridge.submit("holder", 6, 9, "--time", "2")
    bridge.wait_for("holder starts", lambda: bridge.states().get("holder") == "RUNNING")
    bridge.submit("wide", 8, 1, "--time", "5")
    bridge.submit("unpredicted", 1, 1)
    bridge.submit("short", 1, 1)
    bridge.wait_for("short is backfilled", lambda: bridge.started_before("short", "wide"))
    assert bridge.states()["unpredicted"] == "PENDING", "a job of unknown length must not delay the one that waits"
    bridge.wait_for("wide starts", lambda: bridge.states()["wide"] != "PENDING")
    assert bridge.states()["short"] == "COMPLETED"
    bridge.wait_for("all end", lambda: set(bridge.states().values()) == {"COMPLETED"})


def soft_limit_is_raised(bridge: Bridge) -> None:
    """A user states 30 minutes; the prediction says one; the limit follows when the job comes near it."""
    bridge.submit("soft", 1, 4, "--time", "30")
    bridge.wait_for("soft starts", lambda: bridge.states().get("soft") == "RUNNING")
    limit = bridge.slurm("squeue", "-h", "-n", "soft", "-o", "%l").strip()
    assert limit == "1:00", f"planned with the predicted minute: {limit}"
    raised = bridge.forerun("slurm", "extend", "--within", "90")
    assert "soft: limit raised to 2 min" in raised, raised
    assert bridge.slurm("squeue", "-h", "-n", "soft", "-o", "%l").strip() == "2:00"


def predicted_priorities_give_shortest_first(bridge: Bridge) -> None:
    """Submitted longest first while all GPUs are taken, they run shortest first, as the simulator says."""
    (bridge.folder / "trace.csv").write_text(
        "id,submit,gpus,duration\nfirst,0,8,4\ns3,1,8,3\ns2,1,8,2\ns1,1,8,1\n")
    answer = json.loads(bridge.forerun(
        "slurm", "replay", str(bridge.folder / "trace.csv"), "--policy", "sjf", "--gpus", "8", "--json"))
    starts = {job["job"]: job["start"] for job in answer["jobs"]}
    assert [job["state"] for job in answer["jobs"]] == ["COMPLETED"] * 4, answer
    assert sorted(starts, key=starts.__getitem__) == ["first", "s1", "s2", "s3"], starts
    assert answer["pairs"] == 6 and answer["pairs_alike"] == 6, answer


def main() -> int:
    program, source = str(pathlib.Path(sys.argv[1]).absolute()), pathlib.Path(sys.argv[2]).absolute()
    sys.path.insert(0, str(source / "examples" / "slurm"))
    import virtual_cluster  # type: ignore[import]
    if virtual_cluster.missing_programs():
        print(f"skipped: not installed: {', '.join(virtual_cluster.missing_programs())} (slurm-wlm, munge)")
        return 77
    with tempfile.TemporaryDirectory(prefix="forerun-slurm-") as name:
        bridge = Bridge(program, source, pathlib.Path(name))
        os.chmod(name, 0o755)
        try:
            predict_jobs(bridge)
            bridge.start(["priority = nil", "soft = true"])
            short_predicted_job_is_backfilled(bridge)
            soft_limit_is_raised(bridge)
            bridge.cluster.stop()
            bridge.start([])
            predicted_priorities_give_shortest_first(bridge)
        finally:
            bridge.cluster.stop()
    print("backfill, soft limit, shortest first, order as simulated: as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
