"""Rows that pass for real ones: the columns as they went in, and numbers as they are."""

import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet.random import Streams, seeded
from discreet.schema import Bounded, Categories, Dates, Schema
from discreet.synthesis import PrivateBins, TableSynthesizer, load
from discreet.synthesis.column_shape import Shape, uniform_shape
from discreet.synthesis.measured_shape import ColumnGrid, measure_shape
from discreet.synthesis.spending import Adjacency, Spending

SIZE = 20_000
SCHEMA = Schema(
    gain=Bounded(0, 99_999, missing=0, whole=True),
    hours=Bounded(0, 99, missing=0, whole=True),
    seen=Dates("2024-01-01", "2024-12-31"),
    sex=Categories(["f", "m"]),
    rate=Bounded(0, 1, missing=0),
)


def people(size=SIZE, seed=3):
    """Made up: nine in ten earn nothing more, half work forty hours, a third have a rate of exactly zero."""
    draw = np.random.default_rng(seed)
    gain = np.where(draw.random(size) < 0.9, 0, np.minimum(np.exp(draw.normal(8.5, 0.8, size)), 99_999).astype(int))
    hours = np.where(draw.random(size) < 0.5, 40, np.clip(draw.normal(38, 12, size).round(), 1, 99).astype(int))
    days = np.datetime64("2024-01-01") + draw.integers(0, 366, size).astype("m8[D]")
    rate = np.where(draw.random(size) < 1 / 3, 0.0, draw.random(size))
    sex = np.where(draw.random(size) < 0.4, "f", "m")
    return {"sex": sex, "gain": gain, "seen": days, "rate": rate, "hours": hours}


ROWS = people()


def synthesizer(epsilon=1.0, **facts):
    return TableSynthesizer(epsilon, 1e-9, workload=2, **facts)


@pytest.fixture(scope="module")
def drawn():
    return synthesizer(5.0).fit(pl.DataFrame(ROWS), schema=SCHEMA, rng=1).sample(SIZE, rng=2)


def test_columns_come_back_in_their_order_with_their_types(drawn):
    assert drawn.columns == list(ROWS)
    assert drawn.dtypes == [pl.String, pl.Int64, pl.Date, pl.Float64, pl.Int64]
    assert drawn.null_count().row(0) == (0, 0, drawn["seen"].null_count(), 0, 0)


def test_a_point_mass_stays_one_and_a_mean_stays_near(drawn):
    """One fit of a fixed seed; noise moves a share by about 0.002, and the mean of a long tail by some per cent."""
    for name, value in (("gain", 0), ("hours", 40), ("rate", 0.0)):
        assert (drawn[name] == value).mean() == pytest.approx((ROWS[name] == value).mean(), abs=0.01)
    assert drawn["gain"].mean() == pytest.approx(ROWS["gain"].mean(), rel=0.1)
    assert drawn["hours"].mean() == pytest.approx(ROWS["hours"].mean(), rel=0.01)
    assert drawn["gain"].max() <= 99_999


def test_whole_numbers_of_pandas_are_whole_and_missing_ones_are_null():
    frame = pd.DataFrame({"b": [1.0, 2.0, None, 4.0] * 500, "a": ["x", "y"] * 1000})
    schema = Schema(a=Categories(["x", "y"]), b=Bounded(0, 50, whole=True))
    rows = synthesizer(5.0).fit(frame, schema=schema, rng=1).sample(400, rng=1)
    assert list(rows.columns) == ["b", "a"]
    assert str(rows["b"].dtype) == "Int64"
    assert rows["b"].isna().mean() == pytest.approx(0.25, abs=0.05)
    full = frame.dropna()
    rows = synthesizer(5.0).fit(full, schema=Schema(b=Bounded(0, 9, missing=0, whole=True)), rng=1).sample(50, rng=1)
    assert str(rows["b"].dtype) == "int64"


def test_nothing_goes_missing_where_nothing_was():
    """A count of none passes three standard deviations of noise by one chance in 700; seeds are fixed."""
    schema = Schema(a=Categories(["x", "y"]), b=Bounded(0, 50, whole=True), c=Bounded(0, 1))
    frame = pd.DataFrame({"a": ["x", "y"] * 1000, "b": [1, 2, 3, 4] * 500, "c": [0.5, None] * 1000})
    for seed in range(4):
        rows = synthesizer().fit(frame, schema=schema, rng=seed).sample(2000, rng=seed)
        assert str(rows["b"].dtype) == "int64"
        assert rows["c"].isna().mean() == pytest.approx(0.5, abs=0.1)


def test_the_type_of_a_file_says_that_numbers_are_whole(tmp_path):
    path = tmp_path / "people.parquet"
    pl.DataFrame({"age": [30, 40] * 500, "cost": [1.5, 2.5] * 500}).write_parquet(path)
    schema = Schema(cost=Bounded(0, 10, missing=0), age=Bounded(0, 100, missing=0))
    rows = synthesizer(5.0).fit(path, schema=schema, rng=1).sample(100, rng=1)
    assert rows.schema == {"age": pl.Int64, "cost": pl.Float64}
    assert rows.columns == ["age", "cost"]


def test_types_of_a_frame_in_memory_say_nothing():
    """Who read it may have taken them from the records: one entry of 2.5 would make all of them fractions."""
    schema = Schema(age=Bounded(0, 100, missing=0))
    rows = synthesizer(5.0).fit(pl.DataFrame({"age": [30, 40] * 50}), schema=schema, rng=1).sample(10, rng=1)
    assert rows.dtypes == [pl.Float64]


def test_a_saved_model_draws_the_same_rows(tmp_path):
    fitted = synthesizer().fit(pl.DataFrame(people(500)), schema=SCHEMA, rng=1)
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").sample(100, rng=2).equals(fitted.sample(100, rng=2))


def test_a_model_of_the_first_format_draws_evenly_within_cells(tmp_path):
    fitted = synthesizer(bins=4).fit({"x": [0.0] * 500}, schema=Schema(x=Bounded(0, 8, missing=0)), rng=1)
    fitted.save(tmp_path / "model")
    with np.load(tmp_path / "model") as arrays:
        held = dict(arrays)
    facts = json.loads(bytes(held["facts"]).decode())
    older = {k: v for k, v in facts.items() if k not in ("shapes", "texts", "order")}
    held["facts"] = np.frombuffer(json.dumps(older | {"format": "discreet synthetic table 1"}).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **held)
    (tmp_path / "old").write_bytes(buffer.getvalue())
    assert len(set(load(tmp_path / "old").sample(50, rng=1)["x"].tolist())) > 40
    assert (fitted.sample(50, rng=1)["x"] == 0).mean() > 0.8


# --- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "is_whole"),
    [
        *(
            (column, is_whole)
            for column in (Bounded(0, 99), Bounded(-7, 1e6), Bounded(-1e150, 1e150))
            for is_whole in (True, False)
        ),
        (Bounded(1, 1 + 1e-15), False),
    ],
)
def test_numbers_are_drawn_inside_their_cells(column, is_whole):
    grid = ColumnGrid(column, is_whole)
    numbers = np.array([column.low, column.high, 0.0, 5.0, 17.0] * 40).clip(column.low, column.high)
    spending = Spending(0.5, Adjacency.ADD_REMOVE, Streams(1))
    shape = measure_shape(grid, numbers, spending, 0.5)
    assert 0 < spending.spent <= 0.5  # what is not needed is left for the model
    low, high = np.full(200, shape.edges[0]), np.full(200, shape.edges[-1])
    drawn = shape.draw(low, high, seeded(1))
    assert ((drawn >= column.low) & (drawn <= column.high)).all()
    assert shape.share(low[:1], high[:1]) == pytest.approx(1.0)


@pytest.mark.parametrize("is_whole", [True, False])
def test_with_a_large_budget_a_shape_is_the_histogram(is_whole):
    numbers = np.array([0.0] * 500 + [40.0] * 300 + [99.0] * 200)
    spending = Spending(1e6, Adjacency.ADD_REMOVE, Streams(1))
    shape = measure_shape(ColumnGrid(Bounded(0, 99), is_whole), numbers, spending, 1e6)
    drawn = shape.draw(np.full(1000, shape.edges[0]), np.full(1000, shape.edges[-1]), seeded(2))
    assert (drawn == 0).mean() == pytest.approx(0.5, abs=0.05)
    assert (drawn == 99).mean() == pytest.approx(0.2, abs=0.05)
    assert (abs(drawn - 40) < 0.05).mean() == pytest.approx(0.3, abs=0.05)


def test_a_record_is_in_one_part_of_each_depth(monkeypatch):
    """What the price of a depth rests on, seen in what meets the noise."""
    met = []
    monkeypatch.setattr(Spending, "counts", lambda self, exact, rho, one: met.append(exact) or exact.astype(float))
    numbers = np.repeat([0.0, 3.0, 40.0, 77_777.0, 99_999.0], 10_000)
    for more in (numbers, np.append(numbers, 40.0)):
        measure_shape(ColumnGrid(Bounded(0, 99_999), True), more, Spending(1.0, Adjacency.ADD_REMOVE, Streams(1)), 1.0)
    before, after = met[: len(met) // 2], met[len(met) // 2 :]
    moved = [abs(b - a).sum() for b, a in zip(before, after, strict=True)]
    assert len(moved) > 2
    assert moved[0] == 1
    assert max(moved) == 1


def test_noise_alone_opens_no_part():
    """Fifty records below noise of about a hundred: one depth is paid for, the rest is left for the model."""
    grid, spending = ColumnGrid(Bounded(0, 1000), False), Spending(1e-4, Adjacency.REPLACE, Streams(5))
    shape = measure_shape(grid, np.linspace(0, 1000, 50), spending, 1e-4)
    assert set(shape.edges) <= {*grid.boundaries[grid.blocks], *(end for p in grid.points for end in grid.atom(p))}
    assert spending.spent == pytest.approx(1e-4 / (2 - 2.0 ** (1 - grid.depth)))


def test_a_column_of_which_nothing_is_known_lies_evenly():
    assert uniform_shape(Bounded(0, 1000), False).share([0], [500]) == pytest.approx(0.5)
    assert uniform_shape(Bounded(1, 4), True).share([1], [2]) == pytest.approx(0.25)


@pytest.mark.parametrize("count", [2, 3, 16])
def test_there_are_no_more_cells_than_asked_for(count):
    weights = [5.0, 50.0] * 30
    for is_whole in (True, False):
        shape = Shape(tuple(range(61)), tuple(weights), is_whole)
        assert len(shape.cut(count, least=0.0)) <= count + 1


def test_few_whole_numbers_are_cells_each_and_nothing_is_measured_within_them():
    schema = Schema(n=Bounded(1, 16, missing=1, whole=True))
    plan = TableSynthesizer(1.0, 1e-9, bins=PrivateBins(16)).operation(schema).plan
    assert plan.domain.sizes == (16,)
    assert plan.domain.columns_to_measure == ()
    assert plan.share("values") == 0


def test_few_records_at_a_far_bound_are_a_cell_of_their_own():
    """150 of 32,000 at the upper bound are most of the variance, and half of the mean."""
    shape = Shape((0.0, 1.0, 1000.0, 99_999.0, 100_000.0), (30_000.0, 2_000.0, 0.0, 150.0), is_whole=True)
    assert 99_999.0 in shape.cut(16, least=180.0)
    assert 99_999.0 not in shape.cut(16, least=400.0)  # what noise could be is none


def test_points_are_counted_again_at_each_depth(monkeypatch):
    """A record at a point is in no other part, so a depth's price pays for points too; the noise is averaged."""
    met, noise = [], iter([90.0, *[0.0] * 9])

    def counts(self, exact, rho, one):
        met.append((exact, rho))
        return exact + next(noise)

    monkeypatch.setattr(Spending, "counts", counts)
    numbers = np.repeat([0.0, 3.0, 40.0, 77_777.0, 99_999.0], 10_000)
    grid, spending = ColumnGrid(Bounded(0, 99_999), True), Spending(1.0, Adjacency.ADD_REMOVE, Streams(1))
    shape = measure_shape(grid, numbers, spending, 1.0)
    assert len(met) == grid.depth
    assert all(exact[:2].tolist() == [10_000, 10_000] for exact, _ in met)
    first, every = met[0][1], sum(rho for _, rho in met)
    assert shape.weights[-1] == pytest.approx(10_000 + 90.0 * first / every)
