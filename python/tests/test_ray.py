"""Sweeps on a real Ray cluster of this machine: the same rows, also where a worker is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, List

import needs_native  # noqa: F401
import pytest

import forerun as fr

ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install ray")

PACKAGE = Path(fr.__file__).resolve().parents[1]
CAPTURE = PACKAGE.parent / "tests/corpus/run_record/parametric.jsonl"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers. Sweeps of this process go to it, and leave it running."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_rows_are_those_of_one_machine(cluster: None) -> None:
    words: Any = {"gpu": ["l4", "t4"], "batch": fr.powers(1, 8), "samples": 1e6, "price": {"l4": 0.7, "t4": 0.3}}
    assert fr.sweep("resnet18", engine="ray", **words) == fr.sweep("resnet18", **words)
    assert fr.sweep(CAPTURE, batch=[3, 5, 7], engine="ray") == fr.sweep(CAPTURE, batch=[3, 5, 7])


def test_a_killed_worker_loses_nothing(cluster: None) -> None:
    killed: List[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 30
        while not killed and time.monotonic() < deadline:
            for pid in _working():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one)
    killer.start()
    runs = fr.sweep("resnet50", batch=list(range(1, 201)), engine="ray")
    killer.join()
    assert killed
    assert runs == fr.sweep("resnet50", batch=list(range(1, 201)))


def _working() -> List[int]:
    """Processes of Ray's workers that do a shard now."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,args="], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "ray::answer_shard" in line]


def test_what_is_wrong_is_told_as_on_one_machine(cluster: None) -> None:
    with pytest.raises(fr.InputError, match="did you mean"):
        fr.sweep("resnet18", bacth=4, batch=[1, 2], engine="ray")  # type: ignore[call-arg]
    with pytest.raises(fr.InputError, match="no engine 'dask'"):
        fr.sweep("resnet18", batch=[1, 2], engine="dask")
    with pytest.raises(fr.InputError, match="engine="):
        fr.sweep("resnet18", batch=[1, 2], ray_address="auto")


def test_ctrl_c_ends_the_tasks(cluster: None) -> None:
    def interrupt() -> None:
        while not _working():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        fr.sweep("resnet50", batch=list(range(1, 20001)), engine="ray")
    thread.join()
    deadline = time.monotonic() + 20
    while _working() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _working()


def test_a_cluster_that_is_not_there_is_told() -> None:
    """In a process of its own: this one may be connected."""
    program = (
        "import sys, forerun as fr\n"
        "for words in ({'engine': 'ray', 'ray_address': '127.0.0.1:1'}, {'engine': 'ray://127.0.0.1:1'}):\n"
        "    try: fr.sweep('resnet18', batch=[1, 2], **words)\n"
        "    except fr.InputError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=60)
    assert [line.count("cannot be reached") for line in done.stdout.splitlines()] == [1, 1], done.stdout


def test_a_cluster_that_is_lost_is_told() -> None:
    """Ray ends the process that talks to it; the one that asked goes on."""
    program = (
        "import forerun as fr\n"
        "try: fr.sweep('resnet50', batch=list(range(1, 20001)), engine='ray')\n"
        "except fr.InputError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "RAY_gcs_rpc_server_reconnect_timeout_s": "1"}
    asking = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 60
    while not (servers := _below(asking.pid, "gcs_server")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    for server in servers:
        os.kill(server, signal.SIGKILL)
    said = asking.communicate(timeout=60)[0]
    assert "the cluster was lost" in said and "ray status" in said, said


def _below(parent: int, name: str) -> List[int]:
    """Processes of that name that a process started, or one of those."""
    command = ["ps", "-e", "-o", "pid=,ppid=,comm="]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    family = {parent}
    while more := {int(pid) for pid, above, _ in rows if int(above) in family} - family:
        family |= more
    return [int(pid) for pid, _, comm in rows if int(pid) in family and comm.startswith(name)]


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "ray", None)
    with pytest.raises(fr.InputError, match="pip install ray"):
        fr.sweep("resnet18", batch=[1, 2], engine="ray")
