"""Mistakes that people make: each is answered by a sentence that says what is wrong, where, and what to do instead.

One entry a mistake: what was done, and words that the answer must have, the last of them of the remedy. None of them
spends anything: a book that is at hand keeps its budget.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import discreet as dp
from discreet import cli, events
from discreet.estimators import PCA, GaussianNB, KMeans
from discreet.linear import LinearRegression, LogisticRegression
from discreet.training import make_private

FRAME = pl.DataFrame({"ward": ["A", "B", "A"], "age": [30, 40, 50], "patient": [1, 1, 2]})
SCHEMA = dp.Schema(ward=dp.Categories(["A", "B"]), age=dp.Bounded(0, 100))
X, Y = np.linspace(-1, 1, 40).reshape(20, 2), np.arange(20) % 2
Mistake = Callable[[dp.Book], Any]


def table(**options: Any) -> Any:
    return dp.table(FRAME, schema=SCHEMA, **options)


def fitted(**options: Any) -> Any:
    return LogisticRegression(**{"epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "classes": (0, 1)} | options)


def trained(model: Any = None, optimizer: Any = None, loader: Any = None, **options: Any) -> Any:
    model = model or torch.nn.Linear(2, 2)
    data = TensorDataset(torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))
    asked = {"epsilon": 1.0, "delta": 1e-6, "epochs": 1, "loss_reduction": "mean"} | options
    return make_private(
        model,
        optimizer or torch.optim.SGD(model.parameters(), lr=0.1),
        loader or DataLoader(data, batch_size=5),
        **asked,
    )


def looped(model: Any, loss: Callable[[Any, Any], Any], **options: Any) -> Any:
    model, optimizer, loader = trained(model, **options)
    for x, y in loader:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


NORM = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))

MISTAKES: dict[str, tuple[Mistake, str]] = {
    # --- the vocabulary and the account
    "a negative noise": (lambda b: events.Gaussian(noise_multiplier=-1.0), r"noise_multiplier.*must be"),
    "a rate above one": (lambda b: events.PoissonSampled(rate=1.5, event=events.PureDP(epsilon=1)), r"rate.*must be"),
    "delta above one": (lambda b: dp.epsilon(events.PureDP(epsilon=1.0), delta=2.0), r"delta.*must be"),
    "an epsilon for an event": (lambda b: dp.epsilon(1.0, delta=1e-6), r"event"),
    "an unknown adjacency": (
        lambda b: dp.epsilon(events.PureDP(epsilon=1.0), delta=0, adjacency="swap"),
        r"swap.*add-remove",
    ),
    "an unknown accountant": (
        lambda b: dp.epsilon(events.PureDP(epsilon=1.0), delta=0, accountant="moments"),
        r"moments.*rdp",
    ),
    "a repeat of half a time": (lambda b: events.PureDP(epsilon=1.0) * 1.5, r"whole|integer|int"),
    # --- the ledger
    "a book without epsilon": (lambda b: dp.Ledger("sqlite://").open("x", epsilon=-1.0), r"epsilon.*must be"),
    "a budget exceeded": (
        lambda b: b.charge(events.PureDP(epsilon=50.0)),
        r"above the limit.*What is left: epsilon=10 .*fits: epsilon=10 without.*raise the limit",
    ),
    "delta in a pure book": (
        lambda b: dp.Ledger("sqlite://").open("x", epsilon=1.0).charge(events.Gaussian(noise_multiplier=9.0)),
        r"delta",
    ),
    "a book that is not there": (lambda b: dp.Ledger("sqlite://").book("census"), r"census.*open"),
    "a book misspelt": (lambda b: b.ledger.book("dta"), r"'dta'.*'data'.*open"),
    "a sub-book misspelt": (lambda b: b.sub("ann", epsilon=1.0) and b.ledger.book("data/an"), r"'data/an'.*'data/ann'"),
    "a book opened with other limits": (lambda b: _twice(), r"Limits are fixed"),
    "another unit": (lambda b: _other_unit(), r"unit"),
    "a ledger of an unknown store": (lambda b: dp.Ledger("mongodb://host/x"), r"sqlite|postgres"),
    "an answer charged": (lambda b: b.charge(3.0), r"event"),
    # --- mechanisms and statistics
    "a scale and an epsilon": (
        lambda b: dp.mechanisms.Laplace(sensitivity=1.0, epsilon=1.0, scale=1.0),
        r"epsilon.*scale|one of",
    ),
    "Gaussian noise without delta": (lambda b: dp.mechanisms.Gaussian(sensitivity=1.0, epsilon=1.0), r"delta"),
    "sensitivity zero": (lambda b: dp.mechanisms.Laplace(sensitivity=0.0, epsilon=1.0), r"sensitivity.*must be"),
    "a mean without bounds": (lambda b: dp.statistics.mean([1.0], epsilon=1.0), r"bounds"),
    "bounds the wrong way round": (lambda b: dp.statistics.mean([1.0], bounds=(9, 0), epsilon=1.0), r"bounds.*low"),
    "no budget": (lambda b: dp.statistics.mean([1.0], bounds=(0, 1)), r"epsilon"),
    "text to be averaged": (
        lambda b: dp.statistics.mean(np.array(["a", "b"]), bounds=(0, 1), epsilon=1.0, book=b),
        r"text|number",
    ),
    "a quantile of 50": (lambda b: dp.statistics.quantile([1.0], 50, bounds=(0, 1), epsilon=1.0), r"q.*must|0.*1"),
    "a table to a mean": (
        lambda b: dp.statistics.mean(FRAME, bounds=(0, 1), epsilon=1.0, book=b),
        r"column|array|list",
    ),
    "a histogram of another length": (
        lambda b: dp.workloads.answer(dp.workloads.Identity(3), [1, 2], epsilon=1.0, book=b),
        r"3",
    ),
    # --- tables
    "a column that is not declared": (lambda b: table().mean("income"), r"income.*(schema|declared)"),
    "the mean of a category": (lambda b: table().mean("ward").release(epsilon=1.0, book=b), r"ward.*Bounded"),
    "groups by a number": (lambda b: table().group_by("age").count().release(epsilon=1.0, book=b), r"age"),
    "a misspelt function": (lambda b: table().sql("SELECT MEEN(age) FROM t"), r"MEEN.*AVG"),
    "a raw column asked for": (lambda b: table().sql("SELECT age FROM t"), r"age"),
    "SELECT star": (lambda b: table().sql("SELECT * FROM t"), r"aggregat|COUNT"),
    "a join to nothing": (lambda b: table().sql("SELECT COUNT(*) FROM t JOIN u ON t.ward = u.ward"), r"u"),
    "no SQL at all": (lambda b: table().sql("how many people are there?"), r"SELECT"),
    "a unit that is not a column": (lambda b: table(unit="person"), r"person"),
    "a schema that is no schema": (lambda b: dp.table(FRAME, schema={"age": (0, 100)}), r"age.*Bounded"),
    "a list as a category": (lambda b: dp.Categories("A"), r"list|text"),
    "bounds that are equal": (lambda b: dp.Bounded(5, 5), r"5"),
    "epsilon forgotten": (lambda b: table().count().release(book=b), r"epsilon"),
    # --- linear models and other estimators
    "text where numbers belong": (
        lambda b: fitted().fit(np.array([["a", "b"]] * 20), Y, book=b),
        r"number|text",
    ),
    "an unknown solver": (lambda b: fitted(solver="lbfgs").fit(X, Y, book=b), r"lbfgs.*gd"),
    "labels of another kind": (lambda b: fitted().fit(X, Y.astype(str), book=b), r"classes"),
    "as many targets as there are not": (lambda b: fitted().fit(X, Y[:5], book=b), r"inconsistent numbers"),
    "prediction before the fit": (lambda b: fitted().predict(X), r"fit"),
    "prediction with other columns": (lambda b: fitted(random_state=0).fit(X, Y).predict(X[:, :1]), r"feature"),
    "targets without bounds": (
        lambda b: LinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), target_bounds=(3, 1)).fit(X, Y, book=b),
        r"target_bounds",
    ),
    "a negative epsilon": (lambda b: fitted(epsilon=-1.0).fit(X, Y, book=b), r"epsilon.*must be"),
    "more clusters than none": (lambda b: KMeans(0, epsilon=1.0, bounds=(-1, 1)).fit(X, book=b), r"n_clusters"),
    "components beyond the columns": (
        lambda b: PCA(n_components=9, epsilon=1.0, delta=1e-6, bounds=(-1, 1)).fit(X, book=b),
        r"n_components",
    ),
    "naive Bayes without bounds": (lambda b: GaussianNB(epsilon=1.0, classes=(0, 1)).fit(X, Y, book=b), r"bounds"),
    # --- training
    "BatchNorm": (lambda b: trained(NORM, book=b), r"BatchNorm.*replace_batch_norm"),
    "no length of the run": (lambda b: trained(epochs=None, book=b), r"epochs"),
    "neither epsilon nor noise": (lambda b: trained(epsilon=None, book=b), r"epsilon.*noise_multiplier"),
    "delta forgotten in training": (lambda b: trained(delta=None, book=b), r"delta"),
    "an optimiser of another model": (
        lambda b: trained(optimizer=torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1), book=b),
        r"optimizer.*Add it",
    ),
    "a sampler of one's own": (
        lambda b: trained(
            loader=DataLoader(
                TensorDataset(torch.zeros(20, 2), torch.zeros(20, dtype=torch.long)),
                batch_size=5,
                sampler=torch.utils.data.WeightedRandomSampler([1.0] * 20, 20),
            ),
            book=b,
        ),
        r"sampler",
    ),
    "no parameter to train": (
        lambda b: trained(_frozen(), torch.optim.SGD([torch.zeros(1)], lr=0.1), book=b),
        r"param|train",
    ),
    "a loss that mixes records": (
        lambda b: looped(torch.nn.Linear(2, 2), lambda out, y: (out - out.mean(0)).pow(2).mean(), epochs=1),
        r"record",
    ),
    "a reduction that is unknown": (lambda b: trained(loss_reduction="average", book=b), r"loss_reduction.*mean"),
    "a clip norm of zero": (lambda b: trained(max_grad_norm=0.0, book=b), r"max_grad_norm.*must be"),
    # --- synthesis, teachers, tuning, audits
    "a synthesiser without delta": (
        lambda b: dp.synthesis.TableSynthesizer(1.0, 0.0).fit(FRAME.select("ward", "age"), schema=SCHEMA, book=b),
        r"delta",
    ),
    "a synthetic table of nothing": (
        lambda b: dp.synthesis.TableSynthesizer(1.0).fit(FRAME.select("ward", "age"), schema=dp.Schema(), book=b),
        r"column",
    ),
    "no teachers": (
        lambda b: dp.pate.PATEClassifier(teacher=fitted(), n_teachers=0, classes=(0, 1)).fit(X, Y, public=X, book=b),
        r"n_teachers",
    ),
    "a search among nothing": (
        lambda b: dp.tuning.PrivateSearch(fitted(), {"regularization": []}, mean=10).fit(X, Y, book=b),
        r"regularization.*non-empty",
    ),
    "an audit of one data set": (
        lambda b: dp.auditing.audit(dp.mechanisms.Laplace(sensitivity=1.0, epsilon=1.0), X, X),
        r"same object",
    ),
}


def _twice() -> None:
    with dp.Ledger("sqlite://") as ledger:
        ledger.open("x", epsilon=1.0)
        ledger.open("x", epsilon=2.0)


def _other_unit() -> None:
    with dp.Ledger("sqlite://") as ledger:
        book = ledger.open("x", epsilon=1.0, unit="patient")
        dp.statistics.mean([1.0], bounds=(0, 1), epsilon=0.1, book=book)


def _frozen() -> torch.nn.Module:
    return torch.nn.Linear(2, 2).requires_grad_(False)


@pytest.fixture
def book() -> Iterator[dp.Book]:
    with dp.Ledger("sqlite://") as ledger:
        yield ledger.open("data", epsilon=10.0, delta=1e-5)


def told(text: str, pattern: str) -> None:
    """A sentence or three, of words, with what was asked for, and nothing of Python's own."""
    assert text, "nothing was said: it was accepted"
    assert re.search(pattern, text, re.DOTALL), text
    assert len(text) <= 450, text
    assert text.rstrip()[-1] in ".)?'`]", text
    assert not re.search(r"Traceback|object at 0x|NoneType|__\w+__|\bself\b", text), text


@pytest.mark.parametrize(("mistake", "pattern"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_answered_by_what_where_and_a_remedy(book: dp.Book, mistake: Mistake, pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = ""
        try:
            mistake(book)
        except Exception as error:
            said = str(error)
    told(said, pattern)
    assert book.spent().epsilon == 0


def test_there_are_sixty_of_them() -> None:
    assert len(MISTAKES) + len(COMMANDS) >= 60


# --- on the command line ----------------------------------------------------------------------------------------------

COMMANDS = {
    "a file that is not there": (
        "query none.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t' --epsilon 1",
        "none.csv",
    ),
    "a schema that is not there": (
        "query d.csv --schema none.toml --sql 'SELECT COUNT(*) FROM t' --epsilon 1",
        "none.toml",
    ),
    "a wrong column": ("query d.csv --schema s.toml --sql 'SELECT AVG(salary) FROM t' --epsilon 1", "salary"),
    "epsilon missing": ("query d.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t'", "epsilon"),
    "a target that is not declared": ("fit d.csv --schema s.toml --target income --epsilon 1 --out m.json", "income"),
    "a model into no folder": ("fit d.csv --schema s.toml --target ward --epsilon 1 --out no/m.json", "no"),
    "a budget in words": (
        "query d.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t' --epsilon one",
        "--epsilon is 'one', but must be a number",
    ),
    "a model that is none": ("predict d.csv d.csv", "model"),
    "a report of no book": ("report census --ledger none.db", "none.db|census"),
    "an event misspelt": ("epsilon 'gausian(1)' --delta 1e-5", "gausian.*gaussian"),
    "a command misspelt": ("qeury d.csv", "query|qeury"),
    "a delta above the book's": (
        "fit d.csv --schema s.toml --target ward --epsilon 1 --out m.json --ledger b.db --book census",
        "delta is 1e-06.*more than book 'census'.*1e-07.*--delta 1e-08",
    ),
    "a delta above the book's, in SQL": (
        "query d.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t' --epsilon 1 --delta 1e-5 -l b.db --book census",
        "delta is 1e-05.*1e-07.*--delta 1e-08",
    ),
    "a delta in a book without": (
        "fit d.csv --schema s.toml --target ward --epsilon 1 --out m.json --ledger b.db --book census/alice",
        "delta is 1e-06.*book 'census/alice' has delta=0.*--delta 0",
    ),
    "more than the book has": (
        "query d.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t' --epsilon 4 -l b.db --book census",
        "above the limit 3.*What is left: epsilon=3 at delta=1e-07.*fits: epsilon=3 without delta",
    ),
    "a misspelt book to charge": (
        "query d.csv --schema s.toml --sql 'SELECT COUNT(*) FROM t' --epsilon 1 --ledger b.db --book cenus",
        "'cenus'.*'census'.*name one",
    ),
    "a misspelt sub-book to look at": ("report census/alcie --ledger b.db", "'census/alcie'.*'census/alice'"),
    "a run that is not there": ("audit none.toml", "no file 'none.toml'"),
}


@pytest.mark.parametrize(("line", "pattern"), COMMANDS.values(), ids=list(COMMANDS))
def test_the_command_line_answers_a_mistake_in_a_sentence(
    line: str, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shlex

    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("d.csv")
    with dp.Ledger("b.db") as ledger:
        ledger.open("census", epsilon=3.0, delta=1e-7).sub("alice", epsilon=1.0)
    Path("s.toml").write_text('[columns]\nward = { categories = ["A", "B"] }\nage = { bounds = [0, 100] }\n')
    said, code = io.StringIO(), 0
    with redirect_stdout(said), redirect_stderr(said), suppress(KeyboardInterrupt):
        try:
            cli.main(shlex.split(line))
        except SystemExit as end:
            code = int(end.code or 0)
    assert code == 2
    assert re.search(pattern, said.getvalue(), re.DOTALL), said.getvalue()
    assert "Traceback" not in said.getvalue()
    with dp.Ledger("b.db") as ledger:
        assert ledger.book("census").spent().epsilon == 0
