"""The values that a host reads of tensors without data: computed where they can be, assumed where not, and told.

A capture runs on fake tensors. Where the program reads a value (``if mask.all()``, ``.item()``) or a shape depends on
values (``nonzero``, ``x[mask]``), ``HostValues`` has a real twin of every small tensor that does not depend on
parameters: what is made from numbers, drawn at random, or in the batch that was given, and all that is computed from
those. A twin is a storage: views of a fake storage are the same views of its twin, and ops that write in place write
there.

What depends on parameters has no twin. Choices among such values (``topk``, ``argmax``) are taken to be even, ``any``
to be false and ``all`` to be true; any other value that is read is taken to be 1. Every such read is kept with the line
of the program that reads, so that who records can try the other outcome.
"""

from __future__ import annotations

import dataclasses
import enum
import weakref
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from .source_line import source_line

_aten = torch.ops.aten
_MOST_ELEMENTS = 1 << 18  # a larger tensor has no twin


class Origin(enum.Enum):
    """What a value depends on beside the program, from the surest to the least sure."""

    random = "numbers drawn at random"
    batch = "values of the batch that was given"
    even = "a choice among values that only a run computes, taken to be even"
    usual = "a test of values that only a run computes, taken to find nothing unusual"
    unknown = "a value that only a run computes"


_Origins = FrozenSet[Origin]
_PLAIN: _Origins = frozenset()
_EVEN: _Origins = frozenset({Origin.even})
_UNCERTAIN = (Origin.usual, Origin.unknown)


@dataclasses.dataclass(frozen=True)
class HostRead:
    """One value that the program read of a tensor."""

    line: str
    value: Any
    origins: _Origins

    @property
    def origin(self) -> Optional[Origin]:
        """The least sure of what the value depends on; None where the program alone says it."""
        return next((origin for origin in reversed(Origin) if origin in self.origins), None)


class CaptureError(RuntimeError):
    """An iteration that cannot be recorded without its data: what, where and what to do."""


# Results that stand for a choice among unknown values, by the output's index.
_CHOICES = {_aten.topk: 1, _aten.sort: 1, _aten.argmax: 0, _aten.argmin: 0, _aten.max: 1, _aten.min: 1,
            _aten.multinomial: 0}
# What is assumed of these tests on unknown values: that nothing is out of the ordinary.
_USUAL = {_aten.all: 1, _aten.any: 0, _aten.isnan: 0, _aten.isinf: 0, _aten.isfinite: 1}
# Ops whose result does not depend on the values of their first tensor, only on its shape and type.
_SHAPE_ONLY = frozenset({
    _aten.empty_like, _aten.zeros_like, _aten.ones_like, _aten.full_like, _aten.rand_like, _aten.randn_like,
    _aten.randint_like, _aten.new_empty, _aten.new_zeros, _aten.new_ones, _aten.new_full, _aten.new_empty_strided})
_EMPTY = frozenset({_aten.empty, _aten.empty_like, _aten.empty_strided, _aten.new_empty, _aten.new_empty_strided})
# Found of gradients, by a scaler of losses: no infinity.
_SCALER_CHECK = _aten._amp_foreach_non_finite_check_and_unscale_


class _Twin:
    """A real storage beside a fake one."""

    def __init__(self, storage: Any, origins: _Origins, alive: Any) -> None:
        self.storage = storage
        self.origins = origins
        self.alive = alive  # a weak reference, whose callback forgets this twin


class HostValues:
    """Real twins of small tensors, and what the program read of tensors."""

    def __init__(self) -> None:
        self.reads: List[HostRead] = []
        self.listening = True  # whether reads are kept
        self.other_outcome_at = ""  # a line whose uncertain reads give the other outcome
        self._twins: Dict[int, _Twin] = {}

    # -- what is known -------------------------------------------------------------------------------------------------

    def tell(self, fake: Tensor, value: Tensor, origin: Optional[Origin] = None) -> None:
        """`fake` has this value; too large ones are passed over."""
        if _is_small(value) and not _has_no_data(value):
            with _disable_current_modes():
                self._keep(fake, value.detach().cpu(), frozenset({origin} if origin else ()))

    def value_of(self, tensor: Tensor) -> Optional[Tuple[Tensor, _Origins]]:
        """The real twin of a tensor, sharing memory with those of its views, and what it depends on."""
        if not _has_no_data(tensor):
            if type(tensor) is not Tensor or not _is_small(tensor):
                return None
            with _disable_current_modes():
                return tensor.detach().cpu(), _PLAIN
        twin = self._twins.get(tensor.untyped_storage()._cdata)
        if twin is None or not _is_small(tensor) or tensor.dtype.is_complex:
            return None
        with _disable_current_modes():
            real = torch.empty(0, dtype=tensor.dtype)
            return real.set_(twin.storage, tensor.storage_offset(), tensor.shape, tensor.stride()), twin.origins

    def _keep(self, fake: Tensor, value: Tensor, origins: _Origins) -> None:
        storage = fake.untyped_storage()
        if storage.nbytes() > 16 * _MOST_ELEMENTS:
            return
        address = storage._cdata
        room = torch.zeros(storage.nbytes(), dtype=torch.uint8).untyped_storage()
        alive = weakref.ref(storage, lambda _: self._twins.pop(address, None))
        self._twins[address] = _Twin(room, origins, alive)
        view = torch.empty(0, dtype=fake.dtype)
        view.set_(room, fake.storage_offset(), fake.shape, fake.stride()).copy_(value)

    def _forget(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            self._twins.pop(tensor.untyped_storage()._cdata, None)

    # -- ops -----------------------------------------------------------------------------------------------------------

    def run(self, func: Any, args: Any, kwargs: Mapping[str, Any], run_fake: Callable[[], Any]) -> Any:
        """The result of an op on fake tensors, with twins for what can be computed."""
        if func is _aten._local_scalar_dense.default and _has_no_data(args[0]):
            return self._read(args[0])
        known = self._compute(func, args, kwargs)
        try:
            result = run_fake()
        except _NEEDS_DATA as error:
            result = self._with_data(func, args, kwargs, known, error)
        outputs = _tensors_of(result)
        if known is not None:
            self._keep_results(outputs, _tensors_of(known[0]), known[1])
        else:
            self._assume(func, args, outputs)
        return result

    def _compute(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Optional[Tuple[Any, _Origins]]:
        """The op on twins; nothing where a value is missing. What it would have written is then not known either."""
        packet = func.overloadpacket
        inputs = _tensors_of((args, kwargs))
        if func.is_view and inputs and all(_has_no_data(tensor) for tensor in inputs):
            return None  # a view's twin is a view of the twin
        if not self._computable(func, inputs, args, kwargs):
            self._forget(_written(func, args, kwargs))
            return None
        origins: List[_Origins] = [frozenset({Origin.random})] if _is_random(func) else []
        unknown = False

        def real(value: Any) -> Any:
            nonlocal unknown
            if not isinstance(value, Tensor):
                return torch.device("cpu") if isinstance(value, torch.device) else value
            known = self.value_of(value)
            if known is None and packet in _SHAPE_ONLY and value is args[0]:
                return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
            if known is None:
                unknown = True
                return value
            origins.append(known[1])
            return known[0]

        with _disable_current_modes():
            real_args, real_kwargs = tree_map(real, tuple(args)), tree_map(real, dict(kwargs))
            if unknown:
                self._forget(_written(func, args, kwargs))
                return None
            real_kwargs.pop("pin_memory", None)
            try:
                result = func(*real_args, **real_kwargs)
            except (RuntimeError, NotImplementedError, ValueError, IndexError):
                self._forget(_written(func, args, kwargs))  # the CPU has no such op, or the fake op says what is wrong
                return None
            if packet in _EMPTY:
                result.zero_()
        combined = frozenset().union(*origins)
        for tensor in _written(func, args, kwargs):
            twin = self._twins.get(tensor.untyped_storage()._cdata)
            if twin is not None:
                twin.origins = twin.origins | combined
        return result, combined

    @staticmethod
    def _computable(func: Any, inputs: List[Tensor], args: Any, kwargs: Mapping[str, Any]) -> bool:
        if func.namespace != "aten" or any(not _has_no_data(tensor) for tensor in _written(func, args, kwargs)):
            return False
        if not all(_is_small(tensor) for tensor in inputs):
            return False
        sizes = [value for name, value in zip(_argument_names(func), args) if name == "size"]
        return all(_product(size) <= _MOST_ELEMENTS for size in sizes if isinstance(size, (list, tuple)))

    def _keep_results(self, outputs: List[Tensor], values: List[Tensor], origins: _Origins) -> None:
        with _disable_current_modes():
            for fake, value in zip(outputs, values):
                address = fake.untyped_storage()._cdata
                wanted = address not in self._twins and _has_no_data(fake)
                if wanted and _is_small(value) and fake.shape == value.shape:
                    self._keep(fake, value, origins)

    def _assume(self, func: Any, args: Any, outputs: List[Tensor]) -> None:
        """Twins for what is taken for granted of unknown values."""
        packet = func.overloadpacket
        if packet is _SCALER_CHECK:
            self._keep_constant(args[1], 0)
        elif packet in _USUAL and outputs:
            self._keep_constant(outputs[0], _USUAL[packet])
        elif packet in _CHOICES and len(outputs) > _CHOICES[packet] and args[0].dim() > 0:
            chosen = outputs[_CHOICES[packet]]
            extent = args[0].numel() if chosen.dim() == 0 else args[0].shape[_dimension(func, args)]
            if _is_small(chosen) and extent > 0:
                with _disable_current_modes():
                    self._keep(chosen, (torch.arange(chosen.numel()) % extent).reshape(chosen.shape), _EVEN)

    def _keep_constant(self, tensor: Tensor, value: int) -> None:
        if _is_small(tensor):
            with _disable_current_modes():
                self._keep(tensor, torch.full(tensor.shape, value), frozenset({Origin.usual}))

    # -- what the program reads ----------------------------------------------------------------------------------------

    def _read(self, tensor: Tensor) -> Any:
        known = self.value_of(tensor)
        line = source_line()
        origins: _Origins = frozenset({Origin.unknown})
        if known is not None:
            with _disable_current_modes():
                value = known[0].item()
            origins = known[1]
        else:
            value = _as_type_of(tensor, 1)
        return self._hear(line, value, origins)

    def _hear(self, line: str, value: Any, origins: _Origins) -> Any:
        """What the program is told: the value, or the other outcome where that is asked for."""
        if line == self.other_outcome_at and origins.intersection(_UNCERTAIN):
            value = _other(value)
        if self.listening:
            self.reads.append(HostRead(line, value, origins))
        return value

    def _with_data(
        self,
        func: Any,
        args: Any,
        kwargs: Mapping[str, Any],
        known: Optional[Tuple[Any, _Origins]],
        error: Exception,
    ) -> Any:
        """The result of an op whose shape, or whose plain value, depends on values."""
        if known is None and func.overloadpacket in (_aten.index, _aten.masked_select):
            result = self._selected(func, args)
            if result is not None:
                return result
        if known is None and func.overloadpacket is _aten._ctc_loss:
            result = self._ctc_loss(*args[:4])
            if result is not None:
                return result
        if known is None and func.overloadpacket is _aten.equal:
            return self._hear(source_line(), False, frozenset({Origin.usual}))
        if known is None:
            raise CaptureError(
                f"{source_line()}: the result of {func} depends on values that only a real run computes; record a "
                "variant of the model that does not branch on them there, or with shapes that are fixed"
            ) from error
        result, origins = known
        if not isinstance(result, (Tensor, list, tuple)):
            return self._hear(source_line(), result, origins)
        device = next(tensor.device for tensor in _tensors_of((args, kwargs)))
        self._hear(source_line(), _shapes_text(_tensors_of(result)), origins)
        return tree_map(lambda value: _fake_like(value, device) if isinstance(value, Tensor) else value, result)

    def _selected(self, func: Any, args: Any) -> Optional[Tensor]:
        """`x[mask]` of unknown values under a known mask."""
        masks = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
        indices: List[Any] = []
        origins: List[_Origins] = []
        for mask in masks:
            if mask is None or mask.dtype not in (torch.bool, torch.uint8):
                indices.append(mask)
                continue
            known = self.value_of(mask)
            if known is None:
                return None
            origins.append(known[1])
            with _disable_current_modes():
                counted = int(known[0].count_nonzero())
            places = [torch.empty(counted, dtype=torch.long, device=mask.device) for _ in range(mask.dim())]
            indices.extend(places)
        source = args[0] if func.overloadpacket is _aten.index else args[0].expand(masks[0].shape)
        result: Tensor = _aten.index.Tensor(source, indices)
        self._hear(source_line(), _shapes_text([result]), frozenset().union(*origins))
        return result

    def _ctc_loss(self, log_probs: Tensor, targets: Tensor, _lengths: Tensor, target_lengths: Any) -> Any:
        """Losses, and what the backward pass needs: as long as the longest target."""
        known = self.value_of(target_lengths)
        if known is None:
            return None
        with _disable_current_modes():
            longest = int(known[0].max())
        self._hear(source_line(), longest, known[1])
        batch = log_probs.shape[1:-1]
        return log_probs.new_empty(batch), log_probs.new_empty((*batch, log_probs.shape[0], 2 * longest + 1))


class KnownValuesMode(TorchDispatchMode):
    """Keeps twins of what is made while it is entered; for building a batch on fake tensors."""

    def __init__(self, values: HostValues) -> None:
        super().__init__()
        self._values = values

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._values.run(func, args, kwargs or {}, lambda: func(*args, **(kwargs or {})))


_NEEDS_DATA = (
    torch._subclasses.fake_tensor.DataDependentOutputException,
    torch._subclasses.fake_tensor.DynamicOutputShapeException,
)


def _has_no_data(tensor: Tensor) -> bool:
    return tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor"


def _is_small(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() <= _MOST_ELEMENTS


def _tensors_of(value: Any) -> List[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in _tensors_of(item)]


def _argument_names(func: Any) -> List[str]:
    return [argument.name for argument in func._schema.arguments]


def _written(func: Any, args: Any, kwargs: Mapping[str, Any]) -> List[Tensor]:
    """The arguments that an op writes to."""
    if not func._schema.is_mutable:
        return []
    given = dict(zip(_argument_names(func), args))
    given.update(kwargs)
    names = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return [tensor for name in names for tensor in _tensors_of(given.get(name))]


def _is_random(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


def _product(size: Sequence[int]) -> int:
    product = 1
    for extent in size:
        product *= extent
    return product


def _dimension(func: Any, args: Any) -> int:
    """Along which a choice is made; the last where the call does not say."""
    given = dict(zip(_argument_names(func), args))
    dimension = given.get("dim", -1)
    return dimension if isinstance(dimension, int) else -1


def _as_type_of(tensor: Tensor, value: int) -> Any:
    return bool(value) if tensor.dtype is torch.bool else float(value) if tensor.is_floating_point() else value


def _other(value: Any) -> Any:
    """Another outcome than the one that was assumed."""
    if isinstance(value, (bool, int, float)):
        return not value if isinstance(value, bool) else value + 2 if isinstance(value, int) else -1e6 * (value + 1)
    return value  # shapes follow from values


def _shapes_text(tensors: List[Tensor]) -> str:
    return "shape " + " and ".join(str(list(tensor.shape)) for tensor in tensors)


def _fake_like(value: Tensor, device: torch.device) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
