"""Records a training iteration without running it: no GPU needed, nothing allocated.

    from forerun.capture import capture
    record = capture(model, optimizer, (images, labels), autocast="bf16")       # a run/2 record
    capture(model, optimizer, batch, loss_fn, file="model.jsonl")               # ... and written, for `forerun
    predict model.jsonl`

or, from the shell, ``python -m forerun.capture train.py:build -o model.jsonl``, where ``build()`` gives the arguments
of `capture`.

Where a GPU is visible the ops are those CUDA would run, on fake tensors (``backend: cuda``). Elsewhere they are
recorded on fake CPU tensors under CUDA's dispatch rules (``backend: generic``), and `forerun` finishes the mapping;
both give the same prediction. A model that branches on the values of its data cannot be followed; the record says in
``assumed`` where it was guessed.
"""
from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import pathlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import torch_version

torch_version.require(__name__)

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from .cuda_fakes import complete_fakes  # noqa: E402
from .generic import cuda_like_dispatch  # noqa: E402
from .output_file import output_file  # noqa: E402
from .recorder import OpRecorder  # noqa: E402
from .stand_ins import stand_ins  # noqa: E402
from .training import LossFunction, TrainingTask, default_loss  # noqa: E402

Json = Dict[str, Any]
_AUTOCAST = {"bf16": torch.bfloat16, "bfloat16": torch.bfloat16, "fp16": torch.float16, "float16": torch.float16}


def capture(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    loss_fn: LossFunction = default_loss,
    *,
    autocast: Union[None, str, torch.dtype] = None,
    accumulate: int = 1,
    name: str = "",
    backend: Optional[str] = None,
    file: Union[None, str, pathlib.Path] = None,
) -> Json:
    """Records one steady-state iteration of training `model`.

    :param batch: (inputs..., labels), or a mapping of the model's keyword arguments; real or fake, on any device
    :param loss_fn: `loss_fn(model, batch)` gives the loss, or a tuple of the loss and what the loop keeps alive
        beside it
    :param autocast: "bf16", "fp16" or None
    :param accumulate: micro-batches before each step of the optimizer
    :param backend: "cuda" or "generic"; by default cuda where a GPU is visible
    :param file: where to write the record
    :returns: the record (docs/records.md); model and optimizer are left as they were
    """
    backend = backend or ("cuda" if torch.cuda.is_available() else "generic")
    if backend not in ("cuda", "generic"):
        raise ValueError(f'backend is "{backend}"; known: cuda (needs a visible GPU), generic')
    if accumulate < 1:
        raise ValueError(f"accumulate is {accumulate}; it counts micro-batches, so 1 or more")
    task = TrainingTask(model, optimizer, batch, loss_fn, _autocast_type(autocast), accumulate)
    recorder = _record(task, backend)
    record = _describe(task, backend, name or type(model).__name__)
    record.update(recorder.columns())
    if recorder.assumed:
        record["assumed"] = sorted(set(recorder.assumed))
    if file is not None:
        with output_file(file) as out:
            out.write(json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n")
    return record


def _autocast_type(autocast: Union[None, str, torch.dtype]) -> Optional[torch.dtype]:
    if autocast is None or isinstance(autocast, torch.dtype):
        return autocast
    if autocast not in _AUTOCAST:
        raise ValueError(f'autocast is "{autocast}"; known: {", ".join(_AUTOCAST)}')
    return _AUTOCAST[autocast]


def _record(task: TrainingTask, backend: str) -> OpRecorder:
    """Two iterations, of which the second is recorded: the optimizer's state appears in the first."""
    device = torch.device("cuda:0" if backend == "cuda" else "cpu")
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_taken_for_real())
        forget: Callable[[], None] = lambda: None
        if backend == "generic":
            forget = stack.enter_context(cuda_like_dispatch()).forget
        stack.enter_context(complete_fakes())
        real = stack.enter_context(stand_ins(task, device))
        _choose_optimizer_kernels(real.optimizer)
        real.model.train(task.model.training)

        def on_phase(letter: str) -> None:
            if letter == "b":
                forget()  # the autocast context has ended

        with OpRecorder(real.model, pretend_gpu=backend == "generic"):
            real.iterate(device.type, on_phase)
        recorder = OpRecorder(real.model, pretend_gpu=backend == "generic")
        recorder.root_model(real.model, real.optimizer)
        _root_inputs(recorder, real.batch, "input")

        def on_recorded_phase(letter: str) -> None:
            recorder.phase = letter
            on_phase(letter)

        with recorder:
            real.iterate(device.type, on_recorded_phase)
        recorder.close()
    return recorder


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
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            _root_inputs(recorder, item, f"{name}{number}")


def _choose_optimizer_kernels(optimizer: torch.optim.Optimizer) -> None:
    """On a GPU an optimizer that was not told otherwise works on all tensors at once; on fake ones it would not."""
    for group in optimizer.param_groups:
        if "foreach" in group and group["foreach"] is None and not group.get("fused"):
            group["foreach"] = True


# -- what was captured, in words ---------------------------------------------------------------------------------------


def _describe(task: TrainingTask, backend: str, name: str) -> Json:
    parameters = list(task.model.parameters())
    return {
        "schema": "run/2",
        "id": name,
        "backend": backend,
        "family": "capture",
        "args": {},
        "input": _input_of(task.batch),
        "run": {
            "precision": _precision_of(task),
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


def _precision_of(task: TrainingTask) -> str:
    if task.autocast is not None:
        return "amp_bf16" if task.autocast is torch.bfloat16 else "amp_fp16"
    return "fp32" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _optimizer_of(optimizer: torch.optim.Optimizer) -> Json:
    group = optimizer.param_groups[0]
    impl = "fused" if group.get("fused") else "forloop" if group.get("foreach", False) is False else "foreach"
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


def _build(function: Callable[[], Any]) -> Any:
    """Calls the user's function on fake tensors, so that a large model costs no memory; or real ones, if it must."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return function()
    except Exception as error:  # whatever it needs values for
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        print(f"forerun.capture: building on real tensors, since without data: {reason}", file=sys.stderr)
        return function()


_DESCRIPTION = "Records one training iteration of your model as a run record, without running it. No GPU is needed."
_EPILOG = """FUNCTION takes nothing and gives (model, optimizer, batch) or (model, optimizer, batch, loss_fn),
or a mapping of the arguments of forerun.capture.capture: {'model': ..., 'optimizer': ..., 'batch': ..., 'autocast':
'bf16'}.

example:
  python -m forerun.capture train.py:build --autocast bf16 -o model.jsonl
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
    parser.add_argument("--autocast", choices=["bf16", "fp16"], help="mixed precision")
    parser.add_argument("--accumulate", type=int, metavar="N", help="micro-batches before each optimizer step (1)")
    parser.add_argument("--backend", choices=["cuda", "generic"], help="cuda where a GPU is visible, generic elsewhere")
    parser.add_argument("--name", help="the record's id (the model's class)")
    options = parser.parse_args(arguments)
    built = _build(_load(options.target))
    given: Dict[str, Any] = (
        dict(built) if isinstance(built, Mapping) else dict(zip(("model", "optimizer", "batch", "loss_fn"), built))
    )
    for key in ("autocast", "accumulate", "backend", "name"):
        if getattr(options, key) is not None:
            given[key] = getattr(options, key)
    record = capture(**given)
    text = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
    if options.output:
        with output_file(options.output) as out:
            out.write(text)
        size = f"{len(record['ops']['name'])} ops, {record['params']:,} parameters"
        print(
            f"{options.output}: {size}, backend {record['backend']}; next: forerun predict {options.output}",
            file=sys.stderr,
        )
    else:
        sys.stdout.write(text)
    for assumption in record.get("assumed", []):
        print(f"forerun.capture: {assumption}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
