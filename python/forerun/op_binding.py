"""Matches plain data to the schema of an op: which tensor and which value each argument gets.

    {"op": "aten.addmm.default", "inputs": [["float32", [256], null], ...], "attributes": {}}

Inputs come in the order of the schema, lists flattened. Absent optional tensors are null (op/1 records) or left out
(run records), where it is worked out which are meant. Attributes go by the names of the schema's arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import torch

from forerun.grids.sampling import Sample, TensorSpec

_ABSENT = object()

# Arguments that are missing from inputs without nulls (those of run records), the first to be missed first.
_MAY_BE_LEFT_OUT: Mapping[str, Sequence[str]] = {
    "aten._scaled_dot_product_efficient_attention_backward": ("attn_bias",),
    "aten._scaled_dot_product_flash_attention_backward": ("cum_seq_q", "cum_seq_k"),
    "aten._scaled_dot_product_cudnn_attention_backward": ("attn_bias", "cum_seq_q", "cum_seq_k"),
    "aten._cudnn_rnn": ("dropout_state", "cx", "weight_buf"),
    "aten._cudnn_rnn_backward": ("grad_cy", "grad_hy", "dropout_state", "cx"),
}
# Arguments that ops change though their schema does not say so.
_CHANGED = frozenset({"running_mean", "running_var", "state_steps"})


class BindingError(ValueError):
    """The inputs or attributes of a sample do not fit the op's schema."""


def base_name(op: str) -> str:
    """aten.mm.default -> aten.mm"""
    return op.rsplit(".", 1)[0]


def find_op(name: str) -> Any:
    """The overload of this name. Raises BindingError if this PyTorch has none."""
    try:
        namespace, packet, overload = name.split(".")
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except (ValueError, AttributeError) as error:
        raise BindingError(f"no op {name} in PyTorch {torch.__version__}") from error


@dataclass
class Argument:
    """One argument of a call: a tensor or several (specs), or a value."""

    name: str
    by_keyword: bool
    specs: Optional[List[Optional[TensorSpec]]] = None
    is_list: bool = False
    written: bool = False
    value: Any = None


@dataclass
class Binding:
    """The arguments of a call in the order of the schema."""

    op: Any
    name: str
    arguments: List[Argument]

    def argument(self, name: str) -> Argument:
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise BindingError(f"{self.name} has no argument {name}")

    def spec(self, name: str) -> TensorSpec:
        specs = self.argument(name).specs
        if not specs or specs[0] is None:
            raise BindingError(f"{self.name} has no tensor for {name}")
        return specs[0]

    def value(self, name: str) -> Any:
        return self.argument(name).value


def bind(sample: Sample, device: torch.device) -> Binding:
    """Gives every argument of the op its tensors or its value. Raises BindingError if they do not fit."""
    op = find_op(sample.op)
    name = base_name(sample.op)
    arguments: List[Argument] = []
    of_tensors: List[Tuple[Argument, str]] = []
    for formal in op._schema.arguments:
        kind = str(formal.type)
        alias = formal.alias_info
        argument = Argument(formal.name, formal.kwarg_only, written=bool(alias is not None and alias.is_write)
                            or formal.name in _CHANGED)
        arguments.append(argument)
        if "Tensor" in kind and formal.name not in sample.attributes:
            argument.is_list = kind.startswith("List")
            of_tensors.append((argument, kind))
        else:
            argument.value = _value(formal, sample.attributes.get(formal.name, _ABSENT), device, name)
            if formal.name == "device" and not sample.inputs:
                argument.value = device
    unknown = set(sample.attributes) - {argument.name for argument in arguments}
    if unknown:
        raise BindingError(f"{sample.op} has no argument {', '.join(sorted(unknown))}")
    _hand_out(sample, name, of_tensors)
    return Binding(op, name, arguments)


def _value(formal: Any, given: object, device: torch.device, op: str) -> Any:
    if given is _ABSENT:
        if formal.has_default_value():
            return formal.default_value
        kind = str(formal.type)
        if kind.startswith("Optional"):
            return None
        if kind.startswith("List"):
            return []
        raise BindingError(f"{op} needs {formal.name}")
    kind = str(getattr(formal, "real_type", formal.type))
    if isinstance(given, str):
        if "ScalarType" in kind or "MemoryFormat" in kind or formal.name in ("dtype", "memory_format", "input_dtype"):
            return getattr(torch, given)
        if "Device" in kind:
            return device
    return given


def _hand_out(sample: Sample, name: str, of_tensors: List[Tuple[Argument, str]]) -> None:
    """Hands the inputs, in order, to the arguments that take tensors."""
    lists = [argument for argument, _ in of_tensors if argument.is_list]
    single = [(argument, kind) for argument, kind in of_tensors if not argument.is_list]
    total = len(sample.inputs)
    lengths = _list_lengths(sample, name, lists, len(single))
    left_out = _left_out(name, sample.attributes, single, len(single) + sum(lengths.values()) - total)
    supply = iter(sample.inputs)
    for argument, _ in of_tensors:
        if argument.is_list:
            argument.specs = [next(supply) for _ in range(lengths[argument.name])]
        else:
            argument.specs = [None if argument.name in left_out else next(supply)]
    if next(supply, _ABSENT) is not _ABSENT:
        raise BindingError(f"{sample.op} takes fewer tensors than {total}")


def _list_lengths(sample: Sample, name: str, lists: List[Argument], single: int) -> Dict[str, int]:
    """How many tensors each list gets."""
    if not lists:
        return {}
    attributes, total = sample.attributes, len(sample.inputs)
    if name.startswith("aten._cudnn_rnn"):
        stride, layers = attributes.get("weight_stride0"), attributes.get("num_layers")
        if not isinstance(stride, int) or not isinstance(layers, int):
            raise BindingError(f"{name} needs weight_stride0 and num_layers")
        return {"weight": stride * layers * (2 if attributes.get("bidirectional") else 1)}
    empty = set()
    if name.startswith("aten._fused_adam") and not attributes.get("amsgrad"):
        empty.add("max_exp_avg_sqs")
    if name.startswith("aten._fused_sgd") and not attributes.get("momentum"):
        empty.add("momentum_buffer_list")
    filled = [argument.name for argument in lists if argument.name not in empty]
    present = total - single
    if name.startswith("aten._fused") and any(spec is not None for spec in sample.inputs[-single:]):
        present = total  # grad_scale and found_inf are left out
    if not filled or present < 0 or present % len(filled):
        raise BindingError(f"{sample.op}: {total} tensors do not fit {len(filled)} lists of equal length")
    return {**{argument: 0 for argument in empty}, **{argument: present // len(filled) for argument in filled}}


def _left_out(name: str, attributes: Mapping[str, object], single: List[Tuple[Argument, str]],
              missing: int) -> List[str]:
    """The arguments that get no tensor, where there are fewer inputs than arguments."""
    if missing <= 0:
        return []
    order = list(_MAY_BE_LEFT_OUT.get(name, ()))
    order += [argument.name for argument, kind in reversed(single) if kind.startswith("Optional")
              and argument.name not in order]
    if name.startswith("aten._cudnn_rnn") and attributes.get("mode") != 2:
        order.remove("cx")
        order.insert(0, "cx")
    if missing > len(order):
        raise BindingError(f"{name}: {missing} tensors are missing, {len(order)} may be")
    return order[:missing]
