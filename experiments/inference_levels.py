"""How often each private test rejects a true null hypothesis at 5 %, and how often its interval holds the truth.

Five shapes of records by ε = 0.1, 1 and 10, each with 10,000 data sets (DISCREET_RUNS sets another number), of 400
records a group, or 30 (tiny). Totals of all data sets are simulated at once and go through ``infer``, the function that
makes a release's p-value; so this is the test itself, but for reading. The exact test of a proportion has no error of
simulation. DISCREET_TESTS=Welch,LogRank,real names some of them; real are the columns of real files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import datasets, inference
from discreet.inference.hypothesis import NoisyTest
from discreet.inference.noisy_tables import draw_tables
from experiments import _data, _results

RUNS = int(os.environ.get("DISCREET_RUNS", "10000"))
LEVEL, EPSILONS, BLOCK = 0.05, (0.1, 1.0, 10.0), 200
BINS = tuple(np.linspace(0, 1, 9).tolist())
MIDDLE = 4  # bins below ½
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]


class Shape(NamedTuple):
    """How records between 0 and 1 are drawn, and how many of them there are in a group."""

    draw: Draw
    n: int = 400


def normal(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.clip(rng.normal(0.5, 0.15, size), 0, 1)


def skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.clip(rng.exponential(0.12, size), 0, 1)


def heavy(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return np.clip(0.5 + 0.08 * rng.standard_t(2, size), 0, 1)


def discrete(rng: np.random.Generator, size: tuple[int, ...]) -> Array:
    return rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], p=[0.5, 0.2, 0.15, 0.1, 0.05], size=size)


SHAPES = {
    "normal": Shape(normal),
    "skewed": Shape(skewed),
    "heavy tails": Shape(heavy),
    "discrete": Shape(discrete),
    "tiny": Shape(normal, 30),
}


def sample(shape: Shape) -> Array:
    """A large public sample, from which the truth of a shape is read."""
    return shape.draw(np.random.default_rng(5), (1_000_000,))


def shares(shape: Shape) -> Array:
    """The share of each bin."""
    return np.histogram(sample(shape), BINS)[0] / 1_000_000


def success(shape: Shape) -> float:
    """The probability of a record above 0.4."""
    return float((sample(shape) > 0.4).mean())


def triples(t: Array) -> Array:
    """The totals of a group from places between the bounds, records on the last axis."""
    return np.stack([((1 - t) ** 2).sum(-1), (2 * t * (1 - t)).sum(-1), (t**2).sum(-1)], axis=-1)


class Study(NamedTuple):
    """A test at an ε for a shape; exact totals of many data sets where its null hypothesis holds; the true effect."""

    make: Callable[[float, Shape], Any]
    totals: Callable[[Any, Shape, int, np.random.Generator], Array]
    effect: Callable[[Any], float] | None = None


def groups(count: int) -> Callable[[Any, Shape, int, np.random.Generator], Array]:
    return lambda test, shape, runs, rng: triples(shape.draw(rng, (runs, count, shape.n)))


def differences(test: Any, shape: Shape, runs: int, rng: np.random.Generator) -> Array:
    """Of two measurements, of places between bounds that are twice as wide."""
    first, second = shape.draw(rng, (2, runs, 1, shape.n))
    return triples((first - second + 1) / 2)


def nine(test: Any, shape: Shape, runs: int, rng: np.random.Generator) -> Array:
    parts = [np.stack([(1 - t) ** 2, 2 * t * (1 - t), t**2]) for t in shape.draw(rng, (2, runs, shape.n))]
    return np.einsum("irn,jrn->rij", *parts)


def scores(test: Any, shape: Shape, runs: int, rng: np.random.Generator) -> Array:
    """Of a treatment without effect, whose propensities are a fifth, a half and four fifths."""
    chance = rng.choice([0.2, 0.5, 0.8], size=(runs, 1, shape.n))
    treated, y = rng.random(chance.shape) < chance, shape.draw(rng, chance.shape) - 0.5
    low, high = test.record_bounds
    return triples((np.where(treated, y / chance, -y / (1 - chance)) - low) / (high - low))


def tables(law: Callable[[Any, Shape], Array]) -> Callable[[Any, Shape, int, np.random.Generator], Array]:
    def draw(test: Any, shape: Shape, runs: int, rng: np.random.Generator) -> Array:
        many = test.shape[0]
        cells = np.broadcast_to(law(test, shape), test.shape)
        return draw_tables(cells, np.full(many, shape.n), runs, rng)

    return draw


def lives(test: Any, shape: Shape) -> Array:
    """Times of the shape, of which three in ten left the study before."""
    law = np.histogram(sample(shape), np.linspace(0, 1, test.periods + 1))[0] / 1_000_000
    return np.stack([0.7 * law, 0.3 * law], axis=-1).reshape(-1)


def two(test: Any, shape: Shape) -> Array:
    return np.array([1 - success(shape), success(shape)])


QUICK = {"simulations": int(os.environ.get("DISCREET_SIMULATIONS", "19"))}  # with 19, p is 0.05 where none is larger
STUDIES = {
    "OneSample": Study(
        lambda e, s: inference.OneSample(bounds=(0, 1), null=float(sample(s).mean()), epsilon=e, **QUICK),
        groups(1),
        lambda test: test.null,
    ),
    "OneSample of n": Study(
        lambda e, s: inference.OneSample(
            bounds=(0, 1), null=float(sample(s).mean()), epsilon=e, adjacency="replace", n=s.n, **QUICK
        ),
        lambda test, shape, runs, rng: test.design.released(groups(1)(test, shape, runs, rng)),
        lambda test: test.null,
    ),
    "Paired": Study(lambda e, s: inference.Paired(bounds=(0, 1), epsilon=e, **QUICK), differences, lambda test: 0.0),
    "Welch": Study(lambda e, s: inference.Welch(bounds=(0, 1), epsilon=e, **QUICK), groups(2), lambda test: 0.0),
    "Anova": Study(lambda e, s: inference.Anova(bounds=(0, 1), groups=(0, 1, 2, 3), epsilon=e, **QUICK), groups(4)),
    "Correlation": Study(
        lambda e, s: inference.Correlation(bounds=((0, 1), (0, 1)), epsilon=e, **QUICK), nine, lambda test: 0.0
    ),
    "AverageEffect": Study(
        lambda e, s: inference.AverageEffect(bounds=(0, 1), overlap=0.2, epsilon=e, **QUICK),
        scores,
        lambda test: 0.0,
    ),
    "TwoProportions": Study(lambda e, s: inference.TwoProportions(epsilon=e, **QUICK), tables(two), lambda test: 0.0),
    "GoodnessOfFit": Study(
        lambda e, s: inference.GoodnessOfFit(bins=BINS, probabilities=tuple(shares(s).tolist()), epsilon=e, **QUICK),
        tables(lambda test, shape: shares(shape)),
    ),
    "Independence": Study(
        lambda e, s: inference.Independence(rows=(0, 1, 2), columns=tuple(range(8)), epsilon=e, **QUICK),
        tables(lambda test, shape: shares(shape)),
    ),
    "MannWhitney": Study(
        lambda e, s: inference.MannWhitney(bins=BINS, epsilon=e, **QUICK),
        tables(lambda test, shape: shares(shape)),
        lambda test: 0.5,
    ),
    "KolmogorovSmirnov": Study(
        lambda e, s: inference.KolmogorovSmirnov(bins=BINS, epsilon=e, **QUICK),
        tables(lambda test, shape: shares(shape)),
    ),
    "QuantileTest": Study(
        lambda e, s: inference.QuantileTest(bins=BINS, q=float(shares(s)[:MIDDLE].sum()), null=0.5, epsilon=e, **QUICK),
        tables(lambda test, shape: shares(shape)),
        lambda test: test.null,
    ),
    "LogRank": Study(lambda e, s: inference.LogRank(horizon=6, epsilon=e, **QUICK), tables(lives), lambda test: 0.0),
}


def level(test: NoisyTest, study: Study, shape: Shape, runs: int, seed: int = 1) -> tuple[float, float, float]:
    """How often the test rejects at 5 %, how often its interval holds the true effect, and how often it refuses."""
    rng, rejected, held, refused = np.random.default_rng(seed), 0, 0, 0
    for start in range(0, runs, BLOCK):
        many = min(BLOCK, runs - start)
        outcome = test.infer(test.expose(study.totals(test, shape, many, rng), rng))
        rejected += int((outcome.p_value <= LEVEL).sum())
        refused += int((~outcome.enough).sum())
        if study.effect is not None:
            held += int(((outcome.low <= study.effect(test)) & (study.effect(test) <= outcome.high)).sum())
    return rejected / runs, held / runs, refused / runs


def exact_level(shape: Shape, epsilon: float, runs: int) -> tuple[float, float, float]:
    """Of the exact test of a proportion, with Tulap noise by inversion of its distribution function."""
    p, rng = success(shape), np.random.default_rng(1)
    test = inference.Proportion(n=shape.n, null=p, adjacency="replace", epsilon=epsilon)
    b = np.exp(-epsilon)
    jumps = rng.geometric(1 - b, runs) - rng.geometric(1 - b, runs)
    noisy = rng.binomial(shape.n, p, runs) + jumps + rng.random(runs) - 0.5
    p_values = test.p_values(noisy)
    held = (test._above(noisy, p) >= 0.025) & (test._above(noisy, p) <= 0.975)
    return float((p_values <= LEVEL).mean()), float(held.mean()), 0.0


def populations() -> list[tuple[str, tuple[float, float], list[Array]]]:
    """Columns of Adult, PUMS and the warfarin patients, with public bounds, each of two groups."""
    people, census, patients = datasets.adult().train, _data.pums(), _data.warfarin()
    sex = np.asarray(people["sex"])
    found = [
        (
            f"Adult, {name}",
            datasets.census.BOUNDS[name],
            np.asarray(people[name], float),
            sex == "Male",
            sex == "Female",
        )
        for name in ("age", "education_num", "hours_per_week", "capital_loss")
    ]
    married = census["married"]
    found += [
        (f"PUMS, {name}", bounds, census[name].astype(float), married == 1, married == 0)
        for name, bounds in (("age", (0, 100)), ("educ", (1, 16)), ("income", (0, 200_000)))
    ]
    gender = patients["Gender"]
    for name, bounds in (("Height (cm)", (140, 200)), ("Weight (kg)", (40, 140))):
        known = np.array([entry not in ("NA", "") for entry in patients[name]])
        values = np.where(known, patients[name], "0").astype(float)
        found.append((f"warfarin, {name}", bounds, values, known & (gender == "male"), known & (gender == "female")))
    return [(name, bounds, [values[first], values[second]]) for name, bounds, values, first, second in found]


def real_columns(runs: int) -> list[list[str]]:
    """How often intervals hold the truth of a population that is a real file, from which records are drawn with
    replacement: the mean of a column, and by how much it differs between two groups; and how many are refused.
    """
    rng, rows = np.random.default_rng(1), []
    for name, (low, high), groups in populations():
        everybody = np.concatenate(groups)
        places = [np.clip((part - low) / (high - low), 0, 1) for part in (everybody, *groups)]
        means = [low + (high - low) * float(part.mean()) for part in places]
        for kind, parts, truth, null in (
            (inference.OneSample, places[:1], means[0], (low + high) / 2),
            (inference.Welch, places[1:], means[1] - means[2], 0.0),
        ):
            figures, open_ends = [], []
            for epsilon in EPSILONS:
                test = kind(bounds=(low, high), null=null, epsilon=epsilon, **QUICK)
                held, refused, many = 0, 0, -(-runs // BLOCK) * BLOCK
                for _ in range(0, runs, BLOCK):
                    exact = np.stack([triples(rng.choice(part, (BLOCK, 500))) for part in parts], axis=1)
                    outcome = test.infer(test.expose(exact, rng))
                    given = np.isfinite(outcome.high)
                    held += int((given & (outcome.low <= truth) & (truth <= outcome.high)).sum())
                    refused += int((~given).sum())
                figures.append(f"{100 * held / max(1, many - refused):.1f}")
                open_ends.append(f"{100 * refused / many:.1f}")
            rows.append([f"{name}, {test.label}", " / ".join(figures), " / ".join(open_ends)])
    return rows


def rows_of(results: dict[str, list[tuple[float, float, float]]], part: int) -> list[list[str]]:
    shown = []
    for name, cells in results.items():
        figures = [f"{100 * cell[part]:.2f}" for cell in cells]
        shown.append([name, *(" / ".join(figures[at : at + 3]) for at in range(0, len(figures), 3))])
    return shown


def main(quick: bool = False) -> None:
    runs = 400 if quick else RUNS
    named = os.environ.get("DISCREET_TESTS", "").split(",")
    results = {} if quick else _results.kept("inference_levels")
    for name, study in STUDIES.items():
        if named == [""] or name in named:
            results[name] = [
                level(study.make(epsilon, shape), study, shape, runs)
                for shape in SHAPES.values()
                for epsilon in EPSILONS
            ]
            print(name, *rows_of({name: results[name]}, 0)[0][1:], sep="  ", flush=True)
            _results.save("inference_levels", results)
    if named == [""] or "Proportion" in named:
        results["Proportion"] = [exact_level(shape, e, runs) for shape in SHAPES.values() for e in EPSILONS]
        _results.save("inference_levels", results)
    header = ["ε = 0.1 / 1 / 10", *SHAPES]
    with_interval = {name: each for name, each in results.items() if name == "Proportion" or STUDIES[name].effect}
    for mark, title, table, part in (
        ("table", "rejected at 5 %, in %", results, 0),
        ("coverage", "the 95 % interval holds the truth, in %", with_interval, 1),
        ("refused", "not enough records for an answer, in %", results, 2),
    ):
        _results.show(title, header, rows_of(table, part))
        _results.write_table("inference_levels", header, rows_of(table, part), mark=mark)
    if named == [""] or "real" in named:
        show_real_columns(runs)


def show_real_columns(runs: int) -> None:
    header, rows = ["500 records a group, ε = 0.1 / 1 / 10", "of those given", "refused"], real_columns(min(runs, 4000))
    _results.show("the 95 % interval holds the truth of a real column, in %", header, rows)
    _results.write_table("inference_levels", header, rows, mark="real")


if __name__ == "__main__":
    main(_results.begin(__doc__))
