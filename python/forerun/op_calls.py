"""Makes calls of ops from plain data: arguments by the op's schema, tensors from a pool of random numbers.

Indices, offsets, random states and what a backward pass needs of its forward are made to fit (`_FIXES`). Where tensors
lie decides what the L2 cache holds, so it is a matter of policy: see `PreparedCall.vary`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import torch

from forerun.grids.sampling import Sample, TensorSpec
from forerun.op_binding import Argument, Binding, bind
from forerun.tensor_pool import TensorPool

# Arguments whose numbers are taken to be positive: variances, step counts, divisors.
_POSITIVE = frozenset({"running_var", "save_var", "save_invstd", "rstd", "exp_avg_sqs", "max_exp_avg_sqs",
                       "state_steps", "total_weight"})

Fixed = Dict[str, Any]
Fix = Callable[[Binding, TensorPool], Fixed]


def _indices(argument: str, bound: Callable[[Binding], int]) -> Fix:
    def fix(binding: Binding, pool: TensorPool) -> Fixed:
        return {argument: pool.integers(binding.spec(argument), bound(binding))}
    return fix


def _along_dim(binding: Binding) -> int:
    shape = binding.spec("self").shape
    dim: int = binding.value("dim")
    return shape[dim] if shape else 1


def _index_lists(binding: Binding, pool: TensorPool) -> Fixed:
    shape = binding.spec("self").shape
    specs = binding.argument("indices").specs or []
    made: List[Optional[torch.Tensor]] = []
    for place, spec in enumerate(specs):
        boolean = spec is not None and spec.dtype == "bool"
        made.append(None if spec is None else pool.tensor(spec) if boolean else pool.integers(spec, shape[place]))
    return {"indices": made}


def _loss_target(binding: Binding, pool: TensorPool) -> Fixed:
    return {"target": pool.integers(binding.spec("target"), binding.spec("self").shape[1])}


def _offsets(bags: int, indices: TensorSpec, device: torch.device) -> torch.Tensor:
    """Where each bag begins: all are of one size, up to what is left over for the last."""
    offsets = torch.arange(bags, device=device).mul_(max(1, indices.shape[0] // bags)).clamp_(max=indices.shape[0])
    return offsets.to(getattr(torch, indices.dtype))


def _bag(binding: Binding, pool: TensorPool) -> Fixed:
    indices = binding.spec("indices")
    return {"indices": pool.integers(indices, binding.spec("weight").shape[0]),
            "offsets": _offsets(binding.spec("offsets").shape[0], indices, pool.device)}


def _bag_backward(binding: Binding, pool: TensorPool) -> Fixed:
    grad, indices = binding.spec("grad"), binding.spec("indices")
    rows, mode = binding.value("num_weights"), binding.value("mode")
    index = pool.integers(indices, rows)
    offsets = _offsets(grad.shape[0], indices, pool.device)
    weight = pool.tensor(TensorSpec(grad.dtype, (rows, grad.shape[1])))
    _, offset2bag, bag_size, largest = torch.ops.aten._embedding_bag.default(
        weight, index, offsets, binding.value("scale_grad_by_freq"), mode)
    if offset2bag.numel() != index.numel():  # only the CUDA kernel always gives it
        offset2bag = torch.searchsorted(offsets, torch.arange(index.numel(), device=pool.device), right=True) - 1
    return {"indices": index, "offset2bag": offset2bag, "bag_size": bag_size, "maximum_indices": largest}


def _max_pool_backward(binding: Binding, pool: TensorPool) -> Fixed:
    source = pool.tensor(binding.spec("self"))
    _, indices = torch.ops.aten.max_pool2d_with_indices.default(
        source, *(binding.value(name) for name in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")))
    return {"indices": indices}


def _cudnn_batch_norm_backward(binding: Binding, pool: TensorPool) -> Fixed:
    source = pool.tensor(binding.spec("input"))
    weight = pool.tensor(binding.spec("weight"))
    _, mean, variance, reserve = torch.ops.aten.cudnn_batch_norm.default(
        source, weight, weight, None, None, True, 0.1, binding.value("epsilon"))
    return {"save_mean": mean, "save_var": variance, "reserveSpace": reserve}


def _attention_backward(binding: Binding, pool: TensorPool) -> Fixed:
    """Runs the forward pass: its random state is opaque, and a logsumexp that fits keeps the numbers finite."""
    tensors = [pool.tensor(binding.spec(name)) for name in ("query", "key", "value")]
    dropout, causal = binding.value("dropout_p"), binding.value("is_causal")
    scale = binding.value("scale")
    if "flash" in binding.name:
        made = torch.ops.aten._scaled_dot_product_flash_attention.default(*tensors, dropout, causal, False, scale=scale)
        return {"out": made[0], "logsumexp": made[1], "cum_seq_q": made[2], "cum_seq_k": made[3],
                "philox_seed": made[6], "philox_offset": made[7]}
    bias_specs = binding.argument("attn_bias").specs or [None]
    bias = None if bias_specs[0] is None else pool.tensor(bias_specs[0])
    if "efficient" in binding.name:
        made = torch.ops.aten._scaled_dot_product_efficient_attention.default(*tensors, bias, True, dropout, causal,
                                                                              scale=scale)
        return {"out": made[0], "logsumexp": made[1], "philox_seed": made[2],
                "philox_offset": made[3]}
    made = torch.ops.aten._scaled_dot_product_cudnn_attention.default(*tensors, bias, True, dropout, causal, False,
                                                                      scale=scale)
    return {"out": made[0], "logsumexp": made[1], "cum_seq_q": made[2],
            "cum_seq_k": made[3], "philox_seed": made[6], "philox_offset": made[7]}


def _rnn(binding: Binding, pool: TensorPool) -> Fixed:
    """Weights are views of the flat buffer, which is what cuDNN reads. Where there is dropout, it has a state."""
    flat = pool.tensor(binding.spec("weight_buf")).mul(0.05)
    weights, begin = [], 0
    for spec in binding.argument("weight").specs or []:
        assert spec is not None
        size = math.prod(spec.shape)
        weights.append(flat[begin:begin + size].view(spec.shape))
        begin += size
    fixed: Fixed = {"weight": weights, "weight_buf": flat}
    if binding.value("dropout") > 0:
        fixed["dropout_state"] = torch._cudnn_init_dropout_state(
            binding.value("dropout"), True, 1, dtype=torch.uint8, device=pool.device)
    return fixed


def _rnn_backward(binding: Binding, pool: TensorPool) -> Fixed:
    fixed = _rnn(binding, pool)
    cell_specs = binding.argument("cx").specs or [None]
    cell = None if cell_specs[0] is None else pool.tensor(cell_specs[0])
    shared = [binding.value(name) for name in ("mode", "hidden_size", "proj_size", "num_layers", "batch_first",
                                               "dropout", "train", "bidirectional", "batch_sizes")]
    made = torch.ops.aten._cudnn_rnn.default(
        pool.tensor(binding.spec("input")), fixed["weight"], binding.value("weight_stride0"), fixed["weight_buf"],
        pool.tensor(binding.spec("hx")), cell, *shared, fixed.get("dropout_state"))
    fixed.update(output=made[0], reserve=made[3])
    return fixed


def _rows_of(argument: str) -> Callable[[Binding], int]:
    return lambda binding: binding.spec(argument).shape[0]


_FIXES: Mapping[str, Fix] = {
    "aten.embedding": _indices("indices", _rows_of("weight")),
    "aten.embedding_dense_backward": _indices("indices", lambda binding: int(binding.value("num_weights"))),
    "aten._embedding_bag": _bag,
    "aten._embedding_bag_forward_only": _bag,
    "aten._embedding_bag_dense_backward": _bag_backward,
    "aten.index": _index_lists,
    "aten.index_put": _index_lists,
    "aten.index_put_": _index_lists,
    "aten._index_put_impl_": _index_lists,
    "aten._unsafe_index": _index_lists,
    "aten._unsafe_index_put": _index_lists,
    "aten.gather": _indices("index", _along_dim),
    "aten.scatter": _indices("index", _along_dim),
    "aten.scatter_add": _indices("index", _along_dim),
    "aten.scatter_add_": _indices("index", _along_dim),
    "aten.index_select": _indices("index", _along_dim),
    "aten.index_add": _indices("index", _along_dim),
    "aten.nll_loss_forward": _loss_target,
    "aten.nll_loss_backward": _loss_target,
    "aten.nll_loss2d_forward": _loss_target,
    "aten.nll_loss2d_backward": _loss_target,
    "aten.max_pool2d_with_indices_backward": _max_pool_backward,
    "aten.cudnn_batch_norm_backward": _cudnn_batch_norm_backward,
    "aten._scaled_dot_product_flash_attention_backward": _attention_backward,
    "aten._scaled_dot_product_efficient_attention_backward": _attention_backward,
    "aten._scaled_dot_product_cudnn_attention_backward": _attention_backward,
    "aten._cudnn_rnn": _rnn,
    "aten._cudnn_rnn_backward": _rnn_backward,
}


class PreparedCall:
    """A call with its arguments, ready to be made any number of times.

    Call number `place` uses the arguments of variant `place` modulo the number of variants (see `vary`).
    """

    def __init__(self, binding: Binding, pool: TensorPool) -> None:
        self.binding = binding
        self._pool = pool
        fix = _FIXES.get(binding.name)
        self._fixed: Fixed = fix(binding, pool) if fix is not None else {}
        self._hot = _hot_argument(binding)
        self._variants = [self._arguments()]

    def __call__(self, place: int = 0) -> Any:
        positional, keywords = self._variants[place % len(self._variants)]
        return self.binding.op(*positional, **keywords)

    def vary(self, count: int, cache_bytes: int) -> None:
        """Lays the inputs of successive calls elsewhere, so that they are not in the cache from the call before.

        In training the gradient or activation an op is called for has just been written, so it is in the cache if it
        fits; its other operands (weights, saved activations, optimizer state) mostly are not. So the first of these
        stays where it is and all others move. Inputs well over the size of the cache push themselves out: they stay.
        Indices and what a forward pass has saved stay too.
        """
        specs = [spec for argument in self.binding.arguments for spec in argument.specs or [] if spec is not None]
        if sum(spec.bytes() for spec in specs) >= 3 * cache_bytes:
            return
        if len(specs) > 64:  # views are not free either
            count = min(count, 2)
        if self._hot is not None:
            self._fixed.setdefault(self._hot, self._value(self._hot))
        while len(self._variants) < count:
            self._variants.append(self._arguments())

    def forget_variants(self) -> None:
        """Keeps only the first arguments."""
        del self._variants[1:]

    def inputs(self) -> List[Optional[List[object]]]:
        """The tensors of the call as a record shows them: in the order of the schema, absent ones null."""
        described: List[Optional[List[object]]] = []
        for argument in self.binding.arguments:
            if argument.name in self._fixed:
                described += [describe(tensor) for tensor in flatten(self._fixed[argument.name])]
            else:
                described += [None if spec is None else spec.to_json() for spec in argument.specs or []]
        return described

    def own_storages(self) -> Dict[int, int]:
        """The bytes of each storage outside the pool that was made to fit the call, by its address."""
        return own_storages(self._fixed, self._pool)

    def kept_bytes(self) -> int:
        """What lies outside the pool for as long as this call is kept."""
        made = [spec for argument in self.binding.arguments if argument.name not in self._fixed
                for spec in argument.specs or [] if spec is not None and not self._pool.holds(spec)]
        return sum(self.own_storages().values()) + sum(spec.bytes() for spec in made)

    def _value(self, name: str) -> Any:
        positional, keywords = self._variants[0]
        if name in keywords:
            return keywords[name]
        return positional[[argument.name for argument in self.binding.arguments].index(name)]

    def _arguments(self) -> Tuple[List[Any], Dict[str, Any]]:
        positional: List[Any] = []
        keywords: Dict[str, Any] = {}
        for argument in self.binding.arguments:
            value = self._make(argument)
            if argument.by_keyword:
                keywords[argument.name] = value
            else:
                positional.append(value)
        return positional, keywords

    def _make(self, argument: Argument) -> Any:
        if argument.name in self._fixed:
            return self._fixed[argument.name]
        if argument.specs is None:
            return argument.value
        positive = argument.name in _POSITIVE
        made = [None if spec is None else self._pool.tensor(spec, argument.written, positive)
                for spec in argument.specs]
        return made if argument.is_list else made[0]


def _hot_argument(binding: Binding) -> Optional[str]:
    """The operand that an op of a training run finds freshly written: the gradient, or else its input."""
    candidates = [argument for argument in binding.arguments if argument.specs and not argument.is_list
                  and argument.specs[0] is not None]
    for argument in candidates:
        if argument.name.startswith("grad"):
            return argument.name
    for argument in candidates:
        spec = argument.specs[0] if argument.specs else None
        if spec is not None and argument.name not in ("weight", "bias") and len(spec.shape) > 1:
            return argument.name
    return None


def make_call(sample: Sample, pool: TensorPool) -> PreparedCall:
    """Raises BindingError if the sample does not fit the op, PoolTooSmall if its tensors do not fit the pool."""
    return PreparedCall(bind(sample, pool.device), pool)


def describe(tensor: Optional[torch.Tensor]) -> Optional[List[object]]:
    """[dtype, shape, strides or None if contiguous]"""
    if tensor is None:
        return None
    strides = None if tensor.is_contiguous() else list(tensor.stride())
    return [str(tensor.dtype)[len("torch."):], list(tensor.shape), strides]


def flatten(value: Any) -> Iterator[Optional[torch.Tensor]]:
    """The tensors in what an op takes or gives; None stands for one that is absent."""
    if value is None or isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from flatten(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from flatten(item)


def own_storages(value: Any, pool: TensorPool) -> Dict[int, int]:
    """The bytes of each storage on the pool's device behind these tensors that is not the pool's, by its address."""
    storages: Dict[int, int] = {}
    for tensor in flatten(value):
        if tensor is not None and tensor.device.type == pool.device.type and not pool.owns(tensor):
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return storages
