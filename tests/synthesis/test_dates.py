"""Dates: read as ISO text between two public days, binned as days, drawn as dates."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.schema import Bounded, Categories, Declaration, Schema, Unlisted
from discreet.synthesis import PrivateBins, TableSynthesizer, load
from discreet.synthesis.dates import with_dates
from tests.operations.contract import Log, SpyBook

SCHEMA = Schema(ward=Categories(["a", "b"]))
DATES = {"admitted": ("2020-01-01", "2023-12-31")}


def table(n=2000):
    """Ward b was opened in 2022; every tenth date is missing, a few are no dates."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 4 * 365, n)
    ward = np.where(days >= np.datetime64("2022-01-01"), "b", "a")
    text = [None if i % 10 == 0 else "soon" if i % 99 == 1 else str(d) for i, d in enumerate(days)]
    return {"ward": ward.tolist(), "admitted": text}


def synth(data=None, **facts):
    facts = {"bins": 8, "dates": DATES} | facts
    return TableSynthesizer(20.0, 1e-6, **facts).fit(table() if data is None else data, schema=SCHEMA, rng=1)


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame], ids=["columns", "pandas", "polars"])
def test_dates_come_back_as_dates_and_follow_what_they_depend_on(frame):
    drawn = synth(frame(table())).sample(1000, rng=2)
    found = list(zip(drawn["ward"], drawn["admitted"], strict=True))
    present = [(ward, date.fromisoformat(text)) for ward, text in found if isinstance(text, str)]
    assert 60 < len(found) - len(present) < 140
    assert all(date(2020, 1, 1) <= day <= date(2023, 12, 31) for _, day in present)
    assert np.mean([(ward == "b") == (day.year >= 2022) for ward, day in present]) > 0.9


@pytest.mark.parametrize("bins", [PrivateBins(8), {"admitted": ["2020-01-01", "2022-01-01", "2023-12-31"]}], ids=str)
def test_counts_are_asked_by_dates_and_a_saved_model_knows_them(tmp_path, bins):
    fitted = synth(bins=bins)
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    early = {"ward": "a", "admitted": ("2020-01-01", "2022-01-01")}
    assert again.count(early) == fitted.count(early) == pytest.approx(880, abs=90)
    assert again.labels("admitted")[0][0] == "2020-01-01"
    assert again.labels("admitted")[-1] is None
    assert isinstance(again.sample(5, rng=1)["admitted"][0], (str, type(None)))


def test_a_file_is_read_as_text(tmp_path):
    pl.DataFrame(table(300)).write_csv(tmp_path / "stays.csv")
    drawn = synth(str(tmp_path / "stays.csv")).sample(50, rng=1)
    assert drawn["admitted"].drop_nulls().str.contains(r"^20\d\d-\d\d-\d\d$").all()


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        ({"ward": ("2020-01-01", "2021-01-01")}, "declared otherwise"),
        ({"admitted": ("2020-01-01", "soon")}, "is no date"),
        ({"admitted": ("2020-01-01", 7)}, "is no date"),
        ({"admitted": "2020-01-01"}, "must be a pair"),
        ({"admitted": ("2021-01-01", "2020-01-01")}, "a later one"),
        ({"admitted": ("0001-01-01", "2020-01-01")}, "at most 65,536"),
    ],
    ids=str,
)
def test_public_mistakes_in_dates_are_found_before_the_charge(dates, words):
    log = Log()
    with pytest.raises(ValueError, match=words):
        TableSynthesizer(1.0, 1e-6, dates=dates).fit(table(5), schema=SCHEMA, book=SpyBook(log), rng=1)
    numbers = table(5) | {"admitted": np.arange(5)}
    with pytest.raises(ValueError, match="'admitted' has type int64, but must hold dates, times or text"):
        TableSynthesizer(1.0, 1e-6, dates=DATES).fit(numbers, schema=SCHEMA, book=SpyBook(log), rng=1)
    assert "charge" not in log


def test_dates_of_every_type_are_read_as_their_text_is():
    """Objects of Python were missing, every one of them, without a word; NumPy's type was refused."""
    columns = table(300)
    typed = pl.Series(columns["admitted"]).str.to_date(strict=False)
    plain = TableSynthesizer(1e3, 1e-6, dates=DATES).fit(columns, schema=SCHEMA, rng=1).marginal(["admitted"])
    for entries in (
        typed.to_list(),
        typed.to_numpy(),
        typed,
        typed.to_arrow(),
        typed.cast(pl.Datetime("ns")).to_pandas(),
    ):
        model = TableSynthesizer(1e3, 1e-6, dates=DATES).fit(columns | {"admitted": entries}, schema=SCHEMA, rng=1)
        assert (model.marginal(["admitted"]) == plain).all()


def test_an_unlisted_column_may_be_one_of_dates():
    facts = with_dates(Declaration(Schema(ward=Categories(["a"]), admitted=Unlisted())), DATES)
    assert facts.schema["admitted"] == Bounded(18262, 19722)
