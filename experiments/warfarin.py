"""Warfarin: what a private dose costs patients, and what a released dose model tells of their genes.

Fredrikson et al. (2014) asked both of 5,700 patients of the International Warfarin Pharmacogenetics Consortium, and so
does the lecture. Here a linear model of the square root of the weekly dose (the consortium's form: age, height, weight,
origin, two genes, two groups of medicines) is fitted privately, ε by ε, to 70 % of them.

The clinic
    The others are treated for 90 simulated days with the dose it says. A patient's INR, which should stay between 2 and
    3, follows a delayed average of the dose: 1 + 1.5 (dose / the patient's own stable dose)^2 plus noise, so 2.5 at the
    dose that the records say was right. It is measured every week, and the dose is changed by 10 or 20 % where it is
    off. Days in each range of INR have rates of stroke and of bleeding in the brain of the order that Hylek et al.
    (2003) report, rounded; deaths follow from those. It is a simulation, to compare models with, and no medical advice.
The attack
    Somebody who knows a patient's stable dose, the released model and all but one gene guesses the gene
    (``auditing.invert``), for people in the data and for others. What is told of the others as well is what the model
    was made to find out; the difference is what privacy protects.

Nothing was tuned: the model has the library's defaults and public bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression as Ordinary

import discreet as dp
from discreet.linear import LinearRegression
from experiments import _results
from experiments._data import warfarin

EPSILONS, DELTA, SPLITS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0), 1e-5, 20
FIXED, LOWEST, HIGHEST = 35.0, 4.0, 100.0  # mg a week: the usual first dose, and public bounds
ERROR = 1.1  # what the attacker takes for the standard deviation of the root of a dose: not read off the data
GENES = {"VKORC1": ("G/G", "A/G", "A/A"), "CYP2C9": ("*1/*1", "*1/*2", "*1/*3", "*2/*2", "*2/*3", "*3/*3")}
ORIGINS = ("White", "Asian", "Black or African American")
Array = NDArray[Any]


# --- patients ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Patients:
    """Numbers from -1 to 1, names of classes, and the stable dose in mg a week."""

    numbers: Array
    classes: dict[str, Array]
    dose: Array

    def __getitem__(self, rows: Array) -> Patients:
        return Patients(
            self.numbers[rows], {name: column[rows] for name, column in self.classes.items()}, self.dose[rows]
        )

    def features(self, **instead: str) -> Array:
        """A row a patient, of norm √8 at most; ``VKORC1="A/A"`` makes that everybody's."""
        columns = [self.numbers]
        for name, values in (("origin", ORIGINS[1:]), *GENES.items()):
            found = np.full(len(self.dose), instead[name]) if name in instead else self.classes[name]
            columns.append(found[:, None] == np.array((*values, "unknown") if name in GENES else values))
        return np.concatenate(columns, axis=1).astype(np.float64)


NORM = np.sqrt(3 + 2 + 3)  # age, height, weight; two medicines; origin and two genes are one entry each


def _number(column: Array, low: float, high: float) -> Array:
    """From public bounds to [-1, 1]; missing is the middle."""
    values = np.array([float(entry) if entry not in ("NA", "") else (low + high) / 2 for entry in column])
    return np.clip((values - low) / (high - low), 0, 1) * 2 - 1


def patients() -> Patients:
    """Those whose stable dose is known."""
    table = warfarin()
    stable = table["Therapeutic Dose of Warfarin"] != "NA"
    table = {name: column[stable] for name, column in table.items()}
    decades = np.array([entry[:1] if entry[:1].isdigit() and entry != "NA" else "5" for entry in table["Age"]])
    inducer = [table[n] == "1" for n in ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")]
    numbers = [
        _number(decades, 1, 9),
        _number(table["Height (cm)"], 140, 200),
        _number(table["Weight (kg)"], 40, 140),
        table["Amiodarone (Cordarone)"] == "1",
        np.any(inducer, axis=0),
    ]
    # of the two places in VKORC1 one tells the other: they are inherited together
    other = {"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}
    linked = np.array([other.get(entry, "NA") for entry in table["VKORC1 1173 consensus"]])
    vkorc1 = np.where(table["VKORC1 -1639 consensus"] == "NA", linked, table["VKORC1 -1639 consensus"])
    classes = {"origin": table["Race"], "VKORC1": vkorc1, "CYP2C9": table["CYP2C9 consensus"]}
    for name, values in GENES.items():
        classes[name] = np.where(np.isin(classes[name], values), classes[name], "unknown")
    dose = table["Therapeutic Dose of Warfarin"].astype(np.float64)
    return Patients(np.stack(numbers, axis=1), classes, np.clip(dose, LOWEST, HIGHEST))


# --- models -----------------------------------------------------------------------------------------------------------

Model = Callable[[Array], Array]  # from features to the root of a dose


def fitted(people: Patients, epsilon: float | None, seed: int) -> Model:
    """A private model; without an epsilon an ordinary one."""
    if epsilon is None:
        ordinary = Ordinary().fit(people.features(), np.sqrt(people.dose))
        return lambda rows: np.asarray(ordinary.predict(rows))
    model = LinearRegression(
        epsilon=epsilon,
        delta=DELTA,
        feature_norm=NORM,
        target_bounds=(np.sqrt(LOWEST), np.sqrt(HIGHEST)),
        random_state=seed,
    ).fit(people.features(), np.sqrt(people.dose))
    return lambda rows: np.asarray(model.predict(rows))


def doses(model: Model, rows: Array) -> Array:
    return np.clip(model(rows), np.sqrt(LOWEST), np.sqrt(HIGHEST)) ** 2


# --- the clinic -------------------------------------------------------------------------------------------------------

EDGES = (1.5, 2.0, 3.0, 4.0, 4.5)  # of INR
STROKES = np.array([7.7, 1.9, 0.6, 0.6, 1.4, 2.7])  # per 100 years in each range
BLEEDINGS = np.array([0.5, 0.3, 0.4, 0.5, 2.7, 9.4])  # in the brain
DEADLY = {"strokes": 0.1, "bleedings": 0.5}
DAYS, DELAY, STEEPNESS, NOISE = 90, 5.0, 2.0, 0.08


@dataclass(frozen=True)
class Outcome:
    """Of simulated patients: share of days with an INR from 2 to 3, and events per 100 patients and year."""

    in_range: float
    strokes: float
    bleedings: float

    @property
    def deaths(self) -> float:
        return self.strokes * DEADLY["strokes"] + self.bleedings * DEADLY["bleedings"]


def clinic(first: Array, stable: Array, seed: int) -> Outcome:
    """Treat patients for DAYS days, with these first doses; each has a dose that is right for them."""
    chance = np.random.default_rng(seed)
    dose, effect = first.copy(), np.zeros_like(first)
    spent = np.zeros(len(STROKES))
    for day in range(1, DAYS + 1):
        effect += (dose / stable - effect) / DELAY
        inr = 1 + 1.5 * effect**STEEPNESS * np.exp(NOISE * chance.normal(size=len(dose)))
        spent += np.bincount(np.digitize(inr, EDGES), minlength=len(spent))
        if day % 7 == 0:
            change = np.select([inr < 1.5, inr < 2, inr <= 3, inr <= 4], [1.2, 1.1, 1.0, 0.9], 0.8)
            dose = dose * change
    share = spent / spent.sum()
    return Outcome(float(share[2]), float(share @ STROKES), float(share @ BLEEDINGS))


# --- the attack -------------------------------------------------------------------------------------------------------


def attacked(model: Model, people: Patients, gene: str) -> float:
    """How often the gene is guessed, on average over its forms, by somebody who takes all of them for equally likely.

    By chance it is one in three for VKORC1 and one in six for CYP2C9. (To guess the most frequent form of CYP2C9 of
    everybody is right in three cases of four, and says nothing of anybody.)
    """
    known = people[people.classes[gene] != "unknown"]
    guesses = dp.auditing.invert(
        model,
        lambda value: known.features(**{gene: value}),
        np.sqrt(known.dose),
        dict.fromkeys(GENES[gene], 1.0),
        dp.auditing.normal_errors(ERROR),
    ).guesses
    truth = known.classes[gene]
    return float(np.mean([(guesses[truth == value] == value).mean() for value in GENES[gene]]))


# --- the study --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """Of one model and split; without a model the dose is fixed, and a gene is guessed blindly."""

    error: float  # of the dose, mg a week
    near: float  # share of doses that are less than a fifth off
    in_range: float
    strokes: float
    bleedings: float
    deaths: float
    members: dict[str, float]
    others: dict[str, float]


def study(people: Patients, epsilon: float | str | None, seed: int) -> Result:
    """``epsilon`` is a number, None (not private) or "fixed" (no model)."""
    order = np.random.default_rng(seed).permutation(len(people.dose))
    inside, outside = people[order[: len(order) * 7 // 10]], people[order[len(order) * 7 // 10 :]]
    fixed = epsilon == "fixed"
    model: Model = (lambda rows: np.full(len(rows), np.sqrt(FIXED))) if fixed else fitted(inside, epsilon, seed)  # type: ignore[arg-type]
    given = doses(model, outside.features())
    treated = clinic(given, outside.dose, seed)
    wrong = np.abs(given - outside.dose)
    found: dict[str, dict[str, float]] = {"members": {}, "others": {}}
    for gene in GENES:
        for name, part in (("members", inside), ("others", outside)):
            found[name][gene] = attacked(model, part, gene)
    return Result(
        float(wrong.mean()),
        float((wrong < 0.2 * outside.dose).mean()),
        treated.in_range,
        treated.strokes,
        treated.bleedings,
        treated.deaths,
        found["members"],
        found["others"],
    )


MODELS: dict[str, float | str | None] = {
    "no model": "fixed",
    **{f"{epsilon:g}": epsilon for epsilon in EPSILONS},
    "not private": None,
}


def averages(models: dict[str, float | str | None], splits: int) -> dict[str, Any]:
    """For each model the mean over splits of everything that a study finds."""
    people, found = patients(), {}
    for name, epsilon in models.items():
        runs = [_flat(study(people, epsilon, seed)) for seed in range(splits)]
        found[name] = {key: round(float(np.mean([run[key] for run in runs])), 4) for key in runs[0]}
    return found


def _flat(result: Result) -> dict[str, float]:
    flat = asdict(result)
    for group in ("members", "others"):
        flat |= {f"{group} {gene}": value for gene, value in flat.pop(group).items()}
    return flat


HEADER = (
    "epsilon",
    "dose error, mg per week",
    "within 20 %",
    "days in range",
    "strokes",
    "brain bleedings",
    "deaths, relative",
    "VKORC1 guessed, members",
    "VKORC1 guessed, others",
    "CYP2C9 guessed, members",
    "CYP2C9 guessed, others",
)


def lines(found: dict[str, Any]) -> list[list[str]]:
    least = found["not private"]["deaths"]
    return [
        [
            name,
            f"{each['error']:.2f}",
            f"{each['near']:.1%}",
            f"{each['in_range']:.1%}",
            f"{each['strokes']:.2f}",
            f"{each['bleedings']:.2f}",
            f"{each['deaths'] / least:.2f}",
            *(f"{each[f'{group} {gene}']:.1%}" for gene in GENES for group in ("members", "others")),
        ]
        for name, each in found.items()
    ]


def plot(found: dict[str, Any]) -> None:
    epsilons = [epsilon for epsilon in EPSILONS if f"{epsilon:g}" in found]
    private = [found[f"{epsilon:g}"] for epsilon in epsilons]
    least, without = found["not private"], found["no model"]["deaths"]
    with _results.figure("warfarin", 2, 9.0) as (left, right):
        for name, style in (("deaths", "o-"), ("bleedings", "s-"), ("strokes", "^-")):
            left.plot(epsilons, [each[name] / least[name] for each in private], style, label=name)
        left.axhline(without / least["deaths"], color="0.5", ls=":", label="deaths, everybody 35 mg")
        left.set(xscale="log", xlabel="epsilon", ylabel="risk, relative to not private")
        for gene, color in zip(GENES, ("C0", "C1"), strict=True):
            for group, style in (("members", "o-"), ("others", "x--")):
                found_of = [each[f"{group} {gene}"] for each in private]
                right.plot(epsilons, found_of, style, color=color, label=f"{gene}, {group}")
            right.axhline(least[f"members {gene}"], color=color, lw=0.7, label=f"{gene}, members, not private")
            right.axhline(1 / len(GENES[gene]), color=color, ls=":", label=f"{gene}, by chance")
        right.set(xscale="log", xlabel="epsilon", ylabel="guessed right", ylim=(0.1, 0.7))
        left.legend(fontsize=7)
        right.legend(fontsize=5, ncols=2, loc="upper left")


def main(quick: bool = False) -> None:
    chosen = {name: MODELS[name] for name in ("no model", "0.25", "1", "not private")} if quick else MODELS
    found = averages(chosen, 3 if quick else SPLITS)
    _results.show(
        f"Warfarin, delta {DELTA:g}, add-remove, mean of {3 if quick else SPLITS} splits", HEADER, lines(found), 150
    )
    _results.save("warfarin", found)
    _results.write_table("warfarin", HEADER, lines(found))
    plot(found)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
