"""Policies that users bring, in Python and as shared libraries: the same schedule as a built-in one, and a clear word to
those that crash, hang or ask for what cannot be.

    own_policy_test.py PROGRAM SOURCE_FOLDER COMPILER
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

TYPED = ["--gpus", "a100=4,v100=8"]
HEAD = "#include <forerun_policy.h>\nuint32_t forerun_policy_abi(void) { return FORERUN_POLICY_ABI; }\n"

# What a Python policy does, and what is said to it.
PYTHON = {
    "raises": ("def schedule(cluster):\n    return 1 // 0\n", "raises.py:2: ZeroDivisionError"),
    "does not parse": ("def schedule(cluster:\n", "SyntaxError"),
    "has no schedule": ("def plan(cluster):\n    pass\n", "does not define schedule(cluster)"),
    "exits": ("import os\ndef schedule(cluster):\n    os._exit(7)\n", "ended by itself, with exit code 7"),
    "crashes": ("import os, signal\ndef schedule(cluster):\n    os.kill(os.getpid(), signal.SIGSEGV)\n", "crashed: signal 11"),
    "starts a job twice": ("def schedule(cluster):\n    cluster.start(cluster.waiting[0], 'v100')\n"
                           "    cluster.start(cluster.running[0], 'v100')\n", "which runs already"),
    "starts everything": ("def schedule(cluster):\n    for job in cluster.waiting:\n        cluster.start(job, 'v100')\n",
                          "GPUs of v100, of which"),
    "wants more GPUs": ("def schedule(cluster):\n    cluster.start(cluster.waiting[0], 'v100', gpus=3)\n",
                        "with 3 GPUs, and it asks for 1"),
    "names a type that is none": ("def schedule(cluster):\n    cluster.start(cluster.waiting[0], 'h900')\n",
                                  "the types are a100, v100"),
    "names a job that is none": ("class Job:\n    number, type, gpus, predicted = 77, None, 1, {'v100': 1}\n"
                                 "def schedule(cluster):\n    cluster.start(Job, 'v100')\n",
                                 "job number 77, and there is no such job"),
    "stops what waits": ("def schedule(cluster):\n    cluster.preempt(cluster.waiting[0])\n", "which does not run"),
    "wakes in the past": ("def schedule(cluster):\n    cluster.wake_at(cluster.now)\n", "ask for a later time"),
    "answers nonsense": ("import os\ndef schedule(cluster):\n    os.write(3, b'begin 1 2\\n')\n", "answered 'begin 1 2'"),
    "starts nothing": ("def schedule(cluster):\n    print('nothing')\n", "left 40 of 40 jobs waiting for ever"),
    "hangs": ("def schedule(cluster):\n    while True:\n        pass\n", "gave no answer in time"),
}

# The same of libraries.
LIBRARY = {
    "crashes": ("void forerun_policy_schedule(forerun_cluster* c) { c->start(c, 0, 0, 0); }", "crashed: signal 11"),
    "exits": ("#include <stdlib.h>\nvoid forerun_policy_schedule(forerun_cluster* c) { exit(c->types > 0 ? 3 : 4); }",
              "exit code 3"),
    "hangs": ("void forerun_policy_schedule(forerun_cluster* c) { while (c->types) {} }", "gave no answer in time"),
    "starts a job twice": ("void forerun_policy_schedule(forerun_cluster* c) {\n"
                           "  for (int i = 0; i < 2; ++i) c->start(c, c->waiting[0], 1, 0);\n}", "which runs already"),
    "names a type that is none": ("void forerun_policy_schedule(forerun_cluster* c) { c->start(c, c->waiting[0], 9, 0); }",
                                  "on type 9, and there is no such type"),
    "has no schedule": ("", "does not define forerun_policy_schedule()"),
}


def ask(program: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([program, "schedule", *arguments], text=True, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class Checks:
    def __init__(self, program: str, source: str, compiler: str, folder: pathlib.Path) -> None:
        self.program, self.source, self.compiler, self.folder = program, pathlib.Path(source), compiler, folder
        self.jobs = [str(self.source / "examples/jobs.csv"), *TYPED]

    def library(self, name: str, text: str) -> str:
        path = self.folder / f"{name.replace(' ', '_')}.so"
        header = str(self.source / "src/cluster/external")
        subprocess.run([self.compiler, "-x", "c", "-std=c99", "-Wall", "-Werror", "-shared", "-fPIC", "-I", header, "-o",
                        str(path), "-"], input=text, text=True, check=True)
        return str(path)

    def rows(self, jobs: list[str], policy: str) -> list[str]:
        """What became of every job, without the name of the policy."""
        out = self.folder / "jobs_out.csv"
        code, _, errors = ask(self.program, *jobs, "--policy", policy, "--jobs-out", str(out))
        assert code == 0, errors
        return [line.split(",", 1)[1] for line in out.read_text().splitlines()]

    def same_schedule(self) -> None:
        own = [str(self.source / "examples/policies/shortest_first.py"),
               self.library("shortest_first", (self.source / "examples/policies/shortest_first.c").read_text())]
        cases = [self.jobs, [*self.jobs, "--failure-hours", "30", "--predictor", "error:40"],
                 ["--synthetic", "jobs=3000,gpus=64,seed=3"]]
        philly = pathlib.Path(os.environ.get("FORERUN_DATASETS", "")) / "cluster/philly/philly.csv.gz"
        if philly.is_file():
            cases.append([str(philly), "--format", "philly", "--from", "2017-10-09", "--to", "2017-10-10", "--max-gpus",
                          "64", "--gpus", "120"])
        for case in cases:
            expected = self.rows(case, "sjf")
            assert expected != self.rows(case, "fifo"), "a case that tells no policies apart"
            for policy in own:
                assert self.rows(case, policy) == expected, f"{policy} is not sjf on {case}"

    def header_is_cpp(self) -> None:
        path = self.source / "src/cluster/external/forerun_policy.h"
        subprocess.run([self.compiler, "-x", "c++", "-Wall", "-Werror", "-fsyntax-only", str(path)], check=True)

    def refused(self, policy: str, said: str, name: str) -> None:
        begin = time.monotonic()
        code, out, errors = ask(self.program, *self.jobs, "--policy", policy + ":timeout=2", "--json")
        assert code == 1 and not out, f"{name}: exit code {code}\n{out}\n{errors}"
        assert said in errors, f"{name}: '{said}' is not in\n{errors}"
        assert time.monotonic() - begin < 20, f"{name} took long"

    def preempts(self) -> None:
        """A policy that stops, wakes up and keeps what it knows: every job gets 600 seconds at a time."""
        path = self.folder / "round_robin.py"
        path.write_text("""def schedule(cluster):
    for job in cluster.running:
        if cluster.now - job.since >= 599.999 and cluster.waiting:
            cluster.preempt(job)
    for job in sorted(cluster.waiting, key=lambda job: (job.attained, job.number)):
        if cluster.fastest_free(job):
            cluster.start(job)
    if cluster.running:
        cluster.wake_at(cluster.now + 600)
""")
        rows = [row.split(",") for row in self.rows(self.jobs, str(path))]
        heading = rows[0]
        stops = sum(int(row[heading.index("preemptions")]) for row in rows[1:])
        assert stops > 40 and all(row[heading.index("finished")] == "yes" for row in rows[1:]), stops


def main(program: str, source: str, compiler: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(program, source, compiler, pathlib.Path(folder))
        checks.header_is_cpp()
        checks.same_schedule()
        checks.preempts()
        for name, (text, said) in PYTHON.items():
            path = pathlib.Path(folder, name.replace(" ", "_") + ".py")
            path.write_text(text)
            checks.refused(str(path), said, name)
        for name, (text, said) in LIBRARY.items():
            checks.refused(checks.library("hostile " + name, HEAD + text), said, name)
        old = checks.library("old", HEAD.replace("FORERUN_POLICY_ABI;", "99;") + LIBRARY["hangs"][0])
        checks.refused(old, "is of ABI 99", "another ABI")
        no_library = pathlib.Path(folder, "text.so")
        no_library.write_text("no library")
        checks.refused(str(no_library), "cannot be loaded", "a file that is no library")
        checks.refused(str(pathlib.Path(folder, "nowhere.py")), "there is no file", "no file")
        code, _, errors = ask(program, *checks.jobs, "--policy", str(no_library) + ":speed=2")
        assert code == 1 and "timeout" in errors, errors
    print("own policies schedule as built-in ones, and hostile ones are told so")


if __name__ == "__main__":
    main(*sys.argv[1:])
