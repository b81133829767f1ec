"""An audit of each operation that is listed in ``tests/operations``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from discreet import accounting
from discreet.adjacency import Adjacency
from discreet.auditing import Audit, CannotJudge, audit, record
from discreet.auditing._distance import between
from discreet.auditing.transcript import Replayer
from discreet.errors import UnsupportedAdjacency
from discreet.random.tap import listening
from tests.operations.contract import Case

__all__ = ["audited", "reach"]

DELTAS = (1e-5, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4)  # the first is asked at which so many runs could refute the claim


def _asked(case: Case) -> tuple[Callable[..., Any], Any, Any]:
    worst = case.worst
    own = worst.data is None
    return worst.make or case.make, *((case.data, case.neighbour) if own else (worst.data, worst.neighbour))


def audited(case: Case, alarm: float, trials: int | None = None, rng: Any = None) -> Audit:
    """Audit it on its worst neighbours; a true claim is called violated with probability ``alarm`` at most."""
    make, data, neighbour = _asked(case)
    event = (make(data) if case.bound else make()).event
    asked = {
        "trials": trials or case.worst.trials,
        "confidence": 1 - alarm,
        "adjacency": _adjacency(event),
        "read": case.worst.read or case.result,
        "rng": rng,
    }
    for delta in DELTAS:
        with suppress(CannotJudge):
            return audit(make if case.bound else make(), data, neighbour, delta=delta, **asked)
    raise AssertionError(
        f"Nothing that {case.name!r} claims could be refuted: give it worst= with more noise, or runs."
    )


def _adjacency(event: Any) -> Adjacency:
    """The neighbours that the event was proved for."""
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
        with suppress(UnsupportedAdjacency):
            accounting.epsilon(event, 0.01, adjacency=adjacency)
            return adjacency
    raise AssertionError("It claims nothing.")


class _Reached(Replayer):
    """Notes by which share of its declared sensitivity each noisy step moves."""

    shares: list[float]

    def draw_output(self, what: Any, value: Any, norm: Any, limit: Any, *rest: Any) -> Any:
        before = self._first.steps[len(self.transcript.steps)]
        allowed, moved = min(before.limit, limit), between(before.value, value, norm)
        self.shares.append(float(moved / allowed) if allowed and moved else 0.0)
        return super().draw_output(what, value, norm, limit, *rest)


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
