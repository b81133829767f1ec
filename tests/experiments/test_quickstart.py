"""The main job, end to end with a short training: what it asks, what it spends, what it leaves behind."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from rich.progress import Progress

import discreet as dp
from discreet.datasets import adult, adult_features
from experiments import quickstart
from experiments.quickstart import LINEAR, NETWORK, TWIN, Session, Settings

SHORT = Settings(epochs=2, trials=400)


@dataclass(frozen=True)
class Ran:
    session: Session
    printed: str
    folder: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder, screen = tmp_path_factory.mktemp("build"), io.StringIO()
    for name in ("quickstart.db", "quickstart.db-wal"):
        (folder / name).write_text("what an earlier run left")
    session = quickstart.run(SHORT, folder, Console(file=screen, width=120))
    return Ran(session, screen.getvalue(), folder)


def test_the_total_is_within_three_and_is_what_the_ledger_says(ran):
    charged = [line for line in ran.session.lines if line.spent is not None]
    assert [line.spent for line in charged] == sorted(line.spent for line in charged)
    assert all(line.spent + line.left == pytest.approx(3.0) for line in charged)
    with dp.Ledger(f"sqlite:///{ran.folder / 'quickstart.db'}", create=False) as ledger:
        book = ledger.book("adult")
        assert book.spent().epsilon == charged[-1].spent <= 3.0
        assert [float(entry.epsilon) for entry in book.entries()[1:]] == [line.spent for line in charged[:5]]
        ledger.verify()


def test_the_models_are_good_and_the_twin_is_outside_the_book(ran):
    """The floor is far below what is usual (0.85) and far above always saying no (0.764)."""
    assert set(ran.session.accuracy) == {LINEAR, TWIN, NETWORK}
    assert min(ran.session.accuracy.values()) >= 0.83
    assert "NOT private" in TWIN
    twin = next(line for line in ran.session.lines if line.asked == TWIN)
    assert twin.spent is None
    assert "no guarantee" in twin.answer


def test_one_question_too_many_is_refused_and_costs_nothing(ran):
    *_, before, refused, _ = ran.session.lines
    assert refused.answer.startswith("refused")
    assert refused.spent == before.spent


def test_answers_are_near_the_truth(ran):
    """Within five times the error that 95 of 100 stay within: e^-15 a count, so a false alarm is not to be expected."""
    truth = adult().train["education"]
    counts = ran.session.findings[0]
    for label, value, error in zip(counts.labels, counts.values, counts.errors, strict=True):
        assert abs(value - (truth == label).sum()) <= 5 * error


def test_bars_and_tables_are_printed(ran):
    for text in ("private network", "64/64", "ε spent", "ε left", "HS-grad", "refused", TWIN, "quickstart.html"):
        assert text in ran.printed


def test_the_report_shows_what_was_learnt(ran):
    page = (ran.folder / "quickstart.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 6
    for text in (
        "What was learnt",
        "People by education",
        "Hours of work per week",
        "Hollow: not private",
        "LogisticRegression",
        "PoissonSampled",
        "one person",
    ):
        assert text in page
    assert "<script" not in page


def test_the_synthetic_table_is_for_anybody_and_the_audit_costs_nothing(ran):
    lines = {line.asked: line for line in ran.session.lines}
    rows = pl.read_csv(ran.folder / "synthetic.csv")
    assert rows.shape == (10_000, len(quickstart.COPIED))
    assert set(rows["income"].unique()) <= set(adult().categories["income"])
    assert lines[quickstart.SYNTHETIC].spent > lines[NETWORK].spent
    assert lines[quickstart.AUDIT].spent is None
    assert "consistent" in lines[quickstart.AUDIT].answer


@pytest.fixture
def poor() -> Iterator[Session]:
    with dp.Ledger("sqlite://") as ledger:
        yield Session(ledger.open("empty", epsilon=0.01, delta=1e-6), Progress(console=Console(file=io.StringIO())))


def test_nothing_is_answered_that_was_not_charged(poor):
    """Each question meets the book first."""
    people, data = adult(), adult_features()
    questions = [
        lambda: quickstart.by_education(poor, people, 0.5),
        lambda: quickstart.logistic_regression(poor, data, 1.0, 1e-6),
        lambda: quickstart.network(poor, data, SHORT),
        lambda: quickstart.synthetic(poor, people, SHORT),
        lambda: quickstart.rich(poor, people, SHORT),
    ]
    for ask in questions:
        with pytest.raises(dp.BudgetExceeded):
            ask()
    assert poor.lines == []
    assert poor.accuracy == {}
    assert poor.book.spent().entries == 0


def test_the_settings_of_the_main_job_fit_the_book():
    """Before anything is read: the five events of the full settings, charged to a book of the same limit."""
    settings = Settings()
    rate = settings.batch_size / 32_561
    steps = settings.epochs * -(-32_561 // settings.batch_size)

    def training(noise: float) -> dp.Event:
        return dp.events.PoissonSampled(rate=rate, event=dp.events.Gaussian(noise_multiplier=noise)) * steps

    noise = dp.calibrate(training, epsilon=settings.network, delta=settings.delta)
    linear = dp.linear.LogisticRegression(
        epsilon=settings.linear, delta=settings.delta, feature_norm=1.0, classes=(0, 1)
    )
    with dp.Ledger("sqlite://") as ledger:
        book = ledger.open("adult", epsilon=quickstart.EPSILON, delta=quickstart.DELTA)
        people = adult()
        copied = dp.Schema({name: people.schema[name] for name in quickstart.COPIED})
        copy = dp.synthesis.TableSynthesizer(settings.synthetic, settings.delta).operation(copied).event
        count = dp.statistics.Count(epsilon=settings.count).event
        for event in (
            dp.events.PureDP(epsilon=settings.tables),
            linear.privacy_event(93),
            training(noise),
            copy,
            count,
        ):
            book.charge(event)
        assert book.spent().epsilon <= 3.0
