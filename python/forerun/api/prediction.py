"""predict: iteration time and memory of a training run, before it is run."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

from ..errors import DoesNotFit, InputError
from . import card
from .asking import Json, as_captured, ask_model
from .columns import Columns
from .quantities import Bytes, MemoryRange, TimeRange
from .words import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .words import PredictWords


@dataclass(frozen=True)
class Asked:
    """A question that was asked, to be asked again for more of its answer."""

    model: Model = field(repr=False)
    words: Mapping[str, Any] = field(repr=False)

    def more(self, name: str) -> Json:
        """What another question answers about the same."""
        answer: Json = json.loads(ask_model(name, self.model, self.words))
        return answer


@dataclass(frozen=True)
class MemoryTimeline:
    """What one iteration holds in memory, op by op: a row after every allocation and free."""

    columns: Columns
    peak: int  # row with most memory allocated
    peak_op: str
    device: Bytes  # the GPU's memory ...
    context: Bytes  # ... of which the CUDA context takes this
    phases: Tuple[int, int, int, int]  # ops at which forward, backward and update begin, and the number of ops


@dataclass(frozen=True)
class Memory:
    """What a run takes of the GPU's memory at its peak."""

    allocated: MemoryRange
    reserved: MemoryRange
    driver: MemoryRange  # reserved, and what the CUDA context takes
    device: Bytes  # that the GPU has
    parts: Mapping[str, Bytes]  # of the peak: parameters, gradients, optimizer_state, activations, ...
    _asked: Asked = field(repr=False)

    @property
    def timeline(self) -> Any:
        """Memory over one iteration as a pandas.DataFrame: at_op, a column for each kind, allocated, reserved."""
        return self.chart().columns.frame

    def chart(self) -> MemoryTimeline:
        """The same without pandas, with the peak and where phases begin."""
        answer = self._asked.more("memory")
        return MemoryTimeline(
            Columns(answer["columns"]),
            answer["peak"],
            answer["peak_op"],
            Bytes(answer["device_memory"]),
            Bytes(answer["context"]),
            (answer["forward_from"], answer["backward_from"], answer["update_from"], answer["ops"]),
        )


@dataclass(frozen=True)
class Job:
    """The whole run: its hours, and what it draws and costs where that is known."""

    iterations: int
    hours: float
    low_hours: Optional[float]
    high_hours: Optional[float]
    energy_kwh: Optional[float]
    cost: Optional[float]

    @staticmethod
    def of(told: Optional[Json]) -> Optional[Job]:
        """From its JSON; None where no length was told."""
        if told is None:
            return None
        return Job(
            told["iterations"],
            told["hours"],
            told.get("low_hours"),
            told.get("high_hours"),
            told.get("energy_kwh"),
            told.get("cost"),
        )


@dataclass(frozen=True)
class HostRemedy:
    """What would take away a bound by the host, and the iteration then."""

    kind: str  # cuda_graphs, fused_optimizer, batch
    what: str
    iteration_ms: float
    samples_per_second: float


@dataclass(frozen=True)
class FusedKernel:
    """A kernel that was generated, with those that are alike."""

    kind: str  # pointwise, reduction, scatter
    ops: str  # what is computed in it
    module: str  # of its first op
    count: int
    gpu_ms: float  # of all of them
    bytes: Bytes  # that one reads and writes


@dataclass(frozen=True)
class LibraryCall:
    """What of a compiled model stays with a library, by name."""

    name: str
    count: int
    gpu_ms: float  # of all of them


@dataclass(frozen=True)
class GraphBreak:
    """Where a model cannot be traced on: the pieces between are compiled alone."""

    module: str  # in which it happens; empty outside of all
    op: str  # that runs eagerly, or with which the next graph begins
    why: str
    where: str  # "model.py:12", of a model that Dynamo traced when it was captured; empty: not known


@dataclass(frozen=True)
class Compiled:
    """The same run with its model under torch.compile (docs/compile.md)."""

    mode: str
    iteration: TimeRange
    ratio: float  # compiled to eager iteration
    gpu_ms: float
    bound: str
    kernels: int
    peak_allocated: Bytes
    peak_reserved: Bytes
    fits: bool
    compile_s: Optional[float]  # of the first iteration, roughly; None in modes that tune
    verdict: str  # fits, may_not_fit or does_not_fit
    gpu: TimeRange  # of `gpu_ms`
    allocated: MemoryRange  # of `peak_allocated`
    pointwise: int  # generated kernels of elementwise work,
    reductions: int  # with reductions,
    scatters: int  # and that add into rows
    libraries: int  # calls of libraries inside of compiled graphs
    kept: Bytes  # for the backward pass
    graphs: int  # compiled, forward and backward ones
    breaks: Tuple[GraphBreak, ...]  # of a micro-batch, in order
    largest_kernels: Tuple[FusedKernel, ...] = field(repr=False)  # at most ten, the most GPU time first
    library_calls: Tuple[LibraryCall, ...] = field(repr=False)  # the same of libraries
    job: Optional[Job]  # the whole run, where its length was told
    assumptions: Tuple[str, ...] = field(repr=False)

    @staticmethod
    def of(told: Json) -> Compiled:
        """From its JSON."""
        allocated = (told["peak_allocated"], told["peak_allocated_low"], told["peak_allocated_high"])
        return Compiled(
            mode=told["mode"],
            iteration=TimeRange(told["iter_ms"], told["iter_low_ms"], told["iter_high_ms"]),
            ratio=told["iter_ratio"],
            gpu_ms=told["gpu_ms"],
            bound=told["bound"],
            kernels=told["kernels"],
            peak_allocated=Bytes(told["peak_allocated"]),
            peak_reserved=Bytes(told["peak_reserved"]),
            fits=told["fits"],
            compile_s=told.get("compile_s"),
            verdict=told["verdict"],
            gpu=TimeRange(told["gpu_ms"], told["gpu_low_ms"], told["gpu_high_ms"]),
            allocated=MemoryRange(*map(Bytes, allocated)),
            pointwise=told["pointwise"],
            reductions=told["reductions"],
            scatters=told["scatters"],
            libraries=told["libraries"],
            kept=Bytes(told["kept_bytes"]),
            graphs=told["graphs"],
            breaks=tuple(GraphBreak(row["module"], row["op"], row["why"], row["where"]) for row in told["breaks"]),
            largest_kernels=tuple(
                FusedKernel(row["kind"], row["ops"], row["module"], row["count"], row["gpu_ms"], Bytes(row["bytes"]))
                for row in told["largest_kernels"]
            ),
            library_calls=tuple(
                LibraryCall(row["name"], row["count"], row["gpu_ms"]) for row in told["library_calls"]
            ),
            job=Job.of(told.get("job")),
            assumptions=tuple(told["assumptions"]),
        )


@dataclass(frozen=True, repr=False)
class Prediction:
    """How one training run will go on one GPU. `json` has all that `forerun predict --json` prints (docs/schema)."""

    _told: Json
    _asked: Asked
    _more: bool = False  # what would take away a bound by the host is asked for when it is looked at

    @functools.cached_property
    def json(self) -> Json:
        """All that `forerun predict --json` prints."""
        if not self._more or self.bound != "host":
            return self._told
        told = self._asked.more("predict")
        return {**told, "compiled": self._told["compiled"]} if "compiled" in self._told else told

    @property
    def compiled(self) -> Optional[Compiled]:
        """Where `compile=` was asked: the compiled run; all else here is of the eager one."""
        told = self._told.get("compiled")
        return None if told is None else Compiled.of(told)

    @property
    def host_remedies(self) -> Tuple[HostRemedy, ...]:
        """Where the host bounds the iteration: what would take the bound away. Each is a prediction of its own."""
        return tuple(
            HostRemedy(told["kind"], told["what"], told["iter_ms"], told["samples_per_second"])
            for told in self.json.get("host_remedies", ())
        )

    @property
    def id(self) -> str:
        """The model's name, file, or the record's id."""
        return str(self._told["id"])

    @property
    def gpu(self) -> str:
        """The GPU's full name."""
        return str(self._told["gpu"])

    @property
    def batch(self) -> int:
        """Samples an iteration."""
        return int(self._told["batch"])

    @property
    def iteration(self) -> TimeRange:
        """Time of an iteration."""
        return TimeRange(self._told["iter_ms"], self._told["iter_low_ms"], self._told["iter_high_ms"])

    @property
    def gpu_ms(self) -> float:
        """Time of an iteration in which kernels run."""
        return float(self._told["gpu_ms"])

    @property
    def host_ms(self) -> float:
        """Time of an iteration in which the host issues work."""
        return float(self._told["host_ms"])

    @property
    def bound(self) -> str:
        """What bounds the iteration: compute or memory of the GPU, or the host."""
        return str(self._told["bound"])

    @property
    def samples_per_second(self) -> float:
        """Samples a second."""
        return float(self._told["samples_per_second"])

    @property
    def tokens_per_second(self) -> Optional[float]:
        """Tokens a second; None where the model reads none."""
        return self._told.get("tokens_per_second")

    @property
    def parameters(self) -> int:
        """Parameters of the model."""
        return int(self._told["params"])

    @property
    def fits(self) -> bool:
        """Whether it surely fits in the GPU's memory."""
        return bool(self._told["fits"])

    @property
    def verdict(self) -> str:
        """fits, may_not_fit (its range crosses the GPU's memory) or does_not_fit."""
        return str(self._told["verdict"])

    @property
    def memory(self) -> Memory:
        """Peaks of memory with their ranges; `memory.timeline` is memory over an iteration."""
        ranges = self._told["memory_ranges"]
        return Memory(
            MemoryRange.of(ranges["allocated"]),
            MemoryRange.of(ranges["reserved"]),
            MemoryRange.of(ranges["driver"]),
            Bytes(self._told["device_memory"]),
            {name: Bytes(size) for name, size in self._told["memory"].items()},
            self._asked,
        )

    @property
    def job(self) -> Optional[Job]:
        """The whole run, where its length was told: iterations, samples, tokens or epochs."""
        return Job.of(self._told.get("job"))

    @property
    def assumptions(self) -> Tuple[str, ...]:
        """Sentences on what was assumed."""
        return tuple(self._told["assumptions"])

    @property
    def warnings(self) -> Tuple[str, ...]:
        """What may make the prediction wrong by more than its range."""
        return tuple(self._told.get("warnings", ()))

    @property
    def ops(self) -> Any:
        """Every op of the iteration as a pandas.DataFrame: op, phase, module, gpu_us, kernels, bound, flops, bytes."""
        return self.op_columns.frame

    @property
    def op_columns(self) -> Columns:
        """The same without pandas."""
        return Columns(self._asked.more("ops")["columns"])

    def must_fit(self) -> Prediction:
        """The prediction itself; raises DoesNotFit where it (with `compile=`, the compiled run) does not surely fit."""
        compiled = self.compiled
        if self.fits if compiled is None else compiled.fits:
            return self
        verdict = self.verdict if compiled is None else compiled.verdict
        reserved = self.memory.driver if compiled is None else Bytes(compiled.peak_reserved + self._told["context"])
        word = "does not fit" if verdict == "does_not_fit" else "may not fit"
        raise DoesNotFit(
            f"{word} in {self.memory.device!r}: needs {reserved!r}",
            f"{self.id} on {self.gpu}",
            "forerun.fit says how large a batch fits, and what would let a larger one in",
        )

    def __repr__(self) -> str:
        return card.text(self)

    def _repr_html_(self) -> str:
        return card.html(self)


def predict(model: Model, **words: Unpack[PredictWords]) -> Prediction:
    """How long an iteration takes and how much memory it needs, on a GPU that you need not have.

    :param model: a name of `forerun.models()`, a Hugging Face config.json or the name of a public checkpoint, an ONNX
        file, a capture (file or record), or a torch.nn.Module with `optimizer=` and an example `batch=`
    :param words: `gpu` (default h200) and what else `PredictWords` has: batch, precision, optimizer, zero, tokens,
        price, ...
    :raises InputError: where a word or the model is at fault

    >>> p = forerun.predict("resnet50", gpu="a100", batch=64, precision="amp_bf16")
    >>> p.iteration.ms, p.memory.reserved.gib, p.fits
    """
    given: Dict[str, Any] = dict(words)
    source = as_captured(model, given)
    # What a file holds may be another thing later: all is asked at once. A name is asked for more when more is wanted.
    later = isinstance(source, str) and not os.path.exists(source) and not given.get("brief")
    lines = ask_model("predict", source, {**given, "brief": True} if later else given).splitlines()
    if len(lines) != 1:
        raise InputError(f"holds {len(lines)} runs", str(model), "forerun.predict_runs predicts them all")
    return _prediction(json.loads(lines[0]), source, given, later)


def predict_runs(file: Model, **words: Unpack[PredictWords]) -> List[Prediction]:
    """The same for every run of a file of records (docs/records.md), each as it was recorded."""
    given: Dict[str, Any] = dict(words)
    return [
        _prediction(json.loads(line), file, given) for line in ask_model("predict", file, given).splitlines()
    ]


def _prediction(answer: Json, model: Model, words: Mapping[str, Any], later: bool = False) -> Prediction:
    # Of a record without `gpu` it is the recorded one, which the answer names.
    again = {**words, "gpu": answer["gpu"]} if words.get("device_files") is None else dict(words)
    again.pop("compile", None)  # what is asked for later is of the eager run
    return Prediction(answer, Asked(model, again), later)
