"""The pages' figures: small SVG, drawn here, coloured by the page's styles alone, so that they are dark where it is.

Drawn small with large type, as the report's, so that they stay readable on a phone. No attribute holds a style: the
pages' policy lets a browser read none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from discreet.errors import extra
from discreet.reporting.words import alike, number

with extra("desk"):
    from markupsafe import Markup, escape

__all__ = ["MarkedValue", "Trail", "column_chart", "interval_chart", "sparkline", "trail_chart"]

WIDTH = 420
ROW = 24
LONGEST = 20  # letters of a label
MOST_ROWS = 40
KINDS = ("", "b", "c", "d")


@dataclass(frozen=True, slots=True)
class MarkedValue:
    """A number to be drawn, with the ends of its interval where they are known."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def span(self) -> tuple[float, float]:
        """What it covers."""
        return (self.value if self.low is None else self.low), (self.value if self.high is None else self.high)


@dataclass(frozen=True, slots=True)
class Trail:
    """A line that goes on: what it is called, and its points, with steps between them or straight."""

    name: str
    points: Sequence[tuple[float, float]]
    in_steps: bool = True

    def path(self, across: Callable[[float], float], up: Callable[[float], float], end: float) -> str:
        """As SVG draws it; steps go on to the end."""
        first, *rest = [(_n(across(x)), _n(up(y))) for x, y in self.points]
        line = "".join(f"H{x}V{y}" if self.in_steps else f"L{x} {y}" for x, y in rest)
        return f"M{first[0]} {first[1]}{line}" + (f"H{_n(end)}" if self.in_steps else "")


def interval_chart(values: Sequence[MarkedValue], title: str, second: Sequence[MarkedValue] = ()) -> Markup:
    """Numbers as points with error bars, the first on top; ``second`` stands beside them, for comparison."""
    shown, others = list(values)[:MOST_ROWS], list(second)[:MOST_ROWS]
    texts = alike([each.value for each in shown])
    left = 12 + 7.0 * max((min(LONGEST, len(each.label)) for each in shown), default=0)
    right = WIDTH - 16 - 7.2 * max(map(len, texts), default=0)
    low, high, ticks = _ticks([end for each in (*shown, *others) for end in each.span])
    scale = _Scale(low, high, left, right)
    bottom = ROW * len(shown) + 8
    parts = [_grid(ticks, scale, bottom)]
    for place, (each, text) in enumerate(zip(shown, texts, strict=True)):
        y = ROW * place + ROW / 2 + 4
        beside = next((other for other in others if other.label == each.label), None)
        shift = 0.0 if beside is None else 4.0
        parts.append(_label(each.label, left - 10, y + 4))
        parts.append(_whisker(each, scale, y - shift))
        if beside is not None:
            parts.append(Markup('<g class="second">{}</g>').format(_whisker(beside, scale, y + shift)))
        parts.append(Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(WIDTH, _n(y + 4), text))
    rest = "" if len(values) <= MOST_ROWS else f"; the first {MOST_ROWS} of {len(values):,}"
    told = ", ".join(f"{each.label} {text}" for each, text in zip(shown[:12], texts, strict=False))
    return _svg(parts, bottom + 20, f"{title}{rest}: {told}")


def _whisker(each: MarkedValue, scale: _Scale, y: float) -> Markup:
    x = _n(scale(each.value))
    mark = Markup('<circle class="mark" cx="{}" cy="{}" r="4"/>').format(x, _n(y))
    if each.low is None or each.high is None:
        return mark
    low, high = _n(scale(each.low)), _n(scale(each.high))
    line = f"M{low} {_n(y - 4)}V{_n(y + 4)}M{low} {_n(y)}H{high}M{high} {_n(y - 4)}V{_n(y + 4)}"
    return Markup('<path class="whisker" d="{}"/>').format(line) + mark


def column_chart(values: Sequence[float], title: str, error: float | None = None) -> Markup:
    """Counts of bins as columns, each with the same error where it is known."""
    around = error or 0.0
    low, high, ticks = _ticks([0.0, *(value + sign * around for value in values for sign in (-1, 1))])
    bottom, top, left = 170.0, 10.0, 46.0
    scale = _Scale(low, high, bottom, top)
    wide = (WIDTH - left) / max(1, len(values))
    parts = []
    for tick in ticks:
        y = _n(scale(tick))
        parts.append(Markup('<path class="grid-line" d="M{} {}H{}"/>').format(_n(left), y, WIDTH))
        parts.append(_label(number(tick), left - 6, float(y) + 4, "axis"))
    for place, value in enumerate(values):
        x, ends = left + wide * (place + 0.12), sorted((scale(0.0), scale(value)))
        box = _n(x), _n(ends[0]), _n(wide * 0.76), _n(max(0.5, ends[1] - ends[0]))
        parts.append(Markup('<rect class="column" x="{}" y="{}" width="{}" height="{}" rx="2"/>').format(*box))
        if error:
            middle = _n(x + wide * 0.38)
            line = f"M{middle} {_n(scale(value - error))}V{_n(scale(value + error))}"
            parts.append(Markup('<g class="second"><path class="whisker" d="{}"/></g>').format(line))
    parts.append(Markup('<path class="zero" d="M{} {}H{}"/>').format(_n(left), _n(scale(0.0)), WIDTH))
    return _svg(parts, bottom + 10, f"{title}: {', '.join(alike(list(values[:20])))}")


def trail_chart(trails: Sequence[Trail], title: str, below: str, ceiling: float | None = None) -> Markup:
    """Lines that rise in steps, up to four, each named at its end; and a limit, dashed."""
    shown = [trail for trail in trails if trail.points][: len(KINDS)]
    left, right, top, bottom = 46.0, WIDTH - 84.0, 12.0, 186.0
    xs = [x for trail in shown for x, _ in trail.points] or [0.0, 1.0]
    ys = [y for trail in shown for _, y in trail.points]
    low, high, ticks = _ticks([0.0, *ys, *([ceiling] if ceiling else [])])
    across, up = _Scale(min(xs), max(max(xs), min(xs) + 1e-9), left, right), _Scale(low, high, bottom, top)
    parts = []
    for tick in ticks:
        y = _n(up(tick))
        parts.append(Markup('<path class="grid-line" d="M{} {}H{}"/>').format(_n(left), y, _n(right)))
        parts.append(_label(number(tick), left - 6, float(y) + 4, "axis"))
    if ceiling:
        y = _n(up(ceiling))
        parts.append(Markup('<path class="ceiling" d="M{} {}H{}"/>').format(_n(left), y, _n(right)))
        parts.append(_name("limit", right + 6, float(y) + 4))
    ends: list[float] = [] if not ceiling else [up(ceiling)]
    for kind, trail in zip(KINDS, shown, strict=False):
        line = trail.path(across, up, right)
        parts.append(Markup('<path class="trail {}" d="{}"/>').format(kind, line))
        place_of_name = up(trail.points[-1][1])
        while any(abs(place_of_name - other) < 13 for other in ends):  # names do not stand on each other
            place_of_name += 3
        ends.append(place_of_name)
        parts.append(_name(trail.name, right + 6, place_of_name + 4))
    parts.append(Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
        _n((left + right) / 2), _n(bottom + 18), below))  # fmt: skip
    told = ", ".join(f"{trail.name} {number(trail.points[-1][1])}" for trail in shown) or "nothing yet"
    return _svg(parts, bottom + 26, f"{title}: {told}")


def sparkline(points: Sequence[float]) -> Markup:
    """A line without axes, for a cell of a table."""
    if not points:
        return Markup("")
    top = max(points) or 1.0
    step = 100 / max(1, len(points) - 1)
    line = " ".join(f"{_n(step * place)},{_n(22 - 20 * value / top)}" for place, value in enumerate(points))
    return Markup(
        '<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">'
        '<polyline class="trail" points="{}" vector-effect="non-scaling-stroke"/></svg>'
    ).format(line)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.05, max(-0.05, share)) * (self.end - self.start)


def _ticks(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """A range of round numbers around some values, and the round numbers in it.

    >>> _ticks([0.0, 17.0])
    (0.0, 20.0, [0.0, 5.0, 10.0, 15.0, 20.0])
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if 0 < low < 0.6 * high:
        low = 0.0
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = power * next(m for m in (1, 2, 5, 10) if span / (m * power) <= 5)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    return first * step, last * step, [round(place * step, 12) for place in range(first, last + 1)]


def _grid(ticks: Sequence[float], scale: _Scale, bottom: float) -> Markup:
    few = ticks if len(ticks) <= 4 else ticks[::2]
    lines = Markup("").join(
        Markup('<path class="grid-line" d="M{} 2V{}"/>').format(_n(scale(tick)), _n(bottom)) for tick in few
    )
    texts = Markup("").join(
        Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(_n(scale(tick)), _n(bottom + 14), text)
        for tick, text in zip(few, (f"{tick:,.10g}" for tick in few), strict=True)
    )
    return lines + Markup('<g class="axis">{}</g>').format(texts)


def _label(text: str, x: float, y: float, kind: str = "") -> Markup:
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="end">{}</text>').format(kind, _n(x), _n(y), short)


def _name(text: str, x: float, y: float) -> Markup:
    short = text if len(text) <= 12 else f"{text[:11]}…"
    return Markup('<text class="axis" x="{}" y="{}">{}</text>').format(_n(x), _n(y), short)


def _svg(parts: Sequence[Markup], height: float, told: str) -> Markup:
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, _n(height), escape(told), Markup("").join(parts)
    )


def _n(value: float) -> str:
    """A place, to a tenth."""
    return f"{value:.1f}"
