"""The report's figures, as SVG text that can stand inside a page.

Drawn small with large type, so that they stay readable on a phone. No pyplot: nothing here touches global state.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from discreet.errors import extra
from discreet.reporting.words import alike, seeds

with extra("report"):
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

__all__ = ["blank", "burn_down", "epsilon_of_delta", "finding", "svg", "trade_off"]

INK, QUIET, NOW, LIMIT, WRONG = "#22303c", "#8a97a3", "#0f6e84", "#b4532a", "#b3261e"
LONGEST = 30  # letters of a label
_STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["system-ui", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "DejaVu Sans"],
    "font.size": 11.5,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.grid": True,
    "grid.color": "#e6eaee",
    "legend.frameon": False,
}


def burn_down(facts: dict[str, Any]) -> str:
    """Epsilon spent after each charge, against the limit of that moment."""
    trail = [point for point in facts["trail"] if point["epsilon"] is not None]
    numbers = range(len(trail) + 1)
    figure, axes = blank()
    axes.step(numbers, [0.0, *(point["epsilon"] for point in trail)], where="post", color=NOW, lw=2, label="spent")
    axes.plot(numbers[-1], trail[-1]["epsilon"] if trail else 0.0, "o", color=NOW, markersize=5, clip_on=False)
    limits = limits_then(facts, [point["seq"] for point in trail])
    ends = [*numbers[:-1], max(1, len(trail)) * 1.04]
    axes.step(ends, limits, where="post", color=LIMIT, linewidth=1.6, linestyle=(0, (5, 3)), label="limit")
    axes.set_ylim(0, facts["limit"]["epsilon"] * 1.12)
    axes.set_xlim(0, max(1, len(trail)) * 1.04)
    charges = facts["spent"]["charges"]
    axes.set_xlabel("releases" if charges == len(trail) else f"{len(trail)} points over {charges:,} releases")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("ε")
    axes.legend(loc="lower right", handlelength=1.6, frameon=False)
    if problem := _problem(facts):
        axes.set_title(problem, color=WRONG, fontweight="bold")
    return svg(figure, "burn")


def _problem(facts: dict[str, Any]) -> str:
    """What a reader of the figure alone must know: the chain is broken, or releases are not private."""
    if facts["ledger"]["problem"]:
        return "THE CHAIN IS BROKEN: not verified"
    return seeds(facts["seeded"], facts["spent"]["charges"])


def limits_then(facts: dict[str, Any], numbers: Sequence[int]) -> list[float]:
    """The limit when each of these entries was written, and now."""
    raises = [(item["seq"], item["epsilon"]) for item in facts["raises"]]
    then = [facts["at_opening"]["epsilon"] + sum(more for seq, more in raises if seq < number) for number in numbers]
    return [*then, facts["limit"]["epsilon"]]


def epsilon_of_delta(facts: dict[str, Any]) -> str:
    """The proved epsilon at every delta, and the limit as a point."""
    points = [p for p in facts["curve"] if p["epsilon"] is not None and p["delta"] > 0]
    figure, axes = blank()
    axes.plot([p["delta"] for p in points], [p["epsilon"] for p in points], color=NOW, linewidth=2, label="now")
    limit = facts["limit"]
    axes.plot([limit["delta"] or 1e-12], [limit["epsilon"]], "D", color=LIMIT, markersize=7, label="limit")
    axes.set_xscale("log")
    axes.set_xlim(1e-12, 1e-1)
    axes.set_ylim(0, max([limit["epsilon"], *(p["epsilon"] for p in points)]) * 1.12)
    axes.set_xlabel("δ")
    axes.set_ylabel("ε")
    axes.legend(loc="lower left", handlelength=1.6, frameon=False)
    return svg(figure, "curve")


def trade_off(facts: dict[str, Any]) -> str:
    """The attacker's errors: between no privacy (the corner) and perfect privacy (the diagonal)."""
    curve = facts["trade_off"]
    rates = curve["false_positive_rate"]
    figure, axes = blank()
    axes.plot([0, 1], [1, 0], color=QUIET, linewidth=1.4, linestyle=(0, (5, 3)), label="perfect privacy")
    axes.plot(rates, curve["false_negative_rate_now"], color=NOW, linewidth=2, label="now")
    axes.plot(rates, curve["false_negative_rate_at_limit"], color=LIMIT, linewidth=1.6, label="at the limit")
    axes.plot([0, 0, 1], [1, 0, 0], color=INK, linewidth=1.2, linestyle=":", label="no privacy", clip_on=False)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("false positives")
    axes.set_ylabel("false negatives")
    axes.legend(loc="upper right", handlelength=1.6, frameon=False)
    return svg(figure, "trade")


def finding(facts: dict[str, Any], prefix: str) -> str:
    """Released numbers as points with error bars, the first on top; hollow where a number is not private."""
    figure, axes = blank(height=0.9 + 0.27 * max(6, len(facts["labels"])))
    errors = facts["errors"] or [0.0] * len(facts["labels"])
    rows = zip(facts["labels"], facts["values"], errors, alike(facts["values"]), strict=True)
    for place, (label, value, error, text) in enumerate(rows):
        private = label not in facts["not_private"]
        color = NOW if private else LIMIT
        axes.errorbar(
            value,
            place,
            xerr=error or None,
            fmt="o",
            color=color,
            markersize=5.5,
            capsize=2.5,
            elinewidth=1.5,
            markerfacecolor=color if private else "white",
        )
        axes.annotate(text, (value + error, place), (7, 0), textcoords="offset points", va="center", color=color)
    names = [label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…" for label in facts["labels"]]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(facts["labels"]) - 0.5, -0.5)
    axes.margins(x=0.14)
    axes.set_xlabel(facts["axis"], parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter("{x:,g}")
    return svg(figure, prefix)


def blank(height: float = 3.3) -> tuple[Figure, Axes]:
    """An empty figure in the report's style."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(4.6, height), layout="constrained")
        return figure, figure.add_subplot()


def svg(figure: Figure, prefix: str) -> str:
    """A figure as text for a page; ``prefix`` is its own there."""
    buffer = io.StringIO()
    with matplotlib.rc_context(_STYLE | {"svg.hashsalt": prefix}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # several figures share a page, so that their ids must differ; the size follows the page
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{prefix}-\2"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    opening, rest = text.split(">", 1)
    return re.sub(r' (width|height)="[^"]+"', "", opening) + ' aria-hidden="true">' + rest
