"""How a prediction looks: a few lines in a terminal, a card with a chart of memory in a notebook.

The card is one piece of HTML and SVG that fetches nothing. Every name in it is escaped.
"""

from __future__ import annotations

import html as escaping
from typing import TYPE_CHECKING, List, Sequence, Tuple

from ..errors import InputError

if TYPE_CHECKING:
    from .prediction import MemoryTimeline, Prediction

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 160, 52, 18
_VERDICTS = {"fits": "fits", "may_not_fit": "may not fit", "does_not_fit": "does not fit"}
_COLOURS = {"fits": "#1a7f37", "may_not_fit": "#9a6700", "does_not_fit": "#cf222e"}


def _rate(prediction: Prediction) -> str:
    tokens = prediction.tokens_per_second
    return f"{tokens:,.0f} tokens/s" if tokens else f"{prediction.samples_per_second:,.4g} samples/s"


def headline(prediction: Prediction) -> str:
    """Which run it is, in a line."""
    told = prediction.json
    return f"{told['id']} on {told['gpu']}, batch {told['batch']}, {told['precision']}, {told['optimizer']}"


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
    """Memory over an iteration, allocated below reserved, as inline SVG."""
    at = timeline.columns["at_op"]
    allocated, reserved = timeline.columns["allocated"], timeline.columns["reserved"]
    first, last = (at[0], at[-1]) if at else (0.0, 1.0)
    most = max([1, *reserved, *allocated])

    def x(place: float) -> float:
        return _LEFT + (_WIDTH - _LEFT) * (place - first) / max(last - first, 1e-9)

    def y(size: float) -> float:
        return 6 + (_HEIGHT - _BOTTOM - 6) * (1 - size / most)

    def area(values: Sequence[int], colour: str) -> str:
        points = [f"{x(place):.1f},{y(value):.1f}" for place, value in _thinned(at, values)]
        edges = f"{x(first):.1f},{y(0):.1f} {' '.join(points)} {x(last):.1f},{y(0):.1f}"
        return f'<polygon points="{edges}" fill="{colour}"/>'

    marks = "".join(
        f'<line x1="{x(op):.1f}" y1="6" x2="{x(op):.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#8c959f"/>'
        f'<text x="{x(op) + 3:.1f}" y="{_HEIGHT - 5}" font-size="11" fill="#57606a">{name}</text>'
        for name, op in zip(("forward", "backward", "update"), timeline.phases)
    )
    scale = "".join(
        f'<text x="{_LEFT - 4}" y="{y(share * most) + 4:.1f}" font-size="11" text-anchor="end" fill="#57606a">'
        f"{share * most / 2**30:.3g} GiB</text>"
        for share in (0, 0.5, 1)
    )
    peak = escaping.escape(f"peak: {timeline.peak_op}")
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="sans-serif"><title>{peak}</title>'
        f'{area(reserved, "#d8dee4")}{area(allocated, "#54aeff")}{marks}{scale}</svg>'
    )


def _thinned(at: Sequence[float], values: Sequence[int], most: int = 600) -> List[Tuple[float, int]]:
    """At most about so many points, each the largest of those it stands for."""
    step = max(1, -(-len(at) // most))
    points = []
    for start in range(0, len(at), step):
        best = max(range(start, min(start + step, len(at))), key=lambda row: values[row])
        points.append((at[best], values[best]))
    return points
