"""How a prediction looks: a few lines in a terminal, a card with a chart of memory in a notebook.

The card is one piece of HTML and SVG that fetches nothing. Every name in it is escaped.
"""

from __future__ import annotations

import html as escaping
import math
from typing import TYPE_CHECKING, Dict, List, Sequence, Tuple

from ..errors import InputError

if TYPE_CHECKING:
    from .prediction import MemoryTimeline, Prediction

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 200, 56, 22, 18
_KINDS = {
    "parameters": "#0a3069",
    "optimizer_state": "#0969da",
    "gradients": "#bf8700",
    "activations": "#54aeff",
    "temporaries": "#8250df",
    "other": "#6e7781",
}
_RESERVED = "#d8dee4"
_VERDICTS = {"fits": "fits", "may_not_fit": "may not fit", "does_not_fit": "does not fit"}
_COLOURS = {"fits": "#1a7f37", "may_not_fit": "#9a6700", "does_not_fit": "#cf222e"}


def _rate(prediction: Prediction) -> str:
    tokens = prediction.tokens_per_second
    return f"{tokens:,.0f} tokens/s" if tokens else f"{prediction.samples_per_second:,.4g} samples/s"


def headline(prediction: Prediction) -> str:
    """Which run it is, in a line."""
    told = prediction._told
    return f"{told['id']} on {told['gpu']}, batch {told['batch']}, {told['precision']}, {told['optimizer']}"


def _remedies(prediction: Prediction) -> str:
    return "; ".join(f"{each.what} ({each.iteration_ms:.3g} ms)" for each in prediction.host_remedies)


def text(prediction: Prediction) -> str:
    """For a terminal."""
    memory = prediction.memory
    verdict = _VERDICTS.get(prediction.verdict, prediction.verdict)
    lines = [f"warning: {warning}" for warning in prediction.warnings]
    lines += [
        headline(prediction),
        f"  iteration  {prediction.iteration!r}, bound by {prediction.bound}, {_rate(prediction)}",
        f"  memory     {memory.reserved!r} reserved, {memory.allocated.bytes!r} allocated: "
        f"{verdict} in {memory.device!r}",
    ]
    job = prediction.job
    if job is not None:
        cost = f", costs {job.cost:,.2f}" if job.cost is not None else ""
        energy = f", {job.energy_kwh:,.4g} kWh" if job.energy_kwh is not None else ""
        lines.append(f"  whole run  {job.hours:,.4g} h in {job.iterations:,} iterations{energy}{cost}")
    if prediction.host_remedies:
        lines.append(f"  faster     {_remedies(prediction)}")
    return "\n".join(lines)


def html(prediction: Prediction) -> str:
    """For a notebook."""
    memory = prediction.memory
    rows: List[Tuple[str, str]] = [
        ("iteration", f"{prediction.iteration!r}"),
        ("speed", f"{_rate(prediction)}, bound by {prediction.bound}"),
        ("memory", f"{memory.reserved!r} reserved of {memory.device!r}"),
    ]
    job = prediction.job
    if job is not None:
        cost = f", costs {job.cost:,.2f}" if job.cost is not None else ""
        rows.append(("whole run", f"{job.hours:,.4g} h in {job.iterations:,} iterations{cost}"))
    if prediction.host_remedies:
        rows.append(("faster with", _remedies(prediction)))
    cells = "".join(
        f'<tr><td style="text-align:left;color:#57606a">{escaping.escape(name)}</td>'
        f'<td style="text-align:left">{escaping.escape(value)}</td></tr>'
        for name, value in rows
    )
    warnings = "".join(f'<div style="color:#cf222e">{escaping.escape(told)}</div>' for told in prediction.warnings)
    colour = _COLOURS.get(prediction.verdict, "#57606a")
    verdict = escaping.escape(_VERDICTS.get(prediction.verdict, prediction.verdict))
    return (
        f'<div style="font-family:sans-serif;border:1px solid #d0d7de;padding:10px;max-width:{_WIDTH + 20}px">'
        f'<div style="font-weight:600">{escaping.escape(headline(prediction))} '
        f'<span style="color:{colour}">{verdict}</span></div>{warnings}<table>{cells}</table>{_chart(prediction)}</div>'
    )


def _chart(prediction: Prediction) -> str:
    try:
        timeline = prediction.memory.chart()
    except InputError as error:  # too long to draw, or a file that is gone
        return f'<div style="color:#57606a">{escaping.escape(str(error))}</div>'
    return memory_svg(timeline)


def memory_svg(timeline: MemoryTimeline) -> str:
    """Memory over an iteration, its kinds one on the other below what is reserved, as inline SVG."""
    at = timeline.columns["at_op"]
    reserved = timeline.columns["reserved"]
    kinds = _kinds(timeline)
    first, last = (at[0], at[-1]) if at else (0.0, 1.0)
    ticks, unit = _ticks(max([1, *reserved, *timeline.columns["allocated"]]))
    most = ticks[-1]
    rows = _thinned(timeline.columns["allocated"])

    def x(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 1) * (place - first) / max(last - first, 1e-9)

    def y(size: float) -> float:
        return _TOP + (_HEIGHT - _BOTTOM - _TOP) * (1 - size / most)

    def area(values: Sequence[int], colour: str) -> str:
        points = [f"{x(at[row]):.1f},{y(values[row]):.1f}" for row in rows]
        edges = f"{x(first):.1f},{y(0):.1f} {' '.join(points)} {x(last):.1f},{y(0):.1f}"
        return f'<polygon points="{edges}" fill="{colour}"/>'

    areas = [area(reserved, _RESERVED)]
    height = [0] * len(at)
    stacked = []
    for kind, values in kinds.items():
        height = [below + value for below, value in zip(height, values)]
        stacked.append(area(height, _KINDS[kind]))
    areas += reversed(stacked)  # the highest first: the others cover what is theirs
    scale = "".join(
        f'<line x1="{_LEFT}" y1="{y(tick):.1f}" x2="{_WIDTH}" y2="{y(tick):.1f}" stroke="#8c959f" opacity="0.25"/>'
        f'<text x="{_LEFT - 4}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick / unit[1]:g} {unit[0]}</text>'
        for tick in ticks
    )
    marks = "".join(
        f'<line x1="{x(op):.1f}" y1="{_TOP}" x2="{x(op):.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#57606a" opacity="0.5"/>'
        + (f'<text x="{x(op) + 3:.1f}" y="{_HEIGHT - 5}">{name}</text>' if x(op) < _WIDTH - 45 else "")
        for name, op in zip(("forward", "backward", "update"), timeline.phases)
    )
    names = [(kind.replace("_", " "), _KINDS[kind]) for kind in kinds] + [("reserved", _RESERVED)]
    peak = escaping.escape(f"peak: {timeline.peak_op}")
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" style="max-width:100%" '
        f'font-family="sans-serif" font-size="11" fill="#57606a"><title>{peak}</title>'
        f'{"".join(areas)}{scale}{marks}{_legend(names)}</svg>'
    )


def _kinds(timeline: MemoryTimeline) -> Dict[str, Sequence[int]]:
    """What is allocated by kind, from below; kinds that would hardly show, together."""
    told = {name: timeline.columns[name] for name in timeline.columns if name not in ("at_op", "allocated", "reserved")}
    least = max([1, *timeline.columns["allocated"]]) / 100
    large = [kind for kind in _KINDS if max(told.get(kind, []), default=0) >= least]
    shown: Dict[str, Sequence[int]] = {kind: told[kind] for kind in large}
    rest = [values for name, values in told.items() if name not in shown]
    others = [sum(entries) for entries in zip(*rest)]
    return {**shown, "other": others} if max(others, default=0) >= least else shown


def _ticks(most: int) -> Tuple[List[float], Tuple[str, int]]:
    """Round sizes from 0 to at least `most`, and their unit."""
    unit = ("GiB", 1 << 30) if most >= 1 << 29 else ("MiB", 1 << 20) if most >= 1 << 19 else ("KiB", 1 << 10)
    power = 10.0 ** math.floor(math.log10(most / unit[1] / 2))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor * 4 >= most / unit[1])
    return [step * unit[1] * number for number in range(math.ceil(most / unit[1] / step - 1e-9) + 1)], unit


def _legend(names: Sequence[Tuple[str, str]]) -> str:
    left, parts = float(_LEFT), []
    for name, colour in names:
        parts.append(
            f'<rect x="{left:.0f}" y="3" width="10" height="10" fill="{colour}"/>'
            f'<text x="{left + 14:.0f}" y="12">{escaping.escape(name)}</text>'
        )
        left += 14 + 6 * len(name) + 10
    return "".join(parts)


def _thinned(values: Sequence[int], most: int = 600) -> List[int]:
    """At most about so many rows, each the largest of those it stands for."""
    step = max(1, -(-len(values) // most))
    starts = range(0, len(values), step)
    return [max(range(start, min(start + step, len(values))), key=lambda row: values[row]) for start in starts]
