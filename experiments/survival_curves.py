"""How near private Kaplan-Meier curves at ε = 1 come to the curves without noise, on real survival data that ship with
lifelines; and how often the band holds the curve that records were drawn from.

``error`` is the root mean square of the difference at all times and over all runs, from lifelines' curve at the ends of
the periods; ``band`` how often the band holds, at every time at once, the curve of a population from which each run's
records are drawn with replacement. DISCREET_RUNS sets the number of runs.
"""

from __future__ import annotations

import os
from typing import Any

import lifelines
import numpy as np
from lifelines import datasets

from discreet import inference
from discreet.inference.simulation import noise_like
from discreet.inference.survival import hazards, survival_of
from experiments import _results

RUNS = int(os.environ.get("DISCREET_RUNS", "500"))
DATA = {
    "rossi": (datasets.load_rossi, "week", "arrest", 52.0, 52),
    "gbsg2": (datasets.load_gbsg2, "time", "cens", 2_190.0, 36),
    "dd": (datasets.load_dd, "duration", "observed", 20.0, 20),
    "waltons": (datasets.load_waltons, "T", "E", 75.0, 25),
}
"""Records of times, whether the event was seen, the horizon and the periods: public choices."""


def study(name: str, runs: int) -> dict[str, Any]:
    """Errors and coverage on one data set."""
    load, when, seen, horizon, periods = DATA[name]
    frame = load()
    times, events = frame[when].to_numpy(float), frame[seen].to_numpy(int)
    operation = inference.KaplanMeier(horizon=horizon, periods=periods, epsilon=1.0, simulations=199)
    peer = lifelines.KaplanMeierFitter().fit(times, events)
    truth = peer.survival_function_at_times(operation.times).to_numpy()
    table = operation.totals((times, events)).astype(float)
    population = survival_of(hazards(table))
    rng, errors, held, widths = np.random.default_rng(0), [], 0, []
    for _ in range(runs):
        curve = operation.answer(table + noise_like(operation.mechanism, table.shape, rng))
        errors.append(np.mean((curve.survival - truth) ** 2))
        drawn = rng.integers(0, len(times), len(times))
        again = operation.totals((times[drawn], events[drawn])).astype(float)
        band = operation.answer(again + noise_like(operation.mechanism, table.shape, rng))
        held += bool(((band.lower <= population + 1e-12) & (population <= band.upper + 1e-12)).all())
        widths.append(float((band.upper - band.lower).mean()))
    return {
        "records": len(times),
        "periods": periods,
        "error": float(np.sqrt(np.mean(errors))),
        "grouping": float(np.sqrt(np.mean((population - truth) ** 2))),
        "band": held / runs,
        "width": float(np.mean(widths)),
    }


def main(quick: bool = False) -> None:
    results = {name: study(name, 20 if quick else RUNS) for name in DATA}
    header = ["data", "records", "periods", "error", "of which grouping times", "band holds, %", "width of the band"]
    rows = [
        [
            name,
            f"{each['records']:,}",
            str(each["periods"]),
            f"{each['error']:.3f}",
            f"{each['grouping']:.3f}",
            f"{100 * each['band']:.1f}",
            f"{each['width']:.2f}",
        ]
        for name, each in results.items()
    ]
    _results.show("Kaplan-Meier at ε = 1", header, rows)
    _results.write_table("inference_levels", header, rows, mark="survival")


if __name__ == "__main__":
    main(_results.begin(__doc__))
