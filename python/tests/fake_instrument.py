"""An instrument without a GPU: what becomes of a configuration is written in its args.

args.act is ok, oom, raise, flaky (raises the first time), exit, crash, hang, nan, foreign or incomplete; args.ms is how
long it takes. In the file FORERUN_TEST_BEGUN each measurement that begins is noted as a line "pid-of-worker id".
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any, Dict

from forerun.configuration import Configuration

ENVIRONMENT = {"gpu": "no", "torch": "0", "cuda": "0", "cudnn": 0, "driver": "0", "cpu": "x", "host": "h", "date": "d"}
RUN = {"precision": "fp32", "channels_last": False, "cudnn_benchmark": False,
       "optimizer": {"name": "SGD", "impl": "foreach", "lr": 0.1, "momentum": 0.0, "weight_decay": 0.0}}


def configuration(number: int, act: str = "ok", ms: float = 2, padding: int = 0) -> Configuration:
    args = {"act": act, "ms": ms, "padding": padding}
    return Configuration(f"fake-{number:04d}", "fake", args, ("flat", 8, 4, 0, 2), RUN)


def whole_record(id: str = "fake-0000") -> Dict[str, Any]:
    """A small run/2 record that has everything: y = relu(x @ w), one kernel each, and an update."""
    return {
        "schema": "run/2", "id": id, "backend": "cuda", "family": "fake", "args": {}, "input": ["flat", 8, 4, 0, 2],
        "run": RUN, "env": ENVIRONMENT, "host_us": {"add": 4.5, "backward": {"add": 9.0}}, "status": "ok",
        "params": 8, "param_tensors": 1, "mem": {"peak_allocated": 1024}, "mem_init": 512, "base_allocated": 0,
        "time_ms": {"synced": [1.0], "synced_median": 1.0, "pipelined": [0.9], "pipelined_median": 0.9},
        "op_names": ["aten.mm.default", "aten.relu.default", "aten.add_.Tensor"], "modules": ["", "fc"],
        "module_types": {"": "Net", "fc": "Linear"}, "dtypes": ["float32"], "shapes": [[8, 4], [4, 2], [8, 2], [1, 4]],
        "attributes": [{}, {"alpha": -0.1}], "nodes": ["MmBackward0"],
        "tensors": {"storage": [0, 1, 2, 3], "dtype": [0, 0, 0, 0], "shape": [0, 1, 2, 2], "strides": [-1, 3, -1, -1],
                    "offset": [0, 0, 0, 0]},
        "ops": {"name": [0, 1, 2], "phase": "fbu", "module": [1, 0, -1], "inputs": [[0, 1], [2], [1]],
                "outputs": [[2], [3], [1]], "attributes": [0, 0, 1], "sequence": [0, 1, 2], "node": [-1, 0, -1]},
        "storages": {"bytes": [512, 512, 512, 512], "host": []}, "frees": {"op": [2, 3], "storage": [2, 3]},
        "roots": {"storage": [0, 1], "kind": "ip", "name": ["x", "fc.weight"]},
        "kernel_names": ["gemm", "relu", "add"],
        "kernels": {"name": [0, 1, 2], "start": [10, 20, 20], "ns": [9, 8, 7], "stream": [7, 7, 7], "launch": [1, 5, 5],
                    "launch_ns": [3, 3, 3], "thread": [0, 0, 0], "op": [0, 1, 2], "captured_ns": [9, 8, 7]},
        "profile": {"phases": {}, "sync": [], "aligned": True},
        "alloc_trace": {"action": "Sarf", "address_base": 0, "address": [0, 0, 0, 0], "size": [2097152, 512, 512, 512],
                        "stream": [0, 0, 0, 0], "marks": [[0, "build"]]},
        "cost_s": 0.1,
    }


class FakeInstrument:
    def environment(self) -> Dict[str, object]:
        return dict(ENVIRONMENT)

    def measure(self, configuration: Configuration) -> Dict[str, object]:
        times = self._note(configuration.id)
        print("noise of", configuration.id)  # must not end up between the answers
        time.sleep(configuration.args["ms"] / 1000)
        act = configuration.args["act"]
        if act == "raise" or (act == "flaky" and times == 1):
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        if act == "exit":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)
        if act == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if act == "hang":
            time.sleep(3600)
        record = whole_record(configuration.id)
        record.update(configuration.to_json())
        record["padding"] = "x" * configuration.args["padding"]
        if act == "oom":
            record.update(status="oom", tried={"phase": "forward", "requested": 1, "reserved": 2, "allocated": 2})
        elif act == "nan":
            record["cost_s"] = float("nan")
        elif act == "foreign":
            record["id"] = "another"
        elif act == "incomplete":
            del record["mem"]
        return record

    def close(self) -> None:
        self._note("closed")

    def _note(self, what: str) -> int:
        """How often this has been noted, by any process."""
        with open(os.environ["FORERUN_TEST_BEGUN"], "a+") as file:
            file.write(f"{os.getpid()} {what}\n")
            file.seek(0)
            return sum(line.split()[1] == what for line in file)


class BrokenInstrument(FakeInstrument):
    """Cannot be made, like one whose driver is ill."""

    def __init__(self) -> None:
        self._note("made")
        raise RuntimeError("driver is ill")


class RefusingInstrument(FakeInstrument):
    """Sees that there is nothing to measure on."""

    def __init__(self) -> None:
        self._note("made")
        raise SystemExit("no GPU is visible")
