#!/usr/bin/env python3
"""A Slurm cluster on one machine, for trying schedulers out: one controller, a few virtual nodes on loopback, and GPUs
that are ordinary files. Nothing outside its folder is touched and no service of the system is used.

    virtual_cluster.py start FOLDER [--nodes 4] [--gpus 2] [--submit job_submit.lua] [--set NAME=VALUE]
    eval "$(virtual_cluster.py env FOLDER)"     # then sinfo, sbatch, squeue and scontrol talk to it
    virtual_cluster.py stop FOLDER

Needs Debian's slurm-wlm and munge (22.05 is what it was written for). It runs as root or as an ordinary user; jobs run
as the user who started it. What makes it work without cgroups, systemd or a device: a private munged, a port for each
slurmd, SlurmdParameters=config_overrides (nodes may claim more than the machine has), proctrack/linuxproc,
task/none, and gres.conf with File= on empty files.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

MISSING = 77  # exit status where Slurm is not installed
PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "scontrol", "sinfo")


def program(name: str) -> str:
    """Finds a program; the daemons stand in folders that ordinary users do not search."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin")
    return found or ""


def missing_programs() -> list[str]:
    return [name for name in PROGRAMS if not program(name)]


def free_ports(count: int) -> list[int]:
    """Ports that are free now; they are held until all are known, so that none comes twice."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class VirtualCluster:
    """The files and processes of one cluster below `folder`."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder.absolute()

    def environment(self) -> dict[str, str]:
        """What Slurm's commands need to find this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def write(self, nodes: int, gpus: int, submit: pathlib.Path | None = None,
              settings: list[str] | None = None, further: list[str] | None = None) -> None:
        """Writes the configuration; `settings` replace those of the script `submit`, as 'name = value'.

        `further` lines are added to slurm.conf; a line that sets what is set already takes its place.

        A folder is short-lived: what an earlier cluster left in it is replaced.
        """
        for name in ("state", "log", "run", "gpu"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        ports = free_ports(nodes + 1)
        user = pwd.getpwuid(os.geteuid()).pw_name
        node_lines = []
        for node in range(nodes):
            (self.folder / "state" / f"node{node}").mkdir()
            for gpu in range(gpus):
                (self.folder / "gpu" / f"node{node}-{gpu}").touch()
            node_lines.append(
                f"NodeName=node{node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={ports[node + 1]} "
                f"CPUs={max(gpus, 1)} RealMemory=65536 Gres=gpu:{gpus} State=UNKNOWN"
            )
        submit_line = ""
        if submit is not None:
            # Slurm reads job_submit.lua from the folder of slurm.conf.
            text = submit.read_text()
            for setting in settings or []:
                name = setting.split("=")[0].strip()
                text, found = re.subn(rf"(?m)^  {re.escape(name)} = .*$", lambda _: f"  {setting},", text)
                if found != 1:
                    raise RuntimeError(f"{submit} has no setting called '{name}'")
            (self.folder / "job_submit.lua").write_text(text)
            submit_line = "JobSubmitPlugins=lua"
        (self.folder / "gres.conf").write_text(
            "".join(f"NodeName=node{n} Name=gpu File={self.folder}/gpu/node{n}-{g}\n"
                    for n in range(nodes) for g in range(gpus)))
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (self.folder / "slurm.conf").write_text(f"""\
ClusterName=virtual
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={self.folder}/run/munge.socket
CryptoType=crypto/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/state/%n
SlurmctldPidFile={self.folder}/run/slurmctld.pid
SlurmdPidFile={self.folder}/run/slurmd-%n.pid
SlurmctldLogFile={self.folder}/log/slurmctld.log
SlurmdLogFile={self.folder}/log/slurmd-%n.log
SlurmctldDebug=info
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
PropagateResourceLimits=NONE
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1024
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,bf_resolution=1,bf_window=1440,bf_continue,sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
PriorityType=priority/basic
MinJobAge=3600
KillWait=2
OverTimeLimit=0
MailProg=/bin/true
JobCompType=jobcomp/filetxt
JobCompLoc={self.folder}/log/jobcomp.txt
AccountingStorageType=accounting_storage/none
SlurmctldTimeout=10
SlurmdTimeout=60
{submit_line}
{chr(10).join(node_lines)}
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
""")
        for line in further or []:
            self._add_line(line)
        (self.folder / "log" / "jobcomp.txt").touch()

    def _add_line(self, line: str) -> None:
        """Partitions and nodes are added; anything else replaces the line that sets it."""
        file = self.folder / "slurm.conf"
        name = line.split("=")[0]
        kept = [old for old in file.read_text().splitlines()
                if name in ("PartitionName", "NodeName") or old.split("=")[0] != name]
        file.write_text("\n".join([*kept, line]) + "\n")

    def start(self, nodes: int, patience: float = 20.0) -> None:
        """Starts the daemons and waits until every node is idle. Raises RuntimeError with the logs' ends if not."""
        key = self.folder / "run" / "munge.key"
        subprocess.run([program("mungekey"), "--create", f"--keyfile={key}"], check=True, capture_output=True)
        key.chmod(0o400)
        self._launch("munged", [
            program("munged"), "--foreground", "--force", f"--key-file={key}",
            f"--socket={self.folder}/run/munge.socket", f"--pid-file={self.folder}/run/munge.pid",
            f"--seed-file={self.folder}/run/munge.seed", f"--log-file={self.folder}/log/munged.log"])
        self._wait(lambda: (self.folder / "run" / "munge.socket").exists(), patience, "munged")
        self.start_controller()
        for node in range(nodes):
            self._launch(f"slurmd-{node}", [
                program("slurmd"), "-D", "-N", f"node{node}", "-f", f"{self.folder}/slurm.conf"])
        self._wait(lambda: self._idle_nodes() == nodes, patience, "the nodes")

    def start_controller(self) -> None:
        """Also after stop_controller(): it goes on where it ended."""
        self._launch("slurmctld", [program("slurmctld"), "-D", "-i", "-f", f"{self.folder}/slurm.conf"])

    def stop_controller(self, patience: float = 30.0) -> None:
        """Ends the controller alone, as a restart of its service does; jobs and nodes stay."""
        pid = int((self.folder / "run" / "slurmctld.process").read_text())
        os.kill(pid, signal.SIGTERM)
        self._wait(lambda: not _alive(pid), patience, "the controller's end")

    def stop(self) -> None:
        """Ends the jobs, then what start() began, by the process ids it wrote down."""
        self._end_jobs()
        own = sorted((self.folder / "run").glob("*.process"), reverse=True)
        for file in own:
            try:
                os.kill(int(file.read_text()), signal.SIGTERM)
            except (ProcessLookupError, ValueError):
                pass
        deadline = time.monotonic() + 10
        for file in own:
            pid = int(file.read_text())
            while time.monotonic() < deadline and _alive(pid):
                time.sleep(0.05)
            if _alive(pid):
                os.kill(pid, signal.SIGKILL)
            file.unlink()

    def _end_jobs(self, patience: float = 10.0) -> None:
        """A job that outlives its controller would try to report to it for ever."""
        if not (self.folder / "run" / "slurmctld.process").exists():
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            active = self._ask("squeue", "-h", "-o", "%i")
            if not active:
                return
            self._ask("scancel", *active.split())
            time.sleep(0.2)

    def _ask(self, name: str, *words: str) -> str:
        """What a command of Slurm prints; nothing where the controller does not answer."""
        try:
            return subprocess.run([program(name), *words], capture_output=True, text=True, timeout=10, check=False,
                                  env={**os.environ, **self.environment()}).stdout.strip()
        except subprocess.TimeoutExpired:
            return ""

    def _launch(self, name: str, command: list[str]) -> None:
        with open(self.folder / "log" / f"{name}.out", "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env={**os.environ, **self.environment()}, start_new_session=True)
        (self.folder / "run" / f"{name}.process").write_text(str(process.pid))

    def _idle_nodes(self) -> int:
        # A node is listed once for each of its partitions.
        return sum(line.endswith(" idle") for line in set(self._ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines()))

    def _wait(self, ready: object, patience: float, what: str) -> None:
        deadline = time.monotonic() + patience
        while not ready():  # type: ignore[operator]
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come up in {patience:.0f} s\n{self._log_ends()}")
            time.sleep(0.1)

    def _log_ends(self) -> str:
        ends = []
        for file in sorted((self.folder / "log").iterdir()):
            lines = file.read_text(errors="replace").splitlines()[-2:]
            ends += [f"{file.name}: {line}" for line in lines]
        return "\n".join(ends)


def _alive(pid: int) -> bool:
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["start", "env", "stop"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--gpus", type=int, default=2, help="of each node")
    parser.add_argument("--submit", type=pathlib.Path, help="a job_submit.lua")
    parser.add_argument("--set", action="append", metavar="NAME=VALUE",
                        help="""a setting of the script in Lua, such as 'predictions="/tmp/predictions.csv"'""")
    given = parser.parse_args()
    cluster = VirtualCluster(given.folder)
    if given.what == "env":
        print("\n".join(f"export {name}={value}" for name, value in cluster.environment().items()))
    elif given.what == "stop":
        cluster.stop()
    else:
        if missing_programs():
            print(f"not installed: {', '.join(missing_programs())}; apt-get install slurm-wlm munge", file=sys.stderr)
            return MISSING
        try:
            cluster.write(given.nodes, given.gpus, given.submit, given.set)
            cluster.start(given.nodes)
        except RuntimeError as fault:
            cluster.stop()
            print(fault, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
