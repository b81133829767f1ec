"""The quality report's figures: real beside synthetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import extra

with extra("report"):
    from matplotlib.ticker import MaxNLocator

from discreet.reporting.figures import INK, LIMIT, NOW, blank, svg

__all__ = ["column", "correlations", "marginals"]

_MOST_BARS = 40  # cells of a column that are drawn
_MOST_LABELS, _LONGEST_LABEL = 10, 16  # that fit beside each other


def marginals(facts: dict[str, Any]) -> str:
    """Average and largest error of marginals, by the number of columns."""
    figure, axes = blank(2.6)
    found = facts["marginals"]
    places = np.arange(len(found))
    axes.bar(places - 0.2, [m["mean"] for m in found.values()], 0.38, color=NOW, label="average")
    axes.bar(places + 0.2, [m["max"] for m in found.values()], 0.38, color=LIMIT, label="largest")
    axes.set_xticks(places, [f"{ways}-way" for ways in found])
    axes.set_ylabel("total variation")
    axes.set_ylim(0, None)
    axes.legend(loc="upper left", handlelength=1.2)
    return svg(figure, "marginals")


def column(facts: dict[str, Any], prefix: str) -> str:
    """The share of each cell in both tables, the first cells of a long column; numbers that many share as points."""
    figure, axes = blank(2.3)
    shown = min(_MOST_BARS, len(facts["real"]))
    places = np.arange(shown)
    axes.bar(places, facts["synthetic"][:shown], 0.9, color=NOW, alpha=0.45, label="synthetic")
    edges = np.arange(shown + 1) - 0.5
    axes.stairs(facts["real"][:shown], edges, baseline=None, color=INK, linewidth=1.3, label="real")
    for label, side, mark, colour in (("one number, real", "real", "o", INK), ("synthetic", "synthetic", "x", NOW)):
        if facts["spikes"]:
            heights = [spike[side] for spike in facts["spikes"]]
            at = [min(spike["place"], shown - 1.0) - 0.5 for spike in facts["spikes"]]
            axes.plot(at, heights, mark, color=colour, fillstyle="none", markersize=7, label=label, clip_on=False)
    if facts["labels"] and len(facts["labels"]) <= _MOST_LABELS and max(map(len, facts["labels"])) <= _LONGEST_LABEL:
        axes.set_xticks(places, facts["labels"], rotation=20, ha="right", parse_math=False)
    else:
        axes.set_xlabel("cell; the last is what is missing" if shown == len(facts["real"]) else f"first {shown} cells")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("share")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, handlelength=1.2, borderaxespad=0.2)
    return svg(figure, prefix)


def correlations(facts: dict[str, Any]) -> str:
    """Synthetic minus real correlation of every pair of columns of numbers; blank where one is not defined."""
    figure, axes = blank(3.6)
    real, synthetic = (np.array(facts["correlation"][side], float) for side in ("real", "synthetic"))
    gap = synthetic - real
    most = max(0.05, float(np.nanmax(np.abs(gap))))
    image = axes.imshow(gap, cmap="PuOr", vmin=-most, vmax=most)
    names = facts["correlation"]["columns"]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.grid(visible=False)
    figure.colorbar(image, ax=axes, shrink=0.8)
    return svg(figure, "correlation")
