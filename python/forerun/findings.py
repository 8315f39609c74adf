"""What a reader of a capture must know: values that were assumed, random branches, parts of the model without part.

``findings`` gives the fields ``assumed``, ``warnings``, ``unused`` and ``random`` of a record (docs/records.md).
What leaves the prediction as it is goes to ``assumed``; what may move it by more than a few per cent is a warning,
which every answer about the record begins with.
"""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Set

import torch

from .capture_session import Draws, OtherOutcome, Recording
from .host_values import Origin
from .torch_version import untried

Json = Dict[str, Any]

_FEW = 0.03  # up to this share of ops, parameters or modules is no warning
_NAMES_SHOWN = 5
_LITTLE = 1 << 20  # bytes outside the model that need no word
_CONTAINERS = (
    torch.nn.ModuleList,
    torch.nn.ModuleDict,
    torch.nn.ParameterList,
    torch.nn.ParameterDict,
    torch.nn.Sequential,
)


def findings(recording: Recording, model: torch.nn.Module, said: Sequence[str] = ()) -> Json:
    """The fields that are not empty; `said` are further warnings."""
    assumed: List[str] = []
    warnings: List[str] = list(said)
    fields: Json = {}
    unused = _unused(recording, model)
    if unused["parameters"] or unused["modules"]:
        fields["unused"] = unused
        (warnings if _is_much(unused) else assumed).append(_unused_text(unused))
    if recording.draws is not None:
        fields["random"] = _random(recording.draws, recording)
        (warnings if _differ(recording.draws.ops) else assumed).append(_random_text(recording.draws, recording))
    for outcome in recording.outcomes:
        (warnings if _matters(outcome, recording) else assumed).append(_outcome_text(outcome, recording))
    assumed += _reads_text(recording)
    warnings += recording.words.notes
    newer = untried()
    if newer is not None:
        assumed.append(newer)
    if recording.without_step:
        names = ", ".join(recording.without_step[:_NAMES_SHOWN])
        count = len(recording.without_step)
        assumed.append(f"{count} parameter tensors get a gradient and no optimizer steps them: {names}")
    if recording.recorder.outside_bytes > _LITTLE:
        assumed.append(_outsiders_text(recording))
    for name, texts in (("warnings", warnings), ("assumed", assumed)):
        if texts:
            fields[name] = texts
    return fields


# -- parts of the model that took no part ------------------------------------------------------------------------------


def _unused(recording: Recording, model: torch.nn.Module) -> Json:
    """Parameters without part, and modules that have some, none of which took part, and that were never called.

    Where draws differ, what another draw calls is not unused.
    """
    idle = {name for name in recording.without_gradient + recording.without_part if not _is_drawn(name, recording)}
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    modules = _modules_with_parameters(model)
    never = [name for name, parameters in modules.items() if parameters <= idle and name not in recording.called]
    names = [name for name in never if not any(name.startswith(f"{other}.") for other in never)]
    return {
        "parameters": sum(sizes[name] for name in idle),
        "of_parameters": sum(sizes.values()),
        "modules": len(never),
        "of_modules": len(modules),
        "names": (names or sorted(idle))[:_NAMES_SHOWN],
    }


def _is_drawn(parameter: str, recording: Recording) -> bool:
    """Whether the module of a parameter is one that the recorded draw passed over."""
    skipped = recording.draws.skipped if recording.draws is not None else []
    return parameter.rpartition(".")[0] in skipped


def _modules_with_parameters(model: torch.nn.Module) -> Dict[str, Set[str]]:
    """The parameters of each module that is no mere container, by their first names in the model."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    held: Dict[str, Set[str]] = {}
    for name, module in model.named_modules():
        parameters = {names[parameter] for parameter in module.parameters()}
        if name and parameters and not isinstance(module, _CONTAINERS):
            held[name] = parameters
    return held


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _is_much(unused: Json) -> bool:
    return max(_unused_shares(unused)) > _FEW


def _unused_shares(unused: Json) -> List[float]:
    return [_share(unused[what], unused[f"of_{what}"]) for what in ("parameters", "modules")]


def _unused_text(unused: Json) -> str:
    parameters, modules = _unused_shares(unused)
    listed = ", ".join(unused["names"])
    return (
        f"{unused['parameters']:,} parameters ({parameters:.1%}) and {unused['modules']:,} of {unused['of_modules']:,} "
        f"modules with parameters ({modules:.1%}) took no part in the recorded iteration: {listed}"
    )


def _outsiders_text(recording: Recording) -> str:
    lines = list(recording.outsiders.lines)[:_NAMES_SHOWN]
    size = recording.recorder.outside_bytes / 2**20
    return f"{size:,.1f} MiB outside the model are read or written, and taken to lie on the GPU: {', '.join(lines)}"


# -- random branches ---------------------------------------------------------------------------------------------------


def _random(draws: Draws, recording: Recording) -> Json:
    return {
        "lines": draws.lines,
        "draws": len(draws.ops),
        "ops": {"least": draws.ops[0], "recorded": recording.recorder.pass_ops(), "most": draws.ops[-1]},
        "modules_skipped": len(draws.skipped),
        "of_modules": len(recording.called),
    }


def _differ(ops: List[int]) -> bool:
    return ops[-1] - ops[0] > _FEW * ops[len(ops) // 2]


def _random_text(draws: Draws, recording: Recording) -> str:
    where = ", ".join(f"{line} x {count}" if count else line for line, count in draws.lines.items())
    skipped = _share(len(draws.skipped), len(recording.called))
    return (
        f"random numbers decide what is run ({where}): the median of {len(draws.ops)} "
        f"draws is recorded, {recording.recorder.pass_ops():,} ops forward and backward of {draws.ops[0]:,} to "
        f"{draws.ops[-1]:,}, and passes over {skipped:.1%} of the modules"
    )


# -- values that were read ---------------------------------------------------------------------------------------------


def _ops(recording: Recording) -> int:
    return len(recording.recorder.outline())


def _matters(outcome: OtherOutcome, recording: Recording) -> bool:
    if not outcome.tried:
        return True
    return not outcome.same and (outcome.ops == 0 or abs(outcome.ops - _ops(recording)) > _FEW * _ops(recording))


def _outcome_text(outcome: OtherOutcome, recording: Recording) -> str:
    text = f"{outcome.line} reads {outcome.origin.value}; {outcome.value} was assumed"
    if not outcome.tried:
        return text + ", and no other value was tried"
    if outcome.raises:
        return text + f", since another raises {outcome.raises}"
    if outcome.same:
        return text + ", and another gives the same ops"
    return text + f": {_ops(recording):,} ops are recorded, another value gives {outcome.ops:,}"


def _reads_text(recording: Recording) -> List[str]:
    """What was read of the batch's values, and of choices that were taken to be even, line by line."""
    lines: Dict[Origin, Dict[str, str]] = {Origin.batch: {}, Origin.even: {}}
    for read in recording.reads:
        if read.origin in lines:
            lines[read.origin].setdefault(read.line, f"{read.line} ({read.value})")
    texts = [f"{origin.value}: read at {', '.join(shown.values())}" for origin, shown in lines.items() if shown]
    if recording.recorder.has_grouped_products():
        texts.append("grouped matrix products: rows are taken to be spread evenly over the groups (experts)")
    return texts
