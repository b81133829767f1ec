"""What is measured for several columns of an answer at once: equal aggregates once, quantiles of a column together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet.tables.aggregates import Aggregate
from discreet.tables.binned import Quantile, Quantiles

__all__ = ["MeasuredFrom", "measured_aggregates"]


@dataclass(frozen=True)
class MeasuredFrom:
    """What an aggregate is read from: ``columns`` of the noisy numbers of the measured aggregate at ``place``."""

    place: int
    columns: Any


def measured_aggregates(asked: Sequence[Aggregate]) -> tuple[tuple[Aggregate, ...], tuple[MeasuredFrom, ...]]:
    """The aggregates that meet noise, and for each that is asked for what it is read from.

    >>> asked = [Quantile("x", 0.5), Quantile("x", 0.9), Quantile("y", 0.5), Quantile("x", 0.5)]
    >>> kept, read = measured_aggregates(asked)
    >>> [one.name for one in kept], [(one.place, one.columns) for one in read]
    (['x_quantiles', 'y_median'], [(0, [0]), (0, [1]), (1, [0]), (0, [0])])
    """
    shares: dict[tuple[str, int], set[float]] = {}
    for one in asked:
        if isinstance(one, Quantile):
            shares.setdefault((one.column, one.bins), set()).update(_shares(one))

    def joint(one: Aggregate) -> Aggregate:
        if not isinstance(one, Quantile) or len(every := sorted(shares[one.column, one.bins])) < 2:
            return one
        return Quantiles(one.column, tuple(every), one.bins)

    kept = tuple(dict.fromkeys(map(joint, asked)))
    return kept, tuple(MeasuredFrom(kept.index(joint(one)), _columns(one, joint(one))) for one in asked)


def _shares(one: Quantile) -> tuple[float, ...]:
    return one.q if isinstance(one, Quantiles) else (one.q,)


def _columns(one: Aggregate, joint: Aggregate) -> Any:
    if not isinstance(one, Quantile) or not isinstance(joint, Quantile):
        return slice(None)
    return [_shares(joint).index(share) for share in _shares(one)]
