"""Records a training iteration without running it: no GPU needed, nothing allocated.

    from forerun.capture import capture
    record = capture(model, optimizer, (images, labels), precision="amp_bf16")   # a run/2 record
    capture(model, optimizer, batch, loss_fn, file="model.jsonl")               # ... and written, for `forerun
    predict model.jsonl`

or, from the shell, ``python -m forerun.capture train.py:build -o model.jsonl``, where ``build()`` gives the arguments
of `capture`.

Where a GPU is visible the ops are those CUDA would run, on fake tensors (``backend: cuda``). Elsewhere they are
recorded on fake CPU tensors under CUDA's dispatch rules (``backend: generic``), and `forerun` finishes the mapping;
both give the same prediction. Values that the program reads are computed where they do not depend on parameters; where
they do, the record says which line was told what (``assumed``), or begins every answer with it (``warnings``).
"""
from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import json
import pathlib
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import torch_version

torch_version.require(__name__)

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from .callable_module import make_callable  # noqa: E402
from .capture_session import record_iteration, takes_all_tensors_at_once  # noqa: E402
from .dynamo_graphs import dynamo_graphs, dynamo_words  # noqa: E402
from .findings import findings  # noqa: E402
from .host_values import CaptureError, HostValues, KnownValuesMode  # noqa: E402
from .kept_state import attributes_kept  # noqa: E402
from .output_file import output_file  # noqa: E402
from .parametric import points_of, resized, sizes_in, unified  # noqa: E402
from .quantized import quantization_text  # noqa: E402
from .records import PRECISIONS  # noqa: E402
from .run_options import AUTOCAST_NAMES, CHECKPOINTS, RunOptions, checkpointing  # noqa: E402
from .run_options import is_checkpointing, run_options  # noqa: E402
from .training import LossFunction, TrainingTask, default_loss  # noqa: E402
from .training_loop import LOOPS  # noqa: E402
from .wrappers import wrapper_words  # noqa: E402

Json = Dict[str, Any]


def capture(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    loss_fn: LossFunction = default_loss,
    *,
    precision: Optional[str] = None,
    autocast: Union[None, str, torch.dtype] = None,
    accumulate: int = 1,
    checkpoint: Optional[str] = None,
    clip_grad: Optional[float] = None,
    loop: str = "plain",
    batch_sizes: Optional[Sequence[int]] = None,
    lengths: Optional[Sequence[int]] = None,
    name: str = "",
    backend: Optional[str] = None,
    compile: bool = False,
    file: Union[None, str, pathlib.Path] = None,
) -> Json:
    """Records one steady-state iteration of training `model`.

    :param batch: (inputs..., labels), or a mapping of the model's keyword arguments; real or fake, on any device
    :param loss_fn: `loss_fn(model, batch)` gives the loss, or a tuple of the loss and what the loop keeps alive
        beside it
    :param precision: fp32, tf32, amp_bf16, amp_fp16, bf16 or fp16 (run_options.py); by default as the model is
    :param autocast: "bf16" or "fp16": the same as precision amp_bf16 and amp_fp16
    :param accumulate: micro-batches before each step of the optimizer
    :param checkpoint: "block" computes each block again in the backward pass, "none" keeps all; by default as the
        model is
    :param clip_grad: the largest norm of all gradients together, to which they are clipped before the step; 0: they
        are not
    :param loop: "plain", or the library that runs the iterations: "trainer" (transformers), "lightning", "accelerate"
    :param batch_sizes: three or more: records at each, so that `forerun` can move the record to any batch; the first
        dimension of every tensor of the batch is the batch
    :param lengths: likewise of sequences; every later dimension as long as the batch's tokens is the length
    :param backend: "cuda" or "generic"; by default cuda where a GPU is visible
    :param compile: has Dynamo trace the model too, so that `forerun predict --compile` knows where Python code breaks
        its graph
    :param file: where to write the record
    :returns: the record (docs/records.md); model and optimizer are left as they were
    :raises CaptureError: where what is run depends on values that only a real run computes
    """
    options = run_options(model, precision, autocast, checkpoint, accumulate, clip_grad, loop)
    request = _Request(model, optimizer, batch, loss_fn, options, _backend(backend), name, compile)
    record = _capture(request, HostValues(), batch_sizes, lengths)
    if file is not None:
        with output_file(file) as out:
            out.write(_line(record))
    return record


@dataclasses.dataclass
class _Request:
    """What is to be captured."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batch: Any
    loss_fn: LossFunction
    options: RunOptions
    backend: str
    name: str
    compile: bool

    def task(self, batch: Any) -> TrainingTask:
        options = self.options
        scaler = options.scaler("cuda" if self.backend == "cuda" else "cpu")
        return TrainingTask(
            self.model,
            self.optimizer,
            batch,
            self.loss_fn,
            options.autocast,
            options.accumulate,
            options.clip_grad,
            scaler,
            loop=options.loop,
        )


def _capture(
    request: _Request, values: HostValues, batch_sizes: Optional[Sequence[int]], lengths: Optional[Sequence[int]]
) -> Json:
    if batch_sizes is None and lengths is None:
        return _recorded(request, request.batch, values)[0]
    dimensions, points = points_of(batch_sizes, lengths)
    given = sizes_in(request.batch, dimensions)
    records: List[Json] = []
    seed: Optional[int] = None
    for point in points:
        with KnownValuesMode(values):
            batch = resized(request.batch, given, point)
        record, seed = _recorded(request, batch, values, seed)
        records.append(record)
    return unified(records, dimensions, points)


def _recorded(request: _Request, batch: Any, values: HostValues, seed: Optional[int] = None) -> Tuple[Json, int]:
    """A record, and the seed of its random numbers; with a seed, without looking at what it might have been."""
    task = request.task(batch)
    said = wrapper_words(request.model)
    traced = seed is None and request.compile
    # What a first call leaves behind in a model can hide where Dynamo breaks in it.
    kept = list(request.model.modules()) if traced else []
    with checkpointing(request.model, request.options.checkpoint), attributes_kept(*kept):
        recording = record_iteration(task, request.backend, values, request.options.dtype, seed)
        record = describe(task, request.options, request.backend, request.name or type(request.model).__name__)
    own = recording.words.autocast
    if own is not None and request.options.autocast is None:
        record["run"]["precision"] = AUTOCAST_NAMES[own]
    if seed is None:
        record.update(findings(recording, request.model, said))
    record.update(recording.recorder.columns())
    if traced:
        with attributes_kept(*kept):
            record["dynamo"] = dynamo_graphs(
                task, request.backend, values, request.options.dtype, recording.seed, record
            )
    return record, recording.seed


def _backend(name: Optional[str]) -> str:
    backend = name or ("cuda" if torch.cuda.is_available() else "generic")
    if backend not in ("cuda", "generic"):
        raise ValueError(f'backend is "{backend}"; known: cuda (needs a visible GPU), generic')
    return backend


def _line(record: Json) -> str:
    return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"


# -- what was captured, in words ---------------------------------------------------------------------------------------


def describe(task: TrainingTask, options: RunOptions, backend: str, name: str) -> Json:
    """The fields of a record that say what is trained and how."""
    parameters = list(task.model.parameters())
    described: Json = {
        "schema": "run/2",
        "id": name,
        "backend": backend,
        "family": "capture",
        "args": {},
        "input": _input_of(task.batch),
        "run": {
            "precision": options.precision,
            "optimizer": _optimizer_of(task.optimizer),
            "channels_last": any(
                p.dim() == 4 and not p.is_contiguous() and p.is_contiguous(memory_format=torch.channels_last)
                for p in parameters
            ),
            "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
            "accumulate": task.accumulate,
        },
        "env": {
            "gpu": torch.cuda.get_device_name(0) if backend == "cuda" else "",
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda or "",
            "cudnn": torch.backends.cudnn.version() or 0 if backend == "cuda" else 0,
            "date": datetime.date.today().isoformat(),
        },
        "params": sum(p.numel() for p in parameters),
        "param_tensors": len(parameters),
    }
    if is_checkpointing(task.model):
        described["run"]["checkpoint"] = "block"
    quantized = quantization_text(task.model)
    if quantized is not None:
        described["run"]["quantize"] = quantized
    if options.loop != "plain":
        described["run"]["loop"] = options.loop
    if options.clip_grad is not None:
        described["run"]["clip_grad"] = options.clip_grad
    return described


def _optimizer_of(optimizer: torch.optim.Optimizer) -> Json:
    group = optimizer.param_groups[0]
    together = takes_all_tensors_at_once(optimizer, group)
    impl = "fused" if group.get("fused") else "foreach" if together else "forloop"
    described: Json = {"name": type(optimizer).__name__, "impl": impl}
    for field in ("lr", "momentum", "weight_decay"):
        if isinstance(group.get(field), (int, float)) and (group[field] or field == "lr"):
            described[field] = float(group[field])
    return described


def _input_of(batch: Any) -> List[Any]:
    """The input field that comes nearest: an image, tokens, or flat features."""
    tensors = (
        list(batch.values())
        if isinstance(batch, Mapping)
        else list(batch)
        if isinstance(batch, (list, tuple))
        else [batch]
    )
    first = next((tensor for tensor in tensors if isinstance(tensor, torch.Tensor)), None)
    if first is None or first.dim() == 0:
        return ["flat", 1, 1, 0, 1]
    shape = list(first.shape)
    if len(shape) == 4:
        return ["image", shape[0], shape[1], shape[2], 1]
    if not first.is_floating_point() and len(shape) == 2:
        return ["tokens", shape[0], shape[1], 1, "hf" if isinstance(batch, Mapping) else "lm"]
    return ["flat", shape[0], shape[-1] if len(shape) > 1 else 1, 0, 1]


# -- the command -------------------------------------------------------------------------------------------------------


def _load(target: str) -> Callable[[], Any]:
    """`script.py:function` as a function."""
    path, colon, function = target.rpartition(":")
    if not colon or not path:
        raise SystemExit(f"forerun.capture: {target}: expected SCRIPT.py:FUNCTION, such as train.py:build")
    file = pathlib.Path(path)
    if not file.is_file():
        raise SystemExit(f"forerun.capture: {path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        known = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == file.stem
        ]
        raise SystemExit(
            f"forerun.capture: {path} has no function {function}; it has: {', '.join(sorted(known)) or 'none'}"
        )
    return getattr(module, function)


def _build(function: Callable[[], Any], values: HostValues) -> Any:
    """Calls the user's function on fake tensors, so that a large model costs no memory; or real ones, if it must."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), KnownValuesMode(values):
            return function()
    except Exception as error:  # whatever it needs values for
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        print(f"forerun.capture: building on real tensors, since without data: {reason}", file=sys.stderr)
        return function()


_DESCRIPTION = "Records one training iteration of your model as a run record, without running it. No GPU is needed."
_EPILOG = """FUNCTION takes nothing and gives (model, optimizer, batch) or (model, optimizer, batch, loss_fn),
or a mapping of the arguments of forerun.capture.capture: {'model': ..., 'optimizer': ..., 'batch': ..., 'precision':
'amp_bf16'}.

example:
  python -m forerun.capture train.py:build --precision amp_bf16 -o model.jsonl
  forerun predict model.jsonl"""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m forerun.capture",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "target", metavar="SCRIPT.py:FUNCTION", help="the function that builds model, optimizer and batch"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the record here (standard output if missing)")
    parser.add_argument("--precision", choices=PRECISIONS, help="as the model is, if missing; bf16 and fp16 are pure")
    parser.add_argument("--autocast", choices=["bf16", "fp16"], help="the same as --precision amp_bf16 and amp_fp16")
    parser.add_argument("--accumulate", type=int, metavar="N", help="micro-batches before each optimizer step (1)")
    parser.add_argument(
        "--checkpoint", choices=CHECKPOINTS, help="block: compute each block again in the backward pass"
    )
    parser.add_argument("--clip-grad", type=float, metavar="NORM", help="clip the gradients' norm before each step")
    parser.add_argument("--loop", choices=LOOPS, help="the library that runs the iterations; plain: none")
    parser.add_argument(
        "--batch-sizes", type=_sizes, metavar="A,B,C", help="record at three or more: any batch can be asked for"
    )
    parser.add_argument("--lengths", type=_sizes, metavar="A,B,C", help="likewise for the length of sequences")
    parser.add_argument("--backend", choices=["cuda", "generic"], help="cuda where a GPU is visible, generic elsewhere")
    parser.add_argument(
        "--compile",
        action="store_true",
        default=None,
        help="have Dynamo trace the model too: where Python code breaks its graph, for `forerun predict --compile`",
    )
    parser.add_argument("--name", help="the record's id (the model's class)")
    options = parser.parse_args(arguments)
    try:
        record = _capture_target(options)
    except (CaptureError, ValueError) as error:
        print(f"forerun.capture: {error}", file=sys.stderr)
        return 1
    _write(record, options.output)
    return 0


def _sizes(text: str) -> List[int]:
    return [int(part) for part in text.split(",")]


_OPTIONS = ("precision", "autocast", "checkpoint", "accumulate", "clip_grad", "loop")


def _capture_target(options: argparse.Namespace) -> Json:
    values = HostValues()
    built = _build(_load(options.target), values)
    given: Dict[str, Any] = (
        dict(built) if isinstance(built, Mapping) else dict(zip(("model", "optimizer", "batch", "loss_fn"), built))
    )
    for key in (*_OPTIONS, "batch_sizes", "lengths", "backend", "name", "compile"):
        if getattr(options, key) is not None:
            given[key] = getattr(options, key)
    asked = {key: given.pop(key, None) for key in _OPTIONS}
    asked["accumulate"] = 1 if asked["accumulate"] is None else asked["accumulate"]
    request = _Request(
        given["model"],
        given["optimizer"],
        given["batch"],
        given.get("loss_fn", default_loss),
        run_options(given["model"], **asked),
        _backend(given.get("backend")),
        given.get("name", ""),
        bool(given.get("compile")),
    )
    return _capture(request, values, given.get("batch_sizes"), given.get("lengths"))


def _write(record: Json, output: Optional[str]) -> None:
    if output:
        with output_file(output) as out:
            out.write(_line(record))
        size = f"{len(record['ops']['name'])} ops, {record['params']:,} parameters"
        compiled = " --compile" if "dynamo" in record else ""
        further = f"forerun predict {output}{compiled}"
        print(f"{output}: {size}, backend {record['backend']}; next: {further}", file=sys.stderr)
    else:
        sys.stdout.write(_line(record))
    if "dynamo" in record:
        print(f"forerun.capture: {dynamo_words(record['dynamo'])}", file=sys.stderr)
    fixed = record.get("parametric", {}).get("fixed")
    if fixed:
        print(f"forerun.capture: warning: it stays at its size: {fixed}", file=sys.stderr)
    for warning in record.get("warnings", []):
        print(f"forerun.capture: warning: {warning}", file=sys.stderr)
    for assumption in record.get("assumed", []):
        print(f"forerun.capture: {assumption}", file=sys.stderr)


make_callable(__name__, capture)

if __name__ == "__main__":
    sys.exit(main())
