"""What something would cost: a set of questions, or a training. Worked out from public numbers; nothing is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet import events
from discreet.accounting import epsilon as epsilon_of
from discreet.desk.pages.charts import Trail, trail_chart
from discreet.desk.pages.visits import Visit
from discreet.errors import DiscreetError, number, whole

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["plan"]

MOST = 100_000  # questions
POINTS = 24
TRAININGS = 10  # a minute and person: each is free, but takes the machine some seconds
LARGEST = 10_000_000  # records, parameters: what is worked out takes no longer, but fields have ends


def plan(visit: Visit) -> Response:
    """The page: two forms, and what came of the one that was sent."""
    values: dict[str, Any] = {"questions": None, "training": None, "problem": "", "query": visit.query}
    try:
        match visit.query.text("plan"):
            case "questions":
                values["questions"] = _questions(visit)
            case "training":
                values["training"] = _training(visit)
    except (ValueError, DiscreetError, ImportError) as error:
        values["problem"] = str(error)
    return visit.show("planner.html.j2", **values)


def _asked(visit: Visit, name: str, low: float, high: float) -> float:
    value = visit.query.number(name)
    if value is None:
        raise ValueError(f"Say a number for {name}.")
    return number(name, value, low=low, high=high, open_low=True)


def _questions(visit: Visit) -> dict[str, Any]:
    """So many questions at an epsilon each: added up, and together at a delta."""
    count = whole("count", int(_asked(visit, "count", 0, MOST)), low=1)
    each = _asked(visit, "epsilon", 0, 100)
    delta = number("delta", visit.query.number("delta") or 0.0, low=0, high=0.5)
    together = _together(each, count, delta)
    places = sorted({max(1, round(count * place / POINTS)) for place in range(1, POINTS + 1)})
    trails = [Trail("added up", [(0.0, 0.0), *((float(k), k * each) for k in places)], False)]
    if delta:
        trails.append(Trail("together", [(0.0, 0.0), *((float(k), _together(each, k, delta)) for k in places)], False))
    return {"count": count, "each": each, "delta": delta, "sum": count * each, "together": together,
            "figure": trail_chart(trails, "ε of all questions", "questions")}  # fmt: skip


def _together(each: float, count: int, delta: float) -> float:
    """The epsilon of all of them; never more than their sum."""
    if not delta:
        return count * each
    return min(count * each, float(epsilon_of(events.PureDP(epsilon=each) * count, delta=delta)))


def _training(visit: Visit) -> dict[str, Any]:
    """The frontier of a training run: signal over noise by batch size; one at a time, for it takes seconds."""
    from discreet.training import frontier as f
    from discreet.training.noise import Independent

    records = whole("records", int(_asked(visit, "records", 0, LARGEST)), low=1)
    parameters = whole("parameters", int(_asked(visit, "parameters", 0, LARGEST)), low=1)
    epochs = _asked(visit, "epochs", 0, 10_000)
    epsilon, delta = _asked(visit, "epsilon", 0, 100), _asked(visit, "delta", 0, 0.5)
    visit.desk.free.take(visit.person.name, "training", TRAININGS)
    with visit.desk.alone():
        sizes, around = f.batch_sizes(records)[-5:], [epsilon / 2, epsilon, 2 * epsilon]
        found = f.frontier(
            records, parameters, epsilons=around, delta=delta, epochs=epochs, sizes=sizes, noises=[Independent()]
        )
    chosen = found.suggested(epsilon)
    points = {value: [(math.log10(p.batch_size), p.signal_to_noise) for p in found.best(value)]
              for value in reversed(found.epsilons)}  # fmt: skip
    trails = [Trail(f"ε = {value:.3g}", at, False) for value, at in points.items()]
    lines = [{"batch": p.batch_size, "steps": p.steps, "noise": p.expected.noise_multiplier,
              "ratio": p.signal_to_noise, "chosen": p is chosen} for p in found.best(epsilon)]  # fmt: skip
    return {"lines": lines, "chosen": chosen, "epsilon": epsilon, "delta": delta,
            "figure": trail_chart(trails, "signal to noise", "batch size, as a power of ten")}  # fmt: skip
