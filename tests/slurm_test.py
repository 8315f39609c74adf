#!/usr/bin/env python3
"""The Slurm bridge against a real Slurm: one controller and four virtual nodes with two file-backed GPUs each.

usage: slurm_test.py PROGRAM SOURCE-DIR     exit status 77 where slurm-wlm or munge is not installed

Shown: a job whose short time is predicted is backfilled past a waiting one, and one without prediction is not;
predicted priorities give shortest-job-first order; the simulator starts the jobs of a small trace in the same order as
Slurm; soft limits are set only while the watcher is at work, and are raised up to the hard limit and no further,
whatever users write; watcher and replay outlive a controller that is away; nothing that a user writes gives a priority
above those of predictions, or reaches a shell. Users' jobs are submitted as `nobody` where the test runs as root.
Nothing is decided by how fast the machine is: the order of starts is, and limits are minutes while jobs last seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

sys.dont_write_bytecode = True
LARGEST_PRIORITY = 32_000_000
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Bridge:
    """The program under test and a cluster to try it on."""

    def __init__(self, program: str, source: pathlib.Path, folder: pathlib.Path) -> None:
        import virtual_cluster  # type: ignore[import]
        self.program = program
        self.source = source
        self.folder = folder
        self.alive = folder / "alive"
        self.cluster = virtual_cluster.VirtualCluster(folder / "cluster")
        self.environment = {**os.environ, **self.cluster.environment()}
        self.as_user = NOBODY if os.geteuid() == 0 and shutil.which("setpriv") else []

    def start(self, settings: list[str], further: list[str] | None = None, nodes: int = 4) -> None:
        script = self.source / "examples" / "slurm" / "job_submit.lua"
        self.cluster.write(nodes, 2, script, [f'predictions = "{self.folder}/predictions.csv"',
                                              f'alive = "{self.alive}"', *settings], further)
        self.cluster.start(nodes, patience=60)

    def forerun(self, *words: str) -> str:
        done = subprocess.run([self.program, *words], env=self.environment, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"forerun {' '.join(words)}: {done.stderr}"
        return done.stdout

    def slurm(self, *words: str) -> str:
        done = subprocess.run(words, env=self.environment, text=True, capture_output=True, check=False, cwd="/")
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def submit(self, name: str, gpus: int, seconds: int, *words: str) -> int:
        """Submits as an ordinary user; gives the job's id."""
        answer = self.slurm(*self.as_user, "sbatch", "--parsable", "--job-name", name, "--output", "/dev/null",
                            "--ntasks", str(gpus), "--gpus-per-task", "1", *words, "--wrap", f"sleep {seconds}")
        return int(answer.split(";")[0])

    def jobs(self) -> list[dict]:
        raw = subprocess.run(["squeue", "--json", "--states=all"], env=self.environment, capture_output=True,
                             check=True)
        answer = json.loads(raw.stdout.decode(errors="replace"))
        assert not answer["errors"], answer["errors"]
        return answer["jobs"]

    def job(self, wanted: int) -> dict:
        return next(job for job in self.jobs() if job["job_id"] == wanted)

    def states(self) -> dict[str, str]:
        return {job["name"]: job["job_state"] for job in self.jobs()}

    def cancel_all(self) -> None:
        ids = [str(job["job_id"]) for job in self.jobs() if job["job_state"] in ("PENDING", "RUNNING")]
        if ids:
            self.slurm("scancel", *ids)
        self.wait_for("all is over", lambda: not {"PENDING", "RUNNING", "COMPLETING"} & set(self.states().values()))

    def wait_for(self, what: str, ready: object, patience: float = 90.0) -> None:
        deadline = time.monotonic() + patience
        while not ready():  # type: ignore[operator]
            assert time.monotonic() < deadline, f"{what}: did not happen"
            time.sleep(0.1)

    def started_before(self, first: str, second: str) -> bool:
        """Whether `first` started at all while `second` still waited."""
        states = self.states()
        return states.get(first) in ("RUNNING", "COMPLETING", "COMPLETED") and states.get(second) == "PENDING"

    @contextlib.contextmanager
    def background(self, name: str, *words: str) -> Iterator[subprocess.Popen]:
        """Runs the program beside; what it prints goes to NAME.out and NAME.err."""
        with open(self.folder / f"{name}.out", "w") as out, open(self.folder / f"{name}.err", "w") as err:
            process = subprocess.Popen([self.program, *words], env=self.environment, stdout=out, stderr=err)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=90)

    def printed(self, name: str) -> str:
        return (self.folder / name).read_text()


def predict_jobs(bridge: Bridge) -> None:
    """Jobs that name a model, or their duration; `unpredicted` is none of them."""
    jobs, out = bridge.folder / "jobs.csv", bridge.folder / "predictions.csv"
    heading = "id,model,batch,iterations,gpus,duration\n"
    jobs.write_text(heading + "short,resnet18,32,300,1,\ns3,,,,8,4000\ns2,,,,8,400\ns1,,,,8,40\nsoft,,,,1,5\n"
                    "long,,,,1,20000\n")
    bridge.forerun("slurm", "limits", str(jobs), "--startup", "10", "--out", str(out))
    text = out.read_text()
    rows = {line.split(",")[0]: line.split(",") for line in text.splitlines()[1:]}
    assert rows["short"][2] == "1", f"300 iterations of ResNet-18 fit in a minute: {rows['short']}"
    assert int(rows["short"][3]) > 100, f"memory of a GPU in MiB: {rows['short']}"
    assert list(rows) == sorted(rows), "job_submit.lua searches by halves"
    for bad in (heading, heading + "a,no_such_model,1,1,1,\n", heading + "a,,,,1,5\nb,,,,1,nan\n",
                heading + "a,,,,1,5\na,,,,1,6\n"):
        jobs.write_text(bad)
        done = subprocess.run([bridge.program, "slurm", "limits", str(jobs), "--out", str(out)], text=True,
                              capture_output=True, check=False)
        assert done.returncode == 1 and done.stderr, f"{bad!r}: {done}"
        assert out.read_text() == text, "a file that cannot be made anew stays"


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
    assert bridge.states()["short"] in ("COMPLETING", "COMPLETED")
    bridge.wait_for("all end", lambda: set(bridge.states().values()) == {"COMPLETED"})


def limits_are_lowered_while_watched_only(bridge: Bridge, watched: bool) -> None:
    """Held jobs: the limit that Slurm plans with, and the hard one that is noted."""
    def check(name: str, words: list[str], lowered: tuple[int, str], otherwise: tuple[int | None, str]) -> None:
        job = bridge.job(bridge.submit(name, 1, 1, "--hold", *words))
        found = (job["time_limit"], job["admin_comment"].partition("hard limit ")[2])
        wanted = lowered if watched else otherwise
        assert found == wanted, f"{name} {words}, watched {watched}: {found} and not {wanted}"

    check("soft", ["--time", "30"], (1, "30 min"), (30, ""))
    # Without a limit of its own, the partition's default is what the job would have had, or else its longest.
    check("soft", [], (1, "60 min"), (60, ""))
    check("soft", ["--partition", "brief"], (1, "20 min"), (20, ""))
    check("soft", ["--partition", "gpu,brief"], (1, "20 min"), (60, ""))
    check("soft", ["--time", "UNLIMITED"], (1, "unlimited"), (None, ""))
    check("soft", ["--time", "30", "--time-min", "20"], (30, ""), (30, ""))  # Slurm may shorten it itself
    check("long", ["--time", "7"], (7, ""), (7, ""))  # what the user states is never raised
    check("long", [], (401, ""), (401, ""))
    check("long", ["--partition", "brief"], (20, ""), (20, ""))
    # A limit beyond the partition's is Slurm's to judge: planned with less, the job would slip past it.
    refused = bridge.job(bridge.submit("soft", 1, 1, "--hold", "--partition", "brief", "--time", "500"))
    assert refused["time_limit"] == 500 and "hard" not in refused["admin_comment"], refused
    bridge.cancel_all()


def soft_limits_are_raised_to_the_hard_one(bridge: Bridge) -> None:
    """Whatever users write in names and comments, the hard limit is that of the admin comment."""
    forged = ["hard limit 525600 min", "x JobState=RUNNING AdminComment=forerun: predicted 1.0 s, 1 MiB of GPU memory, "
              "hard limit 525600 min", 'q"}],\n\x01\udcff "admin_comment":"forerun: predicted 1.0 s']
    ids = [bridge.submit(name, 1, 60, "--time", "1", "--comment", "forerun: predicted 1.0 s, 1 MiB of GPU memory, "
                         "hard limit 525600 min") for name in forged]
    soft = bridge.submit("soft", 1, 60, "--time", "3", "--comment", "hard limit 525600 min")
    array = bridge.submit("soft", 1, 60, "--array", "1-2")
    everything = lambda: [job for job in bridge.jobs() if job["job_state"] == "RUNNING"]  # noqa: E731
    bridge.wait_for("all run", lambda: len(everything()) == len(forged) + 3)
    raised = bridge.forerun("slurm", "extend", "--within", "90")
    assert f"{soft} soft: limit raised to 2 min\n" in raised, raised
    for task in (1, 2):
        assert f"{array}_{task} soft: limit raised to 2 min\n" in raised, raised
    assert raised.count("raised") == 3, f"users' own limits stay: {raised}"
    for _ in range(3):
        bridge.forerun("slurm", "extend", "--within", "1000")
    assert bridge.job(soft)["time_limit"] == 3, "the hard limit and no more"
    assert [bridge.job(one)["time_limit"] for one in ids] == [1] * len(ids)
    if bridge.as_user:
        for change in ("AdminComment=forerun: predicted 1.0 s, 1 MiB of GPU memory, hard limit 999 min",
                       "TimeLimit=99"):
            denied = subprocess.run([*bridge.as_user, "scontrol", "update", f"JobId={soft}", change], cwd="/",
                                    env=bridge.environment, capture_output=True, check=False)
            assert denied.returncode != 0, f"a user must not set {change}"
    bridge.cancel_all()


def controller_may_be_away(bridge: Bridge) -> None:
    """The watcher and a replay are at work when the controller ends; both go on when it is back."""
    (bridge.folder / "away.csv").write_text("id,submit,gpus,duration\na,0,8,2\nb,1,8,2\nc,2,8,1\nd,5,4,1\n")
    with bridge.background("replay", "slurm", "replay", str(bridge.folder / "away.csv"), "--json") as replay:
        bridge.wait_for("a runs", lambda: bridge.states().get("a") == "RUNNING")
        bridge.cluster.stop_controller()
        written = bridge.alive.read_text() if bridge.alive.exists() else ""
        for name in ("watch.err", "replay.err"):
            bridge.wait_for(f"{name} tells", lambda: "trying again" in bridge.printed(name))
        bridge.cluster.start_controller()
        replay.wait(timeout=120)
        answer = json.loads(bridge.printed("replay.out"))
        assert replay.returncode == 0 and answer["complete"] and answer["away_seconds"] > 0, answer
        assert [job["state"] for job in answer["jobs"]] == ["COMPLETED"] * 4, answer
        assert len({job["slurm_id"] for job in answer["jobs"]}) == 4
        names = [job["name"] for job in bridge.jobs()]
        assert all(names.count(name) == 1 for name in "abcd"), f"none is submitted twice: {names}"
    bridge.wait_for("the watcher is back", lambda: "all is well again" in bridge.printed("watch.err"))
    bridge.wait_for("its file is renewed", lambda: bridge.alive.exists() and bridge.alive.read_text() != written)


def watcher_that_stops_gives_limits_back(bridge: Bridge, watch: subprocess.Popen) -> None:
    running, held = bridge.submit("soft", 1, 60), bridge.submit("soft", 1, 60, "--hold", "--time", "UNLIMITED")
    bridge.wait_for("it runs", lambda: bridge.job(running)["job_state"] == "RUNNING")
    assert bridge.job(running)["time_limit"] == 1
    watch.send_signal(signal.SIGTERM)
    assert watch.wait(timeout=90) == 0, bridge.printed("watch.err")
    assert not bridge.alive.exists()
    assert (bridge.job(running)["time_limit"], bridge.job(held)["time_limit"]) == (60, None), "their hard limits"
    bridge.cancel_all()


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


def stopped_replay_cancels_its_own(bridge: Bridge) -> None:
    other = bridge.submit("bystander", 1, 100, "--hold")
    (bridge.folder / "stopped.csv").write_text("id,submit,gpus,duration\n--x $(id),0,8,100\ny,0,8,100\nz,1000,1,1\n")
    with bridge.background("stopped", "slurm", "replay", str(bridge.folder / "stopped.csv"), "--json") as replay:
        bridge.wait_for("the first runs", lambda: bridge.states().get("--x $(id)") == "RUNNING")
        bridge.wait_for("the second waits", lambda: "y" in bridge.states())
        replay.send_signal(signal.SIGINT)
        assert replay.wait(timeout=90) == 1
    answer = json.loads(bridge.printed("stopped.out"))
    assert not answer["complete"] and answer["cancelled"] == 2 and answer["other_jobs"] == 1, answer
    x, y, z = answer["jobs"]
    assert x["start"] >= 0 and "start" not in y and z["state"] == "UNSUBMITTED", answer
    bridge.wait_for("its jobs end", lambda: bridge.states()["--x $(id)"] == bridge.states()["y"] == "CANCELLED")
    assert bridge.job(other)["job_state"] == "PENDING", "a job of somebody else"
    bridge.cancel_all()


def write_wrapper(bridge: Bridge) -> pathlib.Path:
    """A program that fails in the ways a program can, by what it is asked."""
    wrapper = bridge.folder / "program of $HOME's"
    wrapper.write_text(f"""#!/bin/sh
case "$*" in
*model=slow*) sleep 300 ;;
*model=empty*) ;;
*model=garbage*) echo 'job,seconds,time_limit_min,memory_mib,priority,fits'; echo 'x,nan,1,1,4294901757,yes' ;;
*model=blank*) echo; echo ;;
*model=failing*) echo 'job,seconds,time_limit_min,memory_mib,priority,fits'; echo 'x,1.0,1,1,5000,yes'; exit 1 ;;
*) exec '{bridge.program}' "$@" ;;
esac
""")
    wrapper.chmod(0o755)
    return wrapper


def no_comment_jumps_the_queue(bridge: Bridge) -> None:
    """What cannot be predicted, and what makes no sense, has the priority of unpredicted jobs."""
    def priority_of(text: str) -> int:
        return bridge.job(bridge.submit("described", 1, 1, "--comment", "forerun:" + text))["priority"]

    shutil.copy(bridge.source / "tests" / "corpus" / "onnx" / "small_cnn.onnx", bridge.folder / "small.onnx")
    good = ["model=resnet18 batch=32 iterations=300", "model=resnet18 batch=8 iterations=300 set=image=128;classes=10",
            "model=resnet18 batch=8 iterations=300 optimizer=adamw:lr=0.1,impl=fused",
            f"model={bridge.folder}/small.onnx iterations=300"]
    for text in good:
        assert 1 < priority_of(text) <= LARGEST_PRIORITY, f"{text!r}: priority {priority_of(text)}"
    canary = bridge.folder / "canary"
    bad = ["model=x", "model=resnet18", "model=resnet18 iterations=1e30", "model=resnet18 iterations=1e12 batch=64",
           "model=resnet18 iterations=100 batch=1000000000", "model=resnet18 iterations=-5",
           "model=resnet18 iterations=nan", "model=resnet18 iterations=10 iterations=1",
           "model=/etc/passwd iterations=10", "model=", "", " ", "model=empty", "model=garbage", "model=blank",
           "model=failing"]
    bad += [f"{text}model=resnet18 iterations=10" for text in (
        f"';touch {canary};' ", f"$(touch {canary}) ", f"`touch {canary}` ", f'";touch {canary};" ',
        f"|touch {canary} ", f"x=1\ntouch {canary}\n", f"&& touch {canary} ", f"> {canary} ",
        f"\\';touch {canary};' ", "--help ", "-h ")]
    for text in [*bad, "model=slow"]:
        assert priority_of(text) == 1, f"{text!r}: priority {priority_of(text)}"
    assert not canary.exists(), "a comment reached a shell"
    # Who asked what took too long has to wait before anything else is asked; what is known is answered.
    assert priority_of("model=resnet18 batch=16 iterations=300") == 1
    assert priority_of(good[0]) > 1


def rows_that_make_no_sense_are_not_believed(bridge: Bridge) -> None:
    """A file of many rows is searched by halves; what is wrong in it changes no job."""
    heading = "job,seconds,time_limit_min,memory_mib,priority,fits\n"
    good = [f"{name},5.0,1,0,{1000 + i},yes" for i, name in enumerate(sorted(
        ["a", "zz", "Z-1", *(f"job{n}" for n in range(20000))]))]
    bad = ["e1,5.0,1,0,4294901757,yes", "e2,nan,1,0,500,yes", "e3,5.0,-1,0,500,yes", "e4,5.0,1,0,,yes", "e5,5.0,1,0",
           "e6,5.0,1,0,inf,yes", "e7,5.0,1,0,0x1000,yes", "e8", "e9,5.0,1,90000,500,no"]
    predictions = bridge.folder / "predictions.csv"
    before = predictions.read_text()
    predictions.write_text(heading + "\n".join(sorted(good + bad)) + "\n")
    wanted = {row.split(",")[0]: int(row.split(",")[4]) for row in good}
    for name in ("a", "zz", "Z-1", "job0", "job9999", "job12345"):
        assert bridge.job(bridge.submit(name, 1, 1))["priority"] == wanted[name], name
    for row in bad:
        job = bridge.job(bridge.submit(row.split(",")[0], 1, 1))
        assert job["priority"] == 1 and job["time_limit"] == 60, f"{row}: {job['priority']}, {job['time_limit']}"
    for name in ("nobody knows", "a,5.0", "job", "job1234567"):
        assert bridge.job(bridge.submit(name, 1, 1))["priority"] == 1, name
    predictions.write_text(heading + "\n".join(reversed(good)) + "\n")
    assert bridge.job(bridge.submit("a", 1, 1))["priority"] == 1
    assert "not sorted" in (bridge.cluster.folder / "log" / "slurmctld.log").read_text()
    predictions.write_text(heading + "b,5.0,1,0,77,yes\na,5.0,1,0,78,yes\n")
    assert bridge.job(bridge.submit("a", 1, 1))["priority"] == 78, "a short file need not be sorted"
    predictions.write_text(before)


def priorities_as_a_factor(bridge: Bridge) -> None:
    """With priority/multifactor a prediction adds 20000 at most, and none takes a job past one that has it."""
    bridge.submit("holder", 2, 100)
    ids = [bridge.submit(name, 2, 1) for name in ("nobody", "long", "soft")]
    bridge.wait_for("priorities are counted", lambda: bridge.job(ids[2])["priority"] > 1)
    nobody, long, soft = (bridge.job(one)["priority"] for one in ids)
    assert nobody < long < soft <= 20001, (nobody, long, soft)


def check_units(bridge: Bridge) -> str:
    """The systemd units, with the program under test in place of the installed one."""
    if not shutil.which("systemd-analyze"):
        return "units not checked: systemd-analyze is not installed"
    for unit in sorted((bridge.source / "examples" / "slurm").glob("*.service")):
        text = unit.read_text().replace("/usr/local/bin/forerun", bridge.program)
        (bridge.folder / unit.name).write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", str(bridge.folder / unit.name)], text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0 and unit.name not in done.stderr, f"{unit.name}: {done.stderr}"
        for line in text.splitlines():
            if line.startswith("Exec"):
                words = line.partition("=")[2].lstrip("-").split()[1:]
                bridge.forerun(*words, "--help")  # options that are not there would fail
    return "units verified"


def run_all(bridge: Bridge) -> None:
    predict_jobs(bridge)
    bridge.start(["priority = nil", "soft = true"],
                 ["PartitionName=brief Nodes=ALL MaxTime=20 State=UP", "EnforcePartLimits=NO"])
    limits_are_lowered_while_watched_only(bridge, watched=False)
    with bridge.background("watch", "slurm", "extend", "--watch", "1", "--within", "2", "--alive",
                           str(bridge.alive)) as watch:
        bridge.wait_for("the watcher is at work", bridge.alive.exists)
        limits_are_lowered_while_watched_only(bridge, watched=True)
        soft_limits_are_raised_to_the_hard_one(bridge)
        controller_may_be_away(bridge)
        watcher_that_stops_gives_limits_back(bridge, watch)
    bridge.cluster.stop()
    bridge.start(["soft = true", "priority = nil"])
    with bridge.background("watch", "slurm", "extend", "--watch", "1", "--within", "2", "--alive", str(bridge.alive)):
        bridge.wait_for("the watcher is at work", bridge.alive.exists)
        short_predicted_job_is_backfilled(bridge)
    bridge.cluster.stop()
    socket = bridge.folder / "ask.socket"
    bridge.start([f'program = "{write_wrapper(bridge)}"', f'socket = "{socket}"', "patience = 10"],
                 ["MessageTimeout=60"])
    predicted_priorities_give_shortest_first(bridge)
    stopped_replay_cancels_its_own(bridge)
    bridge.submit("holder", 8, 300)
    with bridge.background("serve", "slurm", "serve", "--socket", str(socket), "--seconds", "10"):
        bridge.wait_for("it listens", lambda: "listening" in bridge.printed("serve.err"))
        no_comment_jumps_the_queue(bridge)
    rows_that_make_no_sense_are_not_believed(bridge)
    bridge.cluster.stop()
    bridge.start(['priority = "site_factor"'], ["PriorityType=priority/multifactor"], nodes=1)
    priorities_as_a_factor(bridge)


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
            run_all(bridge)
        finally:
            bridge.cluster.stop()
        units = check_units(bridge)
    users = "as nobody" if bridge.as_user else "as the user of the test: other users need root and setpriv"
    print(f"backfill, soft limits, a controller away, priorities, comments: as expected; {units}; submitted {users}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
