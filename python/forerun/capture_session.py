"""Records a training iteration on stand-ins, and looks at what it might have been.

``record_iteration`` runs the iteration several times; each run takes what a dispatcher without arithmetic takes:

1. once, so that the optimizer's state appears;
2. where random values decide what is run (layer drop), with further seeds: the draw with the median number of ops is
   the one to record, and how far draws differ is told;
3. the recorded one;
4. where a value was assumed that only a real run computes, with the other outcome, to learn whether it matters.
"""
from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import random
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .cuda_fakes import complete_fakes
from .generic import cuda_like_dispatch
from .gpu_words import GpuNamedMode, GpuWords, autocast_for_gpu
from .host_arrays import arrays_read
from .host_values import CaptureError, HostRead, HostValues, Origin
from .kept_state import random_state_kept
from .outsiders import Outsiders
from .own_steps import StepsItself, steps_followed
from .recorder import OpRecorder
from .stand_ins import stand_ins
from .training import TrainingTask
from .wrappers import unwrapped

_DRAWS = 9  # of what is random; an odd number, so that one is the median
_HOST_RANDOM = "Python's random or numpy.random"
_MOST_OUTCOMES = 6  # lines whose other outcome is tried


@dataclasses.dataclass
class OtherOutcome:
    """What an iteration becomes where one line is told another value than was assumed."""

    line: str
    value: Any  # that was assumed
    origin: Origin
    tried: bool = True
    raises: str = ""  # what the program says to the other value
    same: bool = True  # the same ops with the same shapes
    ops: int = 0


@dataclasses.dataclass
class Draws:
    """How iterations differ that draw other random numbers."""

    lines: Dict[str, int]  # how many numbers each read; of Python's and NumPy's generators 0: not known
    ops: List[int]  # of each draw's forward and backward pass, in increasing order
    skipped: List[str]  # modules that other draws call and the recorded one does not


@dataclasses.dataclass
class Recording:
    """An iteration, and what is to be known about it."""

    recorder: OpRecorder
    reads: List[HostRead]
    outcomes: List[OtherOutcome]
    draws: Optional[Draws]
    called: Set[str]  # modules that some draw calls
    without_gradient: List[str]  # parameters that want one
    without_part: List[str]  # frozen parameters that no forward op reads
    without_step: List[str]  # parameters with a gradient that no optimizer has
    outsiders: Outsiders
    words: GpuWords
    seed: int


def record_iteration(
    task: TrainingTask,
    backend: str,
    values: HostValues,
    dtype: Optional[torch.dtype] = None,
    seed: Optional[int] = None,
) -> Recording:
    """`dtype`: what floating-point tensors are turned into. `seed`: of a recording at another size, whose draw is taken
    again, without trying other outcomes."""
    device = _gpu_of(task.model) if backend == "cuda" else torch.device("cpu")
    words = GpuWords()
    _check_step(task.optimizer)
    with contextlib.ExitStack() as stack:
        stack.enter_context(random_state_kept())
        mode = stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_taken_for_real())
        if backend == "generic":
            stack.enter_context(cuda_like_dispatch())
            stack.enter_context(autocast_for_gpu(words))
        stack.enter_context(complete_fakes())
        stack.enter_context(arrays_read(values))
        stack.enter_context(unwrapped(task.model))
        stack.enter_context(_clipped_at_once())
        real, adopt = stack.enter_context(stand_ins(task, device, values, dtype))
        _choose_optimizer_kernels(real.optimizer)
        session = _Session(real, device, values, Outsiders(mode, device, values), words, adopt)
        return session.record(seed)
    raise AssertionError("nothing above keeps an exception to itself")


def _gpu_of(model: torch.nn.Module) -> torch.device:
    """The one that it is on, which its code may name; where it is on none, the first."""
    devices = (parameter.device for parameter in model.parameters())
    return next((device for device in devices if device.type == "cuda"), torch.device("cuda:0"))


class _Session:
    """An iteration on stand-ins, run as often as it takes."""

    def __init__(
        self,
        task: TrainingTask,
        device: torch.device,
        values: HostValues,
        outsiders: Outsiders,
        words: GpuWords,
        adopt: Callable[[torch.optim.Optimizer], None],
    ) -> None:
        self._task = task
        self._device = device
        self._values = values
        self._outsiders = outsiders
        self._words = words
        self._adopt = adopt
        self._optimizers = [task.optimizer]  # further ones are those that the loss function steps
        self._names_gpu = False  # whether the program names the GPU where there is none
        self._in_loss = False
        self._with_gradient: Set[int] = set()  # parameters, by id, that got one in the last iteration
        self._host_draws = False  # whether the last iteration drew from Python's or NumPy's random numbers

    def record(self, given_seed: Optional[int]) -> Recording:
        self._first()
        median, draws, called = self._median_draw()
        seed = median if given_seed is None else given_seed
        recorder = self._iterate(seed)
        reads = list(self._values.reads)
        without_gradient, without_part = self._idle_parameters(recorder)
        if draws is not None:
            draws.skipped = sorted(called - recorder.called)
        outcomes = self._other_outcomes(seed, recorder, reads) if given_seed is None else []
        called |= recorder.called
        about = self._outsiders, self._words, seed
        idle = without_gradient, without_part, self._without_step()
        return Recording(recorder, reads, outcomes, draws, called, *idle, *about)

    def _first(self) -> None:
        """The iteration that makes the optimizer's state, and shows what the loss function does beside the loss."""
        try:
            self._iterate(0)
        except StepsItself:
            self._take_for_whole_step()
            self._first()
        except (RuntimeError, AssertionError) as error:
            if self._names_gpu or self._device.type != "cpu" or "cuda" not in str(error).lower():
                raise
            self._names_gpu = True
            self._first()

    def _take_for_whole_step(self) -> None:
        task = self._task
        beside = [
            word
            for word, asked in (
                (f"accumulate {task.accumulate}", task.accumulate > 1),
                (f"clip_grad {task.clip_grad}", task.clip_grad is not None),
                ("autocast", task.autocast is not None),
                (f"loop {task.loop}", task.loop != "plain"),
            )
            if asked
        ]
        if beside:
            raise CaptureError(
                f"loss_fn steps the optimizer itself, so that {' and '.join(beside)} cannot be added to it; write it "
                "into loss_fn, or leave backward and step to the capture"
            )
        self._task = dataclasses.replace(task, loss_steps=True)

    def _on_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._note_gradients()
        if optimizer is self._task.optimizer:
            if self._in_loss and not self._task.loss_steps:
                raise StepsItself()
        elif not any(optimizer is known for known in self._optimizers):
            self._adopt(optimizer)
            _choose_optimizer_kernels(optimizer)
            self._optimizers.append(optimizer)

    def _iterate(self, seed: int, other_outcome_at: str = "") -> OpRecorder:
        _seed(seed)
        self._with_gradient.clear()
        self._values.reads.clear()
        self._values.other_outcome_at = other_outcome_at
        pretend_gpu = self._device.type == "cpu"
        recorder = OpRecorder(
            self._task.model, pretend_gpu=pretend_gpu, values=self._values, outsiders=self._outsiders
        )
        recorder.root_model(self._task.model, *self._optimizers)
        recorder.root_scaler(self._task.scaler)
        _root_inputs(recorder, self._task.batch, "input")

        def on_phase(letter: str) -> None:
            recorder.phase = letter
            self._in_loss = letter == "f"
            self._values.listening = letter != "u"

        before = _host_random_state()
        named: Any = GpuNamedMode() if self._names_gpu else contextlib.nullcontext()
        try:
            with recorder, steps_followed(recorder, self._values, self._on_step), named:
                self._task.iterate(self._device.type, on_phase)
        except BaseException:
            with contextlib.suppress(CaptureError):
                self._outsiders.take_gradients()
            raise
        self._outsiders.take_gradients()
        recorder.close()
        self._host_draws = _host_random_state() != before
        return recorder

    def _median_draw(self) -> Tuple[int, Optional[Draws], Set[str]]:
        """The seed to record with, how draws differ, and the modules that any of them calls."""
        if not self._host_draws and not any(read.origin is Origin.random for read in self._values.reads):
            return 0, None, set()
        called: Set[str] = set()
        sizes: List[Tuple[int, int]] = []
        lines: Dict[str, int] = {}
        for seed in range(_DRAWS):
            recorder = self._iterate(seed)
            called |= recorder.called
            sizes.append((recorder.pass_ops(), seed))  # draws that come first make the optimizer's state
            lines = {_HOST_RANDOM: 0} if self._host_draws else {}
            for read in self._values.reads:
                if read.origin is Origin.random:
                    lines[read.line] = lines.get(read.line, 0) + 1
        sizes.sort()
        if sizes[0][0] == sizes[-1][0] and called == recorder.called:
            return 0, None, called  # whatever is drawn, the same is run
        return sizes[_DRAWS // 2][1], Draws(lines, [size for size, _ in sizes], []), called

    def _other_outcomes(self, seed: int, recorder: OpRecorder, reads: List[HostRead]) -> List[OtherOutcome]:
        first: Dict[str, HostRead] = {}
        for read in reads:
            if read.origin in (Origin.usual, Origin.unknown):
                first.setdefault(read.line, read)
        outline = recorder.outline()
        return [
            self._other_outcome(seed, read, outline, tried=number < _MOST_OUTCOMES)
            for number, read in enumerate(first.values())
        ]

    def _other_outcome(self, seed: int, read: HostRead, outline: List[Any], tried: bool) -> OtherOutcome:
        assert read.origin is not None
        outcome = OtherOutcome(read.line, read.value, read.origin, tried)
        if not tried:
            return outcome
        try:
            other = self._iterate(seed, other_outcome_at=read.line).outline()
        except Exception as error:  # whatever the program does about it
            outcome.raises = type(error).__name__
            return outcome
        outcome.same, outcome.ops = other == outline, len(other)
        number = isinstance(read.value, int) and not isinstance(read.value, bool)
        if not outcome.same and number and read.origin is Origin.unknown:
            raise CaptureError(
                f"{read.line}: what is run depends on a whole number that only a real run computes; record a variant "
                "of the model that does not read it there, or keeps it fixed"
            )
        return outcome

    def _without_step(self) -> List[str]:
        stepped = {id(p) for optimizer in self._optimizers for group in optimizer.param_groups for p in group["params"]}
        named = self._task.model.named_parameters()
        return [name for name, p in named if id(p) in self._with_gradient and id(p) not in stepped]

    def _note_gradients(self) -> None:
        self._with_gradient.update(id(p) for p in self._task.model.parameters() if p.grad is not None)

    def _idle_parameters(self, recorder: OpRecorder) -> Tuple[List[str], List[str]]:
        named = list(self._task.model.named_parameters())
        self._note_gradients()
        without_gradient = [
            name for name, parameter in named if parameter.requires_grad and id(parameter) not in self._with_gradient
        ]
        without_part = [
            name for name, parameter in named if not parameter.requires_grad and not recorder.takes_part(parameter)
        ]
        return without_gradient, without_part


def _host_random_state() -> Tuple[Any, ...]:
    """Of the generators whose numbers are no tensors; changes with each draw."""
    numpy: Any = sys.modules.get("numpy")
    return random.getstate(), numpy.random.get_state()[2:] if numpy is not None else None


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.random.default_generator.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


@contextlib.contextmanager
def _taken_for_real() -> Iterator[None]:
    """transformers takes a fake tensor for a sign of tracing, where it keeps masks that training drops."""
    utils: Any = sys.modules.get("transformers.utils.import_utils")
    if not hasattr(utils, "is_fake_tensor"):
        yield
        return
    original = utils.is_fake_tensor
    utils.is_fake_tensor = lambda tensor: False
    try:
        yield
    finally:
        utils.is_fake_tensor = original


def _root_inputs(recorder: OpRecorder, value: Any, name: str) -> None:
    if isinstance(value, torch.Tensor):
        recorder.root(value, "i", name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _root_inputs(recorder, item, str(key))
    elif dataclasses.is_dataclass(value):
        _root_inputs(recorder, vars(value), name)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            _root_inputs(recorder, item, f"{name}{number}")


@contextlib.contextmanager
def _clipped_at_once() -> Iterator[None]:
    """On a GPU gradients that the program clips are clipped all at once; fake ones would not be."""
    clipping: Any = importlib.import_module("torch.nn.utils.clip_grad")
    original = clipping._has_foreach_support
    clipping._has_foreach_support = lambda tensors, device: True
    try:
        yield
    finally:
        clipping._has_foreach_support = original


def _check_step(optimizer: torch.optim.Optimizer) -> None:
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise CaptureError(
            f"{type(optimizer).__name__} runs the model as often as its step needs, which only a real run tells; "
            "record the model with another optimizer"
        )


def takes_all_tensors_at_once(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> bool:
    """Whether an unfused step of these parameters is a few kernels (foreach) on a GPU, or some for every tensor.

    An optimizer that was told nothing takes them together, but for Adafactor, which is there to save memory.
    `fused=False` alone is a word: PyTorch takes it for a choice, and goes through tensors one by one.
    """
    if group.get("foreach", False) is not None:
        return bool(group.get("foreach"))
    return group.get("fused") is None and type(optimizer).__name__ != "Adafactor"


def _choose_optimizer_kernels(optimizer: torch.optim.Optimizer) -> None:
    """As PyTorch would on a GPU; of fake tensors it would not."""
    for group in optimizer.param_groups:
        if "foreach" in group and not group.get("fused"):
            group["foreach"] = takes_all_tensors_at_once(optimizer, group)
