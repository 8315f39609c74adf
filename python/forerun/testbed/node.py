"""One node of the testbed: a parameter server or a worker. Started by forerun.testbed.group, in a namespace of its own.

Descriptor 3 is the channel to the coordinator: a JSON object a line, each answered by one. In turn, for each workload:

    {"do": "build", "workload": {...}, "mode": "sync"}   workers: make the model, one iteration without exchange
    {"do": "warm", "parameters": n, "optimizer": {...}, "mode": "sync", "iterations": 2}      all nodes: first exchanges
    {"do": "measure", "iterations": 40, "kernels": true}                                     all nodes: what is measured
    {"do": "digest"}                                                    what the parameters add up to, to compare nodes

Gradients go from the GPU to pinned memory, by gloo over the shaped link to the servers, and parameters come back the
same way. Nothing overlaps: an iteration computes, copies, exchanges, copies. Answers carry time.monotonic_ns() of each
step, and where there is a GPU what ran on it (kernel_watch.py).
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional

import torch
import torch.distributed as dist

from .. import torch_models as models
from ..configuration import Configuration
from ..measure import make_optimizer
from .kernel_watch import KernelWatch
from .setting import ALL_REDUCE, ASYNC, Setting, partition

Json = Dict[str, Any]

_CHANNEL = 3
_GPU_CACHE_BYTES = 24 << 30  # what the allocator may keep from one workload to the next
_TIMEOUT = datetime.timedelta(seconds=60)


class HostMemory:
    """Host memory that is kept from one workload to the next: pinning and first touches take long."""

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self._kept: Dict[str, torch.Tensor] = {}

    def take(self, name: str, count: int) -> torch.Tensor:
        kept = self._kept.get(name)
        if kept is None or kept.numel() < count:
            self._kept.pop(name, None)
            kept = torch.zeros(max(count, 1 << 20), pin_memory=self._pinned)
            self._kept[name] = kept
        return kept[:count]


class Server:
    """Holds a slice of the parameters: takes gradients, steps its optimizer on the CPU, gives parameters."""

    def __init__(self, setting: Setting, rank: int) -> None:
        self._setting, self._rank = setting, rank
        self._memory = HostMemory(pinned=False)
        self._mode = ""

    def build(self, message: Json) -> Json:
        return {}

    def warm(self, message: Json) -> Json:
        self._mode = message["mode"]
        begin, end = partition(int(message["parameters"]), self._setting.servers)[self._rank]
        self._values = self._memory.take("values", end - begin)
        workers = range(self._setting.workers)
        self._gradients = [self._memory.take(f"gradients{worker}", end - begin) for worker in workers]
        self._answers = [self._memory.take(f"answer{worker}", end - begin) for worker in workers]
        dist.recv(self._values, src=self._setting.servers)
        self._parameter = torch.nn.Parameter(self._values)
        self._parameter.grad = self._gradients[0]
        self._optimizer = server_optimizer(message["optimizer"], self._parameter)
        return self._serve(int(message["iterations"]))

    def measure(self, message: Json) -> Json:
        return self._serve(int(message["iterations"]))

    def digest(self, message: Json) -> Json:
        return {"digest": digest_of([self._values])}

    def _serve(self, iterations: int) -> Json:
        begin = time.monotonic_ns()
        if self._mode == ASYNC:
            update_ns = self._serve_each(iterations)
        else:
            update_ns = sum(self._serve_all() for _ in range(iterations))
        return {"begin": begin, "end": time.monotonic_ns(), "update_ns": update_ns}

    def _serve_all(self) -> int:
        """One synchronous iteration; the nanoseconds its update took."""
        first = self._setting.servers
        for work in [dist.irecv(buffer, src=first + worker) for worker, buffer in enumerate(self._gradients)]:
            work.wait()
        begin = time.monotonic_ns()
        total = self._gradients[0]
        for other in self._gradients[1:]:
            total.add_(other)
        total.div_(len(self._gradients))
        self._step(total)
        end = time.monotonic_ns()
        for work in [dist.isend(self._values, dst=first + worker) for worker in range(len(self._gradients))]:
            work.wait()
        return end - begin

    def _serve_each(self, iterations: int) -> int:
        """Asynchronous: every worker has a thread that takes its gradients as they come and answers at once."""
        lock = threading.Lock()
        took: List[int] = []
        problems: List[BaseException] = []

        def one(worker: int) -> None:
            rank = self._setting.servers + worker
            try:
                for _ in range(iterations):
                    dist.irecv(self._gradients[worker], src=rank).wait()
                    with lock:
                        begin = time.monotonic_ns()
                        self._step(self._gradients[worker])
                        self._answers[worker].copy_(self._values)
                        took.append(time.monotonic_ns() - begin)
                    dist.isend(self._answers[worker], dst=rank).wait()
            except BaseException as error:  # said by the thread that waits
                problems.append(error)

        threads = [threading.Thread(target=one, args=(worker,)) for worker in range(self._setting.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if problems:
            raise problems[0]
        return sum(took)

    def _step(self, gradient: torch.Tensor) -> None:
        self._parameter.grad = gradient
        self._optimizer.step()


class Worker:
    """Computes gradients on the device and exchanges them."""

    def __init__(self, setting: Setting, rank: int) -> None:
        self._setting = setting
        self._number = rank - setting.servers
        self._cuda = torch.cuda.is_available()
        self._device = torch.device("cuda:0" if self._cuda else "cpu")
        self._memory = HostMemory(pinned=self._cuda)
        self._mode = ""
        self._model: Optional[torch.nn.Module] = None
        self._optimizer: Optional[torch.optim.Optimizer] = None
        self._watch = KernelWatch()
        if self._cuda:
            self._watch.warm_up(self._device)

    def build(self, message: Json) -> Json:
        self._forget()
        torch.manual_seed(1)
        self._mode = message["mode"]
        configuration = Configuration.from_json(message["workload"])
        torch.set_float32_matmul_precision("high" if configuration.run["precision"] == "tf32" else "highest")
        with models.fast_initialisation():
            model = models.build(configuration.family, configuration.args, configuration.input)
        model = model.to(self._device)
        models.initialise(model)
        model.train()
        self._model = model
        self._batch = models.make_batch(configuration.input, self._device, configuration.args)
        self._compute()
        self._parameters = [parameter for parameter in model.parameters() if parameter.grad is not None]
        count = sum(parameter.numel() for parameter in self._parameters)
        self._flat = torch.empty(count, device=self._device)
        views = torch.split(self._flat, [parameter.numel() for parameter in self._parameters])
        self._views = [view.view(parameter.shape) for view, parameter in zip(views, self._parameters)]
        self._sent, self._received = self._memory.take("sent", count), self._memory.take("received", count)
        if self._mode == ALL_REDUCE:
            self._optimizer = make_optimizer(configuration.run["optimizer"], model)
        if self._cuda:
            self._watch.learn(self._compute_and_gather)
        self._compute()
        self._wait()
        return {"parameters": count, "tensors": len(self._parameters), "gpu_bytes": self._gpu_bytes()}

    def warm(self, message: Json) -> Json:
        if self._setting.servers and self._number == 0:
            with torch.no_grad():
                torch._foreach_copy_(self._views, self._parameters)
            self._sent.copy_(self._flat)
            for server, (begin, end) in enumerate(self._slices()):
                dist.send(self._sent[begin:end], dst=server)
        return self._train(int(message["iterations"]))

    def measure(self, message: Json) -> Json:
        iterations = int(message["iterations"])
        if not self._cuda or not message.get("kernels"):
            return self._train(iterations)
        answer, activity = self._watch.watch(lambda: self._train(iterations), 4 * self._flat.numel())
        return {**answer, "kernels": activity, "kernels_problem": self._watch.problem}

    def digest(self, message: Json) -> Json:
        return {"digest": digest_of(self._parameters)}

    def _train(self, iterations: int) -> Json:
        return {"steps": [self._iterate() for _ in range(iterations)]}

    def _iterate(self) -> List[int]:
        """The times at its begin, and when it had computed, copied to the host, exchanged, and copied back."""
        times = [time.monotonic_ns()]
        self._compute()
        self._wait()
        times.append(time.monotonic_ns())
        self._gather()
        self._wait()
        times.append(time.monotonic_ns())
        if self._setting.servers:
            self._exchange()
        else:
            dist.all_reduce(self._sent)
        times.append(time.monotonic_ns())
        self._take_back()
        self._wait()
        times.append(time.monotonic_ns())
        return times

    def _compute(self) -> None:
        assert self._model is not None
        for parameter in self._model.parameters():
            parameter.grad = None
        result = models.training_loss(self._model, self._batch)
        (result[0] if isinstance(result, tuple) else result).backward()

    @torch.no_grad()
    def _gather(self) -> None:
        """Gradients in one piece, and on their way to the host."""
        gradients = [parameter.grad.reshape(-1) for parameter in self._parameters]
        torch.cat(gradients, out=self._flat)
        self._sent.copy_(self._flat, non_blocking=True)

    def _compute_and_gather(self) -> None:
        self._compute()
        self._gather()

    def _exchange(self) -> None:
        works = []
        for server, (begin, end) in enumerate(self._slices()):
            works.append(dist.irecv(self._received[begin:end], src=server))
            works.append(dist.isend(self._sent[begin:end], dst=server))
        for work in works:
            work.wait()

    @torch.no_grad()
    def _take_back(self) -> None:
        """Parameters from the servers; after an all-reduce gradients, and the optimizer's step."""
        if self._optimizer is None:
            self._flat.copy_(self._received, non_blocking=True)
            torch._foreach_copy_(self._parameters, self._views)
            return
        self._flat.copy_(self._sent, non_blocking=True)
        self._flat.div_(self._setting.workers)
        torch._foreach_copy_([parameter.grad for parameter in self._parameters], self._views)
        self._optimizer.step()

    def _slices(self) -> Any:
        return partition(self._flat.numel(), self._setting.servers)

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()

    def _gpu_bytes(self) -> int:
        return int(torch.cuda.max_memory_allocated()) if self._cuda else 0

    def _forget(self) -> None:
        """Frees the workload before."""
        self._model = self._optimizer = None
        self._batch = self._parameters = self._views = self._flat = None  # type: ignore[assignment]
        gc.collect()
        if self._cuda:
            if torch.cuda.memory_reserved() > _GPU_CACHE_BYTES:
                torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


def digest_of(tensors: List[torch.Tensor]) -> List[float]:
    """Two sums that tell parameters apart, to see that nodes agree."""
    flat = torch.cat([tensor.detach().reshape(-1).cpu().double() for tensor in tensors])
    return [float(flat.sum()), float(flat.abs().sum())]


def server_optimizer(spec: Json, parameter: torch.nn.Parameter) -> torch.optim.Optimizer:
    """The workload's optimizer for a slice of the parameters on the CPU: fused where PyTorch has it so."""
    model = torch.nn.Module()
    model.register_parameter("slice", parameter)
    with contextlib.suppress(RuntimeError, TypeError, ValueError):
        if spec["name"] in ("SGD", "Adam", "AdamW"):
            return make_optimizer({**spec, "impl": "fused"}, model)
    return make_optimizer({**spec, "impl": "forloop"}, model)


def main(name: str) -> int:
    setting = Setting.parse(name)
    rank = int(os.environ["FORERUN_NODE"])
    if rank < setting.servers:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // setting.nodes)))
    channel_in, channel_out = os.fdopen(_CHANNEL, "r", closefd=False), os.fdopen(_CHANNEL, "w", closefd=False)
    node: Any = Server(setting, rank) if rank < setting.servers else Worker(setting, rank)
    dist.init_process_group("gloo", init_method=f"file://{os.environ['FORERUN_MEETING']}", rank=rank,
                            world_size=setting.nodes, timeout=_TIMEOUT)
    answer: Json = {"ok": True, "environment": environment(node)}
    while True:
        print(json.dumps(answer), file=channel_out, flush=True)
        line = channel_in.readline()
        if not line:
            return 0
        message = json.loads(line)
        try:
            answer = {"ok": True, **getattr(node, message["do"])(message)}
        except Exception as error:  # the coordinator decides: a build that failed leaves the node whole
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {str(error)[:300]}"}


def environment(node: Any) -> Json:
    """The `env` of records where there is a GPU, versions alone where there is none; and the namespace's TCP."""
    tcp = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    if isinstance(node, Worker) and torch.cuda.is_available():
        from ..environment import environment as whole
        return {**whole(torch.device("cuda:0")), "tcp": tcp}
    return {"gpu": "", "torch": str(torch.__version__), "threads": torch.get_num_threads(), "tcp": tcp}


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")
    code = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(code)  # gloo's threads need not be waited for
