"""Synthetic rows beside real ones, value by value: Adult's training part, our defaults, delta 1e-9.

``python -m benchmarks.synthesis_rows [epsilon [seeds [picture.png]]]`` prints, for each column of numbers, the real
mean and the synthetic ones' least and largest, the share of the commonest number, and the largest Wasserstein distance
in real standard deviations; then what the rows teach, judged on Adult's test part, and how far they are from the real
ones in sets of columns; then ten real and ten synthetic rows. The picture has three columns of both tables.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from discreet.datasets import adult
from discreet.encoding import Encoder
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import TableSynthesizer, quality
from discreet.synthesis.coded_table import CodedTable, choices
from discreet.synthesis.train_and_test import features

NUMBERS = {  # round public bounds
    "age": (0, 99),
    "fnlwgt": (0, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 99),
}
TARGET = "income"


def people(part: str = "train") -> Any:
    """A part as a polars frame, names with underscores."""
    import polars as pl

    columns = getattr(adult(), part)
    return pl.DataFrame({name.replace("-", "_"): np.asarray(values) for name, values in columns.items()})


def schema(frame: Any) -> Schema:
    """Bounds of the numbers; Adult's categories are public, as its description lists them."""
    facts: dict[str, Any] = {}
    for name in frame.columns:
        if name in NUMBERS:
            facts[name] = Bounded(*NUMBERS[name], missing=NUMBERS[name][0], whole=True)
        else:
            facts[name] = Categories(sorted(frame[name].unique().to_list()))
    return Schema(facts)


def measure(epsilon: float, seeds: int, picture: str | None = None) -> None:
    """The table, and rows to look at."""
    from scipy.stats import wasserstein_distance

    real, test = people(), people("test")
    facts = schema(real)
    drawn = [
        TableSynthesizer(epsilon, 1e-9).fit(real, schema=facts, rng=seed).sample(len(real), rng=seed + 100)
        for seed in range(seeds)
    ]
    print(f"epsilon {epsilon:g}, {seeds} seeds: real | least .. largest of the synthetic tables")
    for name in NUMBERS:
        common = real[name].mode()[0]
        means = [rows[name].mean() for rows in drawn]
        shares = [(rows[name] == common).mean() for rows in drawn]
        far = max(wasserstein_distance(real[name], rows[name]) for rows in drawn) / real[name].std()
        print(
            f"{name:15s} mean {real[name].mean():9.1f} | {min(means):9.1f} .. {max(means):9.1f}   share of {common:6d} "
            f"{(real[name] == common).mean():.3f} | {min(shares):.3f} .. {max(shares):.3f}   distance {far:.3f}"
        )
    for what, figure in {
        "income from the rest, share right": lambda rows: learned(rows, test, facts)[0],
        "hours from the rest, R2": lambda rows: learned(rows, test, facts)[1],
        "3-way error, numbers cut at real deciles": lambda rows: three_way_error(real, rows),
        "SDMetrics' score": lambda rows: quality(real, rows, schema=facts)["sdmetrics"]["score"],
    }.items():
        found = [figure(rows) for rows in drawn]
        print(f"{what:42s} {figure(real):.4f} | {min(found):.4f} .. {max(found):.4f}", flush=True)
    for rows in (real, drawn[0]):
        print()
        for row in (rows.columns, ["--"] * len(rows.columns), *rows.head(10).iter_rows()):
            print("|", *(f"{entry} |" for entry in row))
    if picture is not None:
        draw_histograms(real, drawn[0], picture)


def draw_histograms(real: Any, rows: Any, path: str) -> None:
    """Shares of numbers in both tables: of years and hours, one bar each; of gains above nothing, by thousands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3), layout="constrained")
    shown = {"age": (15, 92, 1), "hours_per_week": (0, 100, 1), "capital_gain": (1, 25_001, 1000)}
    for axes, (name, (low, high, step)) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        edges = np.arange(low, high, step)
        for table, label, style in ((rows, "synthetic", {"fill": True, "alpha": 0.4}), (real, "real", {})):
            counts, _ = np.histogram(table[name].to_numpy(), edges)
            axes.stairs(counts / len(table), edges, label=label, color="#0f6e84" if style else "#22303c", **style)
        axes.set_title(name)
    axes.legend()
    figure.savefig(path, dpi=110)


def learned(rows: Any, test: Any, facts: Schema) -> tuple[float, float]:
    """What a logistic regression of income gets right on real test rows, and R2 of a ridge regression of hours."""
    from sklearn.linear_model import Ridge

    from discreet.synthesis.train_and_test import correct, train_classifier

    read = Encoder(Declaration(facts), one_row_a_unit=False).read
    one, two = CodedTable(read(rows)), CodedTable(read(test))
    right = float(np.mean(correct(train_classifier(one, TARGET), two, TARGET)))
    hours = "hours_per_week"
    regression = Ridge(1.0).fit(features(one, hours), rows[hours].to_numpy())
    return right, float(regression.score(features(two, hours), test[hours].to_numpy()))


def three_way_error(real: Any, rows: Any) -> float:
    """Total variation, averaged over all sets of three columns; numbers are cut at deciles of the real ones."""
    cells = [{name: _cells(real, frame, name) for name in real.columns} for frame in (real, rows)]
    sizes = {name: 1 + max(int(codes[name].max()) for codes in cells) for name in real.columns}
    errors = []
    for a, b, c in choices(real.columns, 3):
        one, two = (
            np.bincount((t[a] * sizes[b] + t[b]) * sizes[c] + t[c], minlength=sizes[a] * sizes[b] * sizes[c])
            for t in cells
        )
        errors.append(float(np.abs(one / len(real) - two / len(rows)).sum() / 2))
    return float(np.mean(errors))


def _cells(real: Any, frame: Any, name: str) -> Any:
    if name not in NUMBERS:
        return np.searchsorted(np.unique(real[name].to_numpy()), frame[name].to_numpy())
    edges = np.unique(np.quantile(real[name].to_numpy(), np.arange(0.1, 1.0, 0.1)))
    return np.searchsorted(edges, frame[name].to_numpy(), side="left")


if __name__ == "__main__":
    measure(
        float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, int(sys.argv[2]) if len(sys.argv) > 2 else 5, *sys.argv[3:4]
    )
