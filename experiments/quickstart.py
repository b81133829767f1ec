"""The main job: census records, one ledger, a total epsilon of at most 3, and what can be learnt within it.

1. How many people have each education, and how many hours do they work? A private group-by.
2. Who earns more than 50,000 dollars? A private logistic regression, and beside it the same without noise, which is
   *not* private and stands there for comparison.
3. The same by a small private network, in an ordinary torch loop.
4. A table that is made up, from noisy marginals of the real one, for those who would rather have rows.
5. How many earn more than 50,000 dollars? One number.
6. One question too many: refused, and nothing is read for it.
7. Is that number as private as it says? An audit asks for it ten thousand times, of made-up records with and without
   one person, and tries to tell the two apart. It reads nothing private and costs nothing.

Every step charges the book before it reads a record; what is spent and left is what the ledger says. Accuracy is
measured on the test file that comes with the data. Adult is a public data set: with real data, the accuracy of a model
on records that must stay private, like the model without noise, would be a release of its own, to be paid for.

Writes ``build/quickstart.db`` (the ledger, new each time), ``build/quickstart.html`` (the privacy report) and
``build/synthetic.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.linear_model import LogisticRegression as PlainLogisticRegression
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet.datasets import Adult, Features, adult, adult_features
from discreet.linear import LogisticRegression
from discreet.reporting import Finding
from discreet.reporting.words import balance
from discreet.training import make_private
from experiments import _results

BUILD = Path(__file__).resolve().parent.parent / "build"
EPSILON, DELTA = 3.0, 1e-5  # of the book
LINEAR, TWIN, NETWORK = "private logistic regression", "scikit-learn, NOT private", "private network"
SYNTHETIC, COUNT, AUDIT = "synthetic table", "earners of more than 50,000", "audit of that count"
COPIED = ("age", "education", "sex", "hours_per_week", "income")  # columns of the synthetic table


@dataclass(frozen=True)
class Settings:
    """What each step may cost, and how long the network trains."""

    tables: float = 0.5
    linear: float = 1.0
    network: float = 1.0
    synthetic: float = 0.5
    count: float = 0.4
    delta: float = 1e-6  # of each model; the book's is shared between its filters
    trials: int = 10_000  # of the audit, on each side
    epochs: int = 10
    batch_size: int = 1024


@dataclass(frozen=True)
class Line:
    """One line of the closing table; what is spent and left is the ledger's word at that moment, if it was asked."""

    asked: str
    answer: str
    spent: float | None = None
    left: float | None = None


@dataclass
class Session:
    """What has been asked of the book so far, and what came back."""

    book: dp.Book
    bars: Progress
    lines: list[Line] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    accuracy: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str, total: int = 1) -> Iterator[Any]:
        """A progress bar with what the book has proved beside it."""
        task = self.bars.add_task(name, total=total, spent=self.book.spent().epsilon)
        yield lambda: self.bars.update(task, advance=1, spent=self.book.spent().epsilon)
        self.bars.update(task, completed=total, spent=self.book.spent().epsilon)

    def note(self, asked: str, answer: str) -> None:
        self.lines.append(Line(asked, answer, self.book.spent().epsilon, self.book.remaining().epsilon))


# --- the questions ---------------------------------------------------------------------------------------------------


def by_education(session: Session, people: Adult, epsilon: float) -> pl.DataFrame:
    """Counts and mean hours of each education: two answers that share one charge in equal parts."""
    table = dp.table(pl.DataFrame(people.train), schema=people.schema)
    question = table.group_by("education").count().mean("hours_per_week")
    with session.step("hours and counts by education"):
        frame: pl.DataFrame = question.release(epsilon=epsilon, book=session.book).value
    noise = dp.mechanisms.Laplace(sensitivity=1.0, epsilon=epsilon / 2).error(confidence=0.95)
    low, high = people.bounds["hours_per_week"]
    frame = frame.sort("count", descending=True).with_columns(
        count_error=pl.lit(noise),
        mean_error=pl.min_horizontal((high - low) * noise / pl.col("count").clip(1), high - low),
    )
    session.findings += [
        Finding(
            title="People by education",
            labels=frame["education"],
            values=frame["count"],
            errors=frame["count_error"],
            axis="people",
            caption=f"Private counts: 95 of 100 are within ±{noise:.0f} of the truth.",
        ),
        Finding(
            title="Hours of work per week",
            labels=frame["education"],
            values=frame["hours_per_week_mean"],
            errors=frame["mean_error"],
            axis="hours",
            caption="Private means, largest group first. The bar of a mean is that of its noise, which small groups "
            "feel.",
        ),
    ]
    first = frame.row(0, named=True)
    session.note(
        "people and mean hours by education",
        f"{first['education']}: {first['count']:,} ± {noise:.0f} people, "
        f"{first['hours_per_week_mean']:.2f} ± {first['mean_error']:.2f} hours, and {len(frame) - 1} more",
    )
    return frame


def logistic_regression(session: Session, data: Features, epsilon: float, delta: float) -> None:
    """A private model; the rows have length 1 by the public recipe that made them."""
    model = LogisticRegression(epsilon=epsilon, delta=delta, feature_norm=1.0, classes=(0, 1))
    with session.step(LINEAR):
        model.fit(data.X_train, data.y_train, book=session.book)
    session.note(LINEAR, _accuracy(session, LINEAR, model.predict(data.X_test), data))


def plain_twin(session: Session, data: Features) -> None:
    """The same without noise: not private, not charged, here only because the data is public."""
    model = PlainLogisticRegression(max_iter=1000).fit(data.X_train, data.y_train)
    accuracy = _accuracy(session, TWIN, model.predict(data.X_test), data)
    session.lines.append(Line(TWIN, f"{accuracy}; outside the book, no guarantee"))


def network(session: Session, data: Features, settings: Settings) -> None:
    """A small network in a loop of one's own: after make_private the loop is what it was before."""
    records = TensorDataset(torch.from_numpy(data.X_train).float(), torch.from_numpy(data.y_train))
    model = torch.nn.Sequential(torch.nn.Linear(93, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    model, optimizer, loader = make_private(
        model,
        optimizer,
        DataLoader(records, batch_size=settings.batch_size),
        loss_reduction="mean",
        epochs=settings.epochs,
        epsilon=settings.network,
        delta=settings.delta,
        max_grad_norm=1.0,
        book=session.book,
        label=NETWORK,
    )
    loss_fn = torch.nn.CrossEntropyLoss()
    with session.step(NETWORK, total=settings.epochs * len(loader)) as advance:
        for _ in range(settings.epochs):
            for inputs, target in loader:
                optimizer.zero_grad()
                loss_fn(model(inputs), target).backward()
                optimizer.step()
                advance()
    with torch.no_grad():
        predicted = model(torch.from_numpy(data.X_test).float()).argmax(dim=1).numpy()
    session.note(NETWORK, _accuracy(session, NETWORK, predicted, data))


def synthetic(session: Session, people: Adult, settings: Settings) -> pl.DataFrame:
    """Rows that nobody is: drawn from a model of noisy counts, as many as anybody likes."""
    schema = dp.Schema({name: people.schema[name] for name in COPIED})
    model = dp.synthesis.TableSynthesizer(settings.synthetic, settings.delta, whole=["age", "hours_per_week"])
    with session.step(SYNTHETIC):
        model.fit(pl.DataFrame(people.train).select(COPIED), schema=schema, book=session.book)
    rows: pl.DataFrame = model.sample(10_000)
    session.note(SYNTHETIC, f"{len(rows):,} rows that anybody may have, of {len(COPIED)} columns")
    return rows


def rich(session: Session, people: Adult, settings: Settings) -> dp.statistics.Count:
    """How many earn more than 50,000 dollars? One number, by an operation that can be asked again, of other records."""
    operation = dp.statistics.Count(epsilon=settings.count)
    earners = people.train["age"][people.train["income"] == ">50K"]
    with session.step(COUNT):
        answer = session.book.release(operation, earners, label=COUNT).value
    session.note(COUNT, f"{answer:,} ± {operation.error(confidence=0.95):.0f}")
    return operation


def audited(session: Session, operation: dp.statistics.Count, settings: Settings) -> dp.auditing.Audit:
    """The same operation thousands of times, on forty made-up records and on the same with one more."""
    with session.step(AUDIT, total=2 * settings.trials) as advance:
        found = dp.auditing.audit(
            operation,
            np.full(40, 50.0),
            np.full(41, 50.0),
            trials=settings.trials,
            delta=0.0,
            progress=lambda *_: advance(),
        )
    verdict = "VIOLATED" if found.violated else "consistent"
    session.lines.append(Line(AUDIT, f"ε ≥ {found.lower:.2f}, where {found.claimed:g} is claimed: {verdict}"))
    return found


def one_too_many(session: Session, people: Adult) -> None:
    """A question the book cannot afford is refused before a row is read."""
    table = dp.table(pl.DataFrame(people.train), schema=people.schema)
    try:
        table.group_by("occupation").mean("age").release(epsilon=2.0, book=session.book)
    except dp.BudgetExceeded:
        session.note("mean age by occupation, at ε = 2", "refused: it would exceed the limit")


def _accuracy(session: Session, name: str, predicted: Any, data: Features) -> str:
    session.accuracy[name] = float((predicted == data.y_test).mean())
    return f"{session.accuracy[name]:.1%} of the test file"


# --- what is shown ---------------------------------------------------------------------------------------------------


def accuracy_finding(session: Session, data: Features) -> Finding:
    """The models beside each other, and the answer that always says no, for the scale."""
    shares = {"always “no”": float((data.y_test == 0).mean())} | session.accuracy
    values = 100 * np.array(list(shares.values()))
    errors = 1.96 * np.sqrt(values * (100 - values) / len(data.y_test))
    return Finding(
        title="Who earns more than 50,000 dollars?",
        labels=list(shares),
        values=values,
        errors=errors,
        axis="correct on the test file, %",
        not_private=[TWIN],
        caption="The bars are the sampling error of the public test file (95 %), not noise.",
    )


def closing_table(session: Session) -> Table:
    grid = Table(title=f"Within ε = {EPSILON:g} at δ = {DELTA:g} for one person (add-remove)", title_justify="left")
    for header, justify in (("asked", "left"), ("answer", "left"), ("ε spent", "right"), ("ε left", "right")):
        grid.add_column(header, justify=justify)  # type: ignore[arg-type]
    for line in session.lines:
        spent, _, left = ("–", "", "–") if line.spent is None else balance(line.spent, EPSILON)
        grid.add_row(line.asked, line.answer, spent, left)
    return grid


def answers_table(frame: pl.DataFrame) -> Table:
    grid = Table(title="Private answers, ± what 95 of 100 stay within", title_justify="left")
    for header, justify in (("education", "left"), ("people", "right"), ("hours per week", "right")):
        grid.add_column(header, justify=justify)  # type: ignore[arg-type]
    for row in frame.iter_rows(named=True):
        grid.add_row(
            row["education"],
            f"{row['count']:,} ± {row['count_error']:.0f}",
            f"{row['hours_per_week_mean']:.1f} ± {row['mean_error']:.1f}",
        )
    return grid


def run(settings: Settings, folder: Path, console: Console) -> Session:
    """Ask everything, print the tables, write the report."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("quickstart.db*"):
        old.unlink()  # each run is a new demonstration on public data; with real data, a ledger is for ever
    bars = Progress(
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description:<30}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ε spent {task.fields[spent]:.3f}"),
        console=console,
    )
    with dp.Ledger(f"sqlite:///{folder / 'quickstart.db'}", who="quickstart") as ledger:
        # each row is a person
        book = ledger.open("adult", epsilon=EPSILON, delta=DELTA, unit="person", rows_per_unit=1)
        session = Session(book, bars)
        people, data = adult(), adult_features()
        with bars:
            frame = by_education(session, people, settings.tables)
            logistic_regression(session, data, settings.linear, settings.delta)
            plain_twin(session, data)
            network(session, data, settings)
            synthetic(session, people, settings).write_csv(folder / "synthetic.csv")
            count = rich(session, people, settings)
            one_too_many(session, people)
            audited(session, count, settings)
        console.print(answers_table(frame))
        console.print(closing_table(session))
        session.findings.append(accuracy_finding(session, data))
        about = {"dataset": "UCI Adult: 48,842 people, 1994", "purpose": "how education, work and income hang together"}
        page = dp.report(session.book, findings=session.findings, **about).save(folder / "quickstart.html")
        console.print(f"The privacy report: {page}", soft_wrap=True)
    return session


def main(quick: bool = False) -> None:
    run(Settings(trials=2_000, epochs=2) if quick else Settings(), BUILD, Console())


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
