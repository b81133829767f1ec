"""An audit of each operation that is listed in ``tests/operations``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from discreet import accounting
from discreet.adjacency import Adjacency
from discreet.auditing import Audit, audit, record
from discreet.auditing._distance import between
from discreet.auditing.transcript import Replayer
from discreet.errors import UnsupportedAdjacency
from discreet.random.tap import listening
from tests.operations.contract import Case

__all__ = ["audited", "reach"]

DELTAS = (1e-5, 1e-3, 1e-2, 0.05)  # the first at which something finite is claimed is asked


def _asked(case: Case) -> tuple[Callable[..., Any], Any, Any]:
    worst = case.worst
    own = worst.data is None
    return worst.make or case.make, *((case.data, case.neighbour) if own else (worst.data, worst.neighbour))


def audited(case: Case, alarm: float, trials: int | None = None, rng: Any = None) -> Audit:
    """Audit it on its worst neighbours; a true claim is called violated with probability ``alarm`` at most."""
    make, data, neighbour = _asked(case)
    event = (make(data) if case.bound else make()).event
    adjacency, delta = _claim(event)
    return audit(
        make if case.bound else make(),
        data,
        neighbour,
        trials=trials or case.worst.trials,
        delta=delta,
        confidence=1 - alarm,
        adjacency=adjacency,
        read=case.worst.read or case.result,
        rng=rng,
    )


def _claim(event: Any) -> tuple[Adjacency, float]:
    """The neighbours that the event was proved for, and a delta at which it claims something."""
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT):
        try:
            for delta in DELTAS:
                if math.isfinite(accounting.epsilon(event, delta, adjacency=adjacency)):
                    return adjacency, delta
        except UnsupportedAdjacency:
            continue
    raise AssertionError("It claims nothing at any delta: give worst= a make= that does.")


class _Reached(Replayer):
    """Notes by which share of its declared sensitivity each noisy step moves."""

    shares: list[float]

    def noised(self, what: Any, value: Any, norm: Any, limit: Any, *rest: Any) -> Any:
        before = self._first.steps[len(self.transcript.steps)]
        allowed, moved = min(before.limit, limit), between(before.value, value, norm)
        self.shares.append(float(moved / allowed) if allowed and moved else 0.0)
        return super().noised(what, value, norm, limit, *rest)


def reach(case: Case) -> float:
    """The largest share of a declared sensitivity by which the neighbours of its audit move a noisy step."""
    make, data, neighbour = _asked(case)

    def run(given: Any) -> Any:
        return make(given).release() if case.bound else make().release(given)

    listener = _Reached(record(run, data))
    listener.shares = []
    with listening(listener):
        run(neighbour)
    return max(listener.shares, default=0.0)
