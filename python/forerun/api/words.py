"""The words that questions take as keywords. They are the options of the program, with `_` for `-`, and mean the same.

Each class is a table of keywords; `SetupWords` and the like are parts that questions share. Words that a question does
not know are refused, with the nearest that it does.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Count = Union[int, float, str]
# A name of `forerun.models()`, a file (Hugging Face config.json, ONNX, capture), a record of forerun.capture, or a
# torch.nn.Module.
Model = Union[str, "os.PathLike[str]", Mapping[str, Any], Any]


class LimitWords(TypedDict, total=False):
    """What the work itself may take."""

    time_limit: float  # seconds, after which LimitReached is raised
    memory_limit: str  # of this process, as "2GiB"


class SetupWords(TypedDict, total=False):
    """How a model is trained."""

    batch: Any  # samples an iteration; of a torch.nn.Module an example of its batch, (inputs..., labels) or a mapping
    set: Mapping[str, Any]  # parameters of the model's family, {"image": 384}, or dynamic dimensions of an ONNX file
    precision: str  # fp32, tf32, amp_bf16, amp_fp16, amp_fp8, bf16, fp16
    optimizer: Any  # "adamw", "sgd:momentum=0.9,impl=fused"; of a torch.nn.Module its torch.optim.Optimizer
    loss_fn: Any  # of a torch.nn.Module: loss_fn(model, batch), where the model does not give the loss itself
    channels_last: bool
    checkpoint: str  # none, block, selective: activations that are computed again
    accumulate: int  # micro-batches before each update
    lora: Union[int, str]  # rank, or "16:q_proj,v_proj:dropout=0.1"
    freeze: Union[str, Sequence[str]]  # parameters whose names hold this are not trained
    quantize: str  # nf4, fp4, int8 of frozen weights; "nf4:double"
    clip_grad: float  # gradients are clipped to this norm; 0: not
    loop: str  # plain, trainer, lightning, accelerate
    attention: str  # sdpa, flash, eager
    compile: str  # torch.compile's mode: default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs
    ema: bool  # a moving average of the weights is kept


class MemoryWords(TypedDict, total=False):
    """Memory of data-parallel training, and the allocator's settings."""

    allocator: str  # PYTORCH_CUDA_ALLOC_CONF
    ddp: bool
    bucket_view: bool
    zero: int  # 1, 2 or 3 (FSDP)


class JobWords(TypedDict, total=False):
    """How long the whole run is: one of these tells its hours, energy and, by a price, cost."""

    iterations: Count
    samples: Count
    tokens: Count
    epochs: float  # of dataset_size samples
    dataset_size: Count


class PriceWords(TypedDict, total=False):
    """What an hour of a GPU costs, as you know it."""

    price: Mapping[str, float]  # {"h100": 2.5}
    prices: Path  # TOML file (examples/prices.toml)


class PredictWords(SetupWords, MemoryWords, JobWords, PriceWords, LimitWords, total=False):
    """Words of `forerun.predict`."""

    gpu: str
    gpus: int  # of ddp and zero
    device_files: Union[Path, Sequence[Path]]  # JSON files with further GPUs
    brief: bool  # without what would take away a bound by the host
    machine: Path  # machine.json of `python -m forerun.calibrate`; "none": not even the configured one


class FitWords(SetupWords, MemoryWords, JobWords, PriceWords, LimitWords, total=False):
    """Words of `forerun.fit`."""

    gpu: str
    gpus: int
    device_files: Union[Path, Sequence[Path]]
    machine: Path
    axis: str  # batch (default), seq, image, or any whole-number setting of the model
    margin: str  # range (default), none, "5%": how far a run may be above its prediction and must still fit
    reserve: str  # "5%", "2GiB": kept free for others
    brief: bool  # without what would let a larger one in


class CompareWords(SetupWords, JobWords, PriceWords, LimitWords, total=False):
    """Words of `forerun.compare`."""

    gpus: Union[str, Sequence[str]]  # names, or "all" (default)
    by: str  # time (default) or cost
    deadline: Union[str, float]  # "12h", "90min", "3d"; a number is hours
    budget: float
    no_largest_batch: bool
    threads: int
    device_files: Union[Path, Sequence[Path]]
    machine: Path


class SweepWords(SetupWords, JobWords, PriceWords, LimitWords, total=False):
    """Words of `forerun.sweep`; a list in place of one value makes an axis of it."""

    gpu: Union[str, Sequence[str]]
    machine: Path
    over: Mapping[str, Sequence[Any]]  # further axes, by parameters of the model's family: {"image": [224, 384]}
    threads: int
    engine: str  # "ray": shards on a Ray cluster, a local one or that of an address, "ray://host:10001"
    ray_address: str  # of the cluster, as ray.init takes it: "auto", "host:6379"


class WhatIfWords(SetupWords, LimitWords, total=False):
    """Words of `forerun.whatif`; those of SetupWords go with models."""

    gpu: str
    machine: Path
    profiled: bool  # leave what the profiler cost the host in the times


class TraceWords(LimitWords, total=False):
    """Words of `forerun.trace`."""

    top: int  # rows of each list of the summary
    kernel_gap_us: float
    drop_last_step: bool
    like_hta: bool
    partial: bool  # of a file that is cut short, what came before the cut
    no_path: bool


class ScaleWords(SetupWords, JobWords, PriceWords, LimitWords, total=False):
    """Words of `forerun.scale`."""

    gpu: str
    machine: Path
    gpus: Union[int, Sequence[int]]  # how many; several give a step each
    kinds: Mapping[str, int]  # several kinds of GPU, {"h200": 8, "a100": 8}, in place of gpu and gpus
    node: int  # GPUs of a node
    network: str  # of a node: a link of `forerun.links()`, "8xndr", "800Gb/s"; default: as the GPU's vendor builds it
    networks: Mapping[str, str]  # by kind
    within: str  # link between GPUs of a node
    oversubscription: float  # how many times more nodes may send than the network carries
    strategy: str  # dp, zero1, zero2, zero3, fsdp, hsdp, tp, pp, or a product: "tp=8,pp=4,zero=1", "ep=8"
    global_batch: int
    micro_batch: int
    batches: str  # of several kinds: even, by-speed
    stack: str  # whose software trains: pytorch or megatron (default: megatron where layers are shared)
    mttf: float  # of the job: hours after which a GPU fails in the mean
    restart: float  # of the job: minutes until it trains again
    storage: float  # of the job: GB/s at which checkpoints are written
    spread: float  # of the job: per cent by which GPUs' speeds differ
    efficiency: Path


class ScheduleWords(LimitWords, total=False):
    """Words of `forerun.schedule`."""

    format: str  # csv (default), philly, hydra, gavel, sacct, ...
    synthetic: str  # made-up jobs instead of a file: "jobs=1000,gpus=8,seed=1"
    gpus: Union[int, Mapping[str, int]]  # how many, or by type
    predictor: str  # perfect (default), none, "error:8", hybrid, ...
    machine: Path  # machine.json for jobs that are predicted; "none": not even the configured one
    first: int
    max_gpus: int
    member: str
    throughputs: Path
    draw: str
    lenient: bool
    gpus_per_node: int
    nodes_per_rack: int
    network: str
    oversubscription: float
    node_loss: float
    rack_loss: float
    restart_cost: float
    failure_hours: float
    repair_hours: float
    checkpoint: float
    quotas: Union[str, Sequence[str]]
    by: Union[str, Sequence[str]]
    repeat: int
    seed: int
    threads: int
