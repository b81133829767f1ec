"""Two linked tables beside a flat one: households of PUMS persons, and patients with visits; ours, delta 1e-9.

``python -m benchmarks.linked [epsilon [seeds [picture.png]]]`` prints the mean total variation between real and
synthetic marginals of children beside their parent (numbers cut at real deciles): of one column, of pairs, of sets that
cross the link. Beside it the flat join by ``TableSynthesizer`` at the same epsilon: with one row a household (what it
does with a unit; judged against such rows), with all rows of one (measured with the noise that eight of a household
need), and with a person as unit, a weaker promise. Then what holds between rows: numbers of children, siblings, the
order in time.

The persons, their ages, schools, incomes are real; who lives with whom, and where, is planted with a fixed seed: people
of a district are sorted by a noisy mixture of ancestry and marriage and cut into households, whose size depends on the
district; tenure, rooms and cost depend on the incomes. Patients are persons; their visits follow a chain of wards.
"""

from __future__ import annotations

import sys
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from discreet.datasets import pums
from discreet.schema import Bounded, Categories, Schema
from discreet.synthesis import LinkedSynthesizer, TableSynthesizer

Columns = dict[str, NDArray[Any]]
CAP, DELTA = 8, 1e-9
HOUSEHOLD = Schema(
    district=Categories(range(1101, 1108)),
    tenure=Categories(["owner", "renter"]),
    rooms=Bounded(1, 12, whole=True),
    cost=Bounded(0, 6000, whole=True),
)
PERSON = Schema(
    age=Bounded(0, 99, whole=True),
    sex=Categories([0, 1]),
    black=Categories([0, 1]),
    married=Categories([0, 1]),
    employed=Categories([0, 1]),
    school=Bounded(1, 16, whole=True),
    income=Bounded(0, 200_000, whole=True),
)
PATIENT = Schema(age=Bounded(0, 99, whole=True), disability=Categories([0, 1]), sex=Categories([0, 1]))
WARDS = ["general", "surgery", "heart", "rehabilitation"]
VISIT = Schema(ward=Categories(WARDS), cost=Bounded(0, 20_000, whole=True), day=Bounded(0, 364, whole=True))


def households() -> tuple[Columns, Columns]:
    """Households, some of them empty, and their persons, of 25,766 adults."""
    people, draw = pums(), np.random.default_rng(37)
    n = len(people["age"])
    alike = 3 * people["black"] + 1.5 * people["married"] + draw.normal(0, 0.7, n)
    order = np.lexsort((alike, people["puma"]))
    shares = {puma: np.array([3 + k % 3, 3, 1 + k % 2, 1, 0.4, 0.2]) for k, puma in enumerate(range(1101, 1108))}
    sizes, districts, start = list[int](), list[int](), 0
    while start < n:
        puma = int(people["puma"][order[start]])
        end = int((people["puma"][order] <= puma).sum())
        size = min(int(draw.choice(6, p=shares[puma] / shares[puma].sum())) + 1, end - start)
        sizes.append(size)
        districts.append(puma)
        start += size
    empty = draw.random(len(sizes)) < 0.06
    home = np.repeat(np.arange(len(sizes)), sizes)
    income = np.clip(people["income"][order], 0, 200_000)
    together = np.bincount(home, weights=income)
    m, counts = len(sizes), np.array(sizes)
    owner = draw.random(m) < 1 / (1 + np.exp(-(together - 45_000) / 25_000))
    rooms = np.clip(np.rint(2 + counts + 2 * owner + draw.normal(0, 1, m)), 1, 12)
    cost = np.clip(np.rint(np.exp(6.2 + 0.12 * rooms + together / 250_000 + draw.normal(0, 0.3, m))), 0, 6000)
    cost[draw.random(m) < 0.2 * owner] = 0  # paid off
    stays = ~empty[home]
    names = {"school": "educ"} | {name: name for name in ("age", "sex", "black", "married", "employed")}
    persons = {name: people[own][order][stays] for name, own in names.items()}
    parents = {
        "home": np.arange(m),
        "district": np.array(districts),
        "tenure": np.where(owner, "owner", "renter"),
        "rooms": rooms,
        "cost": cost,
    }
    return parents, {"home": home[stays], **persons, "income": income[stays]}


def patients() -> tuple[Columns, Columns]:
    """6,000 persons as patients, and their visits in a year."""
    people, draw = pums(), np.random.default_rng(38)
    chosen = draw.choice(len(people["age"]), 6000, replace=False)
    table = {name: people[name][chosen] for name in ("age", "disability", "sex")}
    rate = 0.5 + 2.0 * table["disability"] + table["age"] / 40
    counts = np.minimum(draw.poisson(rate), CAP)
    visits: dict[str, list[Any]] = {"patient": [], "ward": [], "cost": [], "day": []}
    for patient, count in enumerate(counts):
        day, ward = int(draw.integers(0, 200)), int(draw.integers(0, 4))
        for _ in range(count):
            if day > 364:
                break
            cost = min(int(draw.lognormal(6 + 0.6 * ward, 0.5)), 20_000)
            for name, value in zip(visits, (patient, WARDS[ward], cost, day), strict=True):
                visits[name].append(value)
            ward = ward if draw.random() < 0.7 else int(draw.integers(0, 4))
            day += int(draw.exponential(60 - 30 * table["disability"][patient])) + 1
    return {"patient": np.arange(len(chosen)), **table}, {name: np.array(values) for name, values in visits.items()}


def join(parents: Columns, children: Columns, key: str) -> Columns:
    """Children beside their parent; a column that both have is the parent's under another name."""
    place = np.searchsorted(parents[key], children[key])
    found = {f"{name} of parent": np.asarray(values)[place] for name, values in parents.items() if name != key}
    return found | dict(children.items())


def cells(real: NDArray[Any], other: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Both columns as cells: values that are few, or numbers cut at real deciles."""
    values = np.unique(real)
    if len(values) > 10 and values.dtype.kind != "U":
        edges = np.unique(np.quantile(real.astype(float), np.arange(1, 10) / 10))
        one, two = (np.searchsorted(edges, np.asarray(x, float), side="right") for x in (real, other))
        return one, two, len(edges) + 1
    one = np.searchsorted(values, real)
    two = np.minimum(np.searchsorted(values, other), len(values) - 1)
    return one, np.where(values[two] == other, two, len(values)), len(values) + 1


def error(real: Columns, synthetic: Columns, sets: list[tuple[str, ...]]) -> float:
    """The mean total variation distance of some sets of columns."""
    coded = {name: cells(real[name], np.asarray(synthetic[name])) for columns in sets for name in columns}
    found = []
    for columns in sets:
        shape = tuple(coded[name][2] for name in columns)
        shares = [
            np.bincount(
                np.ravel_multi_index(tuple(coded[name][k] for name in columns), shape), minlength=np.prod(shape)
            )
            / len(rows[columns[0]])
            for k, rows in enumerate((real, synthetic))
        ]
        found.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
    return float(np.mean(found))


def sets_of(parents: Columns, children: Columns, key: str) -> dict[str, list[tuple[str, ...]]]:
    """What is compared, in a joined table."""
    up = [f"{name} of parent" for name in parents if name != key]
    down = [name for name in children if name != key]
    return {
        "1-way": [(name,) for name in (*up, *down)],
        "2-way across": [(one, two) for one in up for two in down],
        "2-way": list(combinations((*up, *down), 2)),
        "3-way across": [c for c in combinations((*up, *down), 3) if c[0] in up and c[2] in down],
    }


def siblings(children: Columns, key: str, name: str) -> float:
    """The correlation of a column between two children of one parent, over all pairs."""
    values, root = np.asarray(children[name], float), np.asarray(children[key])
    values = (values - values.mean()) / values.std()
    counts = np.bincount(root)
    sums, squares = np.bincount(root, values), np.bincount(root, values**2)
    return float((sums**2 - squares).sum() / (counts * (counts - 1)).sum())


def flat(joined: Columns, schema: Schema, epsilon: float, seed: int, unit: str | None = None) -> Columns:
    """The flat table's synthetic rows."""
    facts: Any = schema if unit is None else dp.schema.Declaration(schema, unit=unit)
    fitted = TableSynthesizer(epsilon, DELTA).fit(joined, schema=facts, rng=seed)
    return dict(fitted.sample(len(joined["age"]), rng=seed + 100))


def eight_rows(epsilon: float) -> float:
    """Epsilon of noise that is as many times larger as a household may have rows."""
    from discreet.mechanisms.budget import Budget

    sigma = Budget(epsilon=epsilon, delta=DELTA, noise="gaussian").noise_multiplier * CAP
    return float(dp.epsilon(dp.events.Gaussian(noise_multiplier=sigma), delta=DELTA)) * (1 - 1e-6)


def measure(epsilon: float, seeds: int, picture: str | None = None) -> None:
    """Both files; every figure the mean over seeds."""
    parents, children = households()
    print(f"households: {len(parents['home']):,}, persons: {len(children['home']):,}, epsilon {epsilon:g}")
    real, sets = join(parents, children, "home"), sets_of(parents, children, "home")
    schema = Schema({f"{name} of parent": column for name, column in HOUSEHOLD.items()} | dict(PERSON))
    first = np.unique(children["home"], return_index=True)[1]
    one_each = {name: values[first] for name, values in real.items()}
    drawn, rows = (
        [],
        {name: list[list[float]]() for name in ("linked", "flat, a row each", "flat, all", "flat, persons")},
    )
    for seed in range(seeds):
        synthetic = (
            LinkedSynthesizer(epsilon, DELTA, max_children=CAP)
            .fit(parents, children, key="home", parent_schema=HOUSEHOLD, child_schema=PERSON, rng=seed)
            .sample(rng=seed + 100)
        )
        drawn.append(synthetic)
        tables = {
            "linked": (real, join(*synthetic, "home")),
            "flat, a row each": (one_each, flat(real, schema, epsilon, seed, unit="home")),
            "flat, all": (real, flat(real, schema, eight_rows(epsilon), seed)),
            "flat, persons": (real, flat(real, schema, epsilon, seed)),
        }
        for name, pair in tables.items():
            rows[name].append([error(*pair, columns) for columns in sets.values()])
    print(f"{'error':18s}" + "".join(f"{name:>14s}" for name in sets))
    for name, found in rows.items():
        print(f"{name:18s}" + "".join(f"{value:14.4f}" for value in np.mean(found, axis=0)))
    own = [(name,) for name in HOUSEHOLD]
    pairs = list(combinations(HOUSEHOLD, 2))
    print(
        "households alone: "
        + ", ".join(f"{np.mean([error(parents, p, s) for p, _ in drawn]):.4f}" for s in (own, pairs))
        + " in one and two ways"
    )
    describe(parents, children, drawn, "home", ["black", "married", "age", "income"])
    if picture:
        draw_picture(parents, children, drawn[0], picture)
    describe_visits(epsilon, seeds)


def describe(parents: Columns, children: Columns, drawn: list[Any], key: str, names: list[str]) -> None:
    """What holds between rows."""
    for parent, child in drawn:
        assert np.isin(child[key], parent[key]).all(), "no orphan"
        assert np.bincount(child[key]).max() <= CAP, "none beyond the cap"
    real = np.bincount(children[key], minlength=len(parents[key]))
    counts = [np.bincount(child[key], minlength=len(parent[key])) for parent, child in drawn]
    shares = [np.bincount(c, minlength=CAP + 1) / len(c) for c in (real, *counts)]
    far = np.mean([0.5 * np.abs(share - shares[0]).sum() for share in shares[1:]])
    print(f"no orphan, none beyond {CAP}; numbers of children: total variation {far:.4f}")
    for name in names:
        found = [siblings(child, key, name) for _, child in drawn]
        print(
            f"siblings' {name:9s} correlate {siblings(children, key, name):.3f} | {min(found):.3f} .. {max(found):.3f}"
        )


def describe_visits(epsilon: float, seeds: int) -> None:
    """Visits, in order."""
    parents, children = patients()
    real, sets = join(parents, children, "patient"), sets_of(parents, children, "patient")
    gaps = in_order(children)
    rows, drawn = list[list[float]](), []
    for seed in range(seeds):
        synthetic = (
            LinkedSynthesizer(epsilon, DELTA, max_children=CAP, order="day")
            .fit(parents, children, key="patient", parent_schema=PATIENT, child_schema=VISIT, rng=seed)
            .sample(rng=seed + 100)
        )
        drawn.append(synthetic)
        rows.append([error(real, join(*synthetic, "patient"), columns) for columns in sets.values()])
    print(f"patients: {len(parents['patient']):,}, visits: {len(children['patient']):,}, epsilon {epsilon:g}")
    print("errors " + ", ".join(f"{name} {value:.4f}" for name, value in zip(sets, np.mean(rows, axis=0), strict=True)))
    describe(parents, children, drawn, "patient", ["cost"])
    same = [stays(child) for _, child in drawn]
    print(f"the same ward as before: {stays(children):.3f} | {min(same):.3f} .. {max(same):.3f}")
    found = [in_order(child) for _, child in drawn]
    assert min(gap.min() for gap in found) >= 0, "days rise"
    means = [gap.mean() for gap in found]
    print(f"days rise in all; mean gap {gaps.mean():.1f} | {min(means):.1f} .. {max(means):.1f}")


def in_order(visits: Columns) -> NDArray[Any]:
    """The days between a visit and the next one."""
    return np.diff(visits["day"])[np.diff(visits["patient"]) == 0]


def stays(visits: Columns) -> float:
    """How often a visit is to the ward of the one before."""
    same = np.asarray(visits["ward"])[1:] == np.asarray(visits["ward"])[:-1]
    return float(same[np.diff(visits["patient"]) == 0].mean())


def draw_picture(parents: Columns, children: Columns, synthetic: Any, path: str) -> None:
    """Numbers of persons, the cost of owners and renters, ages of first and second persons."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2))
    for table, label, style in (
        ((parents, children), "real", {"alpha": 0.5}),
        (synthetic, "synthetic", {"histtype": "step"}),
    ):
        homes, persons = table
        counts = np.bincount(persons["home"], minlength=len(homes["home"]))
        axes[0].hist(counts, bins=np.arange(-0.5, 9), density=True, label=label, **style)
        axes[1].hist(np.asarray(homes["cost"])[np.asarray(homes["tenure"]) == "renter"], bins=40, density=True, **style)
        axes[2].hist(
            join(homes, persons, "home")["age"][_of_owners(homes, persons)],
            bins=np.arange(15, 97, 3),
            density=True,
            **style,
        )
    for axis, title in zip(axes, ("persons in a household", "cost, renters", "age of persons, owners"), strict=True):
        axis.set_title(title)
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _of_owners(homes: Columns, persons: Columns) -> NDArray[Any]:
    return np.asarray(join(homes, persons, "home")["tenure of parent"] == "owner")


def main() -> None:
    """Epsilon, the number of seeds, and the picture's file, from the command line."""
    told = sys.argv[1:]
    measure(float(told[0]) if told else 1.0, int(told[1]) if len(told) > 1 else 5, told[2] if len(told) > 2 else None)


if __name__ == "__main__":
    main()
