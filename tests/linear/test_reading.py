"""Every record is read by itself, whatever it came in; types and shapes are public, and looked at before the charge."""

import warnings
from collections import UserList, deque
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.linear import LinearRegression, LogisticRegression
from discreet.linear.inference import coefficients
from discreet.linear.rows import Records
from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Declaration, Schema

RNG = np.random.default_rng(0)
N = 400
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
ODD_ROWS = {
    "ragged": [1.0],
    "long": [1.0, 2.0, 3.0],
    "empty": [],
    "a number": 1.0,
    "text": "ab",
    "nothing": None,
    "a set": {1.0, 2.0},
    "a mapping": {1.0: 2.0, 3.0: 4.0},
    "text entry": ["x", 1.0],
    "a spelled number": ["2.5", 1.0],
    "None": [None, 1.0],
    "bytes": [b"\xff", 1.0],
    "complex": [1j, 1.0],
    "NumPy complex": [np.complex128(1j), 1.0],
    "nested": [[1.0], 1.0],
    "long double": [np.longdouble("1e4000"), 1.0],
    "whole": [10**400, 1.0],
    "NA": [pd.NA, 1.0],
    "NaT": [pd.NaT, 1.0],
    "span": [np.timedelta64(1, "D"), 1.0],
    "signalling": [Decimal("sNaN"), 1.0],
    "not ASCII": ["ż", 1.0],
}
ODD_LABELS = ["x", None, b"\xff", pd.NA, np.nan, 7, 1j, [], {}, 10**400, (0, 1), np.complex128(1j), "ż"]


def classifier(**facts):
    """The bounds say how many columns there are, which a list does not."""
    public = {
        "epsilon": 5.0,
        "classes": (0, 1),
        "bounds": (-4.0, [4.0, 4.0]),
        "random_state": 0,
        "solver_options": {"steps": 16},
    }
    return LogisticRegression(**public | facts)


def listed(odd):
    return [*X.tolist(), odd], [*Y.tolist(), 1]


PLAIN = classifier().fit(X, Y).coef_


@pytest.mark.parametrize("odd", ODD_ROWS.values(), ids=ODD_ROWS)
def test_an_odd_row_in_a_list_blanks_itself_alone(odd):
    """No error, no warning (which is an error here), and the others count as they did."""
    assert (classifier().fit(*listed(odd)).coef_ == PLAIN).all()


@pytest.mark.parametrize("odd", ODD_LABELS, ids=repr)
def test_an_odd_label_in_a_list_blanks_its_record_alone(odd):
    assert (classifier().fit([*X.tolist(), [1.0, 1.0]], [*Y.tolist(), odd]).coef_ == PLAIN).all()
    model = LinearRegression(target_bounds=(-1, 1), bounds=(-4.0, [4.0, 4.0]), random_state=0)
    plain = model.fit(X, X[:, 0]).coef_
    if repr(odd) != "7":
        again = model.fit([*X.tolist(), [1.0, 1.0]], [*X[:, 0].tolist(), odd])
        assert (again.coef_ == plain).all()


def test_one_text_label_does_not_switch_off_ten_thousand():
    x = RNG.uniform(-1, 1, size=(10_000, 1))
    y = (x[:, 0] > 0).astype(int).tolist()
    model = classifier(epsilon=10.0, solver_options=None, bounds=([-1.0], 1.0))
    strong = model.fit(x, y).coef_[0, 0]
    assert model.fit([*x.tolist(), [1.0]], [*y, "x"]).coef_[0, 0] == strong > 5


def test_booleans_of_numpy_are_numbers_beside_a_missing_one():
    bits = RNG.random((N, 2)) < 0.5
    rows = [list(row) for row in bits]
    plain = classifier().fit(bits, bits[:, 0]).coef_
    assert (classifier().fit([*rows, [None, np.bool_(True)]], [*bits[:, 0], True]).coef_ == plain).all()
    assert np.abs(plain).max() > 0.5


@pytest.mark.parametrize(
    "number", [Decimal("0.5"), np.float32(0.5), np.longdouble(0.5)], ids=lambda n: type(n).__name__
)
def test_numbers_of_other_types_are_numbers(number):
    given = classifier().fit(*listed([number, 1.0])).coef_
    assert (given == classifier().fit(*listed([0.5, 1.0])).coef_).all()
    assert (given != PLAIN).any()


FRAMES = {
    "pandas": lambda x: pd.DataFrame(x, columns=["a", "b"]),
    "pandas, nullable": lambda x: pd.DataFrame({"a": pd.array(x[:, 0], "Float64"), "b": pd.array(x[:, 1], "Float64")}),
    "pandas, Arrow": lambda x: pd.DataFrame(x, columns=["a", "b"]).astype(pd.ArrowDtype(pa.float64())),
    "polars": lambda x: pl.DataFrame({"a": x[:, 0], "b": x[:, 1]}),
    "Arrow": lambda x: pa.table({"a": x[:, 0], "b": x[:, 1]}),
    "objects": lambda x: x.astype(object),
    "lists": lambda x: x.tolist(),
    "tuple of arrays": lambda x: tuple(x),
}
COLUMNS = {
    "pandas": pd.Series,
    "pandas, nullable": lambda y: pd.Series(y, dtype="Int64"),
    "polars": pl.Series,
    "Arrow": pa.array,
    "pandas, Arrow": lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.int64())),
    "chunks": lambda y: pa.chunked_array([y]),
    "objects": lambda y: y.astype(object),
    "lists": list,
    "categories": lambda y: pd.Series(pd.Categorical(y)),
    "text objects": lambda y: y.astype(str).astype(object),
    "text list": lambda y: y.astype(str).tolist(),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_container_of_features_gives_the_same_model(frame):
    assert (classifier().fit(frame(X), Y).coef_ == PLAIN).all()


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_every_container_of_labels_gives_the_same_model(column):
    """Text among objects is the label it spells: a list of them has no type that could be refused."""
    assert (classifier().fit(X, column(Y)).coef_ == PLAIN).all()


def test_a_missing_label_does_not_round_the_others():
    """Whole numbers beyond 2^53 beside a missing one: NumPy would make doubles of them all."""
    big = 2**53
    y = pd.array([big + int(label) for label in Y], "Int64")
    plain = classifier(classes=(big, big + 1)).fit(X, y).coef_
    y[0] = None
    assert np.abs(classifier(classes=(big, big + 1)).fit(X, y).coef_ - plain).max() < 2
    assert (plain == PLAIN).all()


def test_a_list_has_the_columns_that_are_declared_or_is_refused():
    """Whatever its rows were asked, one record could change the answer: so they are not asked."""
    for rows in ([[1.0, 2.0], [1.0], [1.0, 2.0]], [[1.0], [1.0], [1.0]], [1.0, 2.0, 3.0]):
        assert classifier().fit(rows, [0, 1, 0]).n_features_in_ == 2
        book = Book()
        with pytest.raises(ValueError, match="X is a list, which does not say how many columns it has"):
            classifier(bounds=None, feature_norm=1.0).fit(rows, [0, 1, 0], book=book)
        assert not book.charged
    assert classifier().fit([], []).n_features_in_ == 2
    with pytest.raises(ValueError, match="X is a list, which does not say"):
        classifier(bounds=(0, 1)).fit([], [])


def test_a_list_to_predict_for_says_itself_how_many_columns_it_has():
    """Nothing is protected there: a list of the wrong width is a mistake that is told."""
    model = classifier().fit(X, Y)
    assert model.predict(X[:3].tolist()).tolist() == model.predict(X[:3]).tolist()
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="Expected 2D"):
        model.predict([1.0, 2.0])
    with pytest.raises(ValueError, match="0 sample"):
        model.predict([])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_whether_a_frame_holds_numbers_or_text_is_no_fact(frame):
    """Who read it from a file may have asked the records: one word makes text of a column of numbers."""
    numbers = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    texts = {**numbers, "a": [repr(value) for value in numbers["a"]]}
    plain = classifier().fit(frame(numbers), Y).coef_
    assert (classifier().fit(frame(texts), Y).coef_ == plain).all()
    for labels in (Y.astype(str), Y.astype(float).astype(str), Y.astype(float)):
        assert (classifier().fit(frame(numbers), frame({"y": labels.tolist()})["y"]).coef_ == plain).all()
    named = classifier(classes=("0", "1")).fit(frame(numbers), frame({"y": Y.astype(float).tolist()})["y"])
    assert (named.coef_ == plain).all()
    target = frame({"y": [repr(float(value)) for value in Y]})["y"]
    options = {"target_bounds": (0, 1), "bounds": (-3, 3), "random_state": 1}
    fits = [LinearRegression(**options).fit(frame(numbers), y).coef_ for y in (target, Y.astype(float))]
    assert (fits[0] == fits[1]).all()


def test_a_list_of_labels_may_hold_rows_of_one():
    """Read by itself, each, like all else: whether there are any is no public fact."""
    assert (classifier().fit(X, [[label] for label in Y]).coef_ == PLAIN).all()
    assert (classifier().fit(X, [Y[0], *([label] for label in Y[1:])]).coef_ == PLAIN).all()
    with pytest.raises(ValueError, match="y has 2 dimensions"):
        classifier().fit(X, np.stack([Y, Y], axis=1))


class Book:
    """Remembers whether it was charged."""

    charged = False

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        self.charged = True


MANY = np.broadcast_to(np.zeros((1, 1)), (2**29 + 1, 1))  # a table without memory
MISTAKES = {
    "too many": (MANY, MANY[:, 0], {}, r"X has more than 2\^29 records"),
    "text labels": (X, Y.astype(str), {}, "y holds text, but classes is"),
    "numbers for text": (X, Y, {"classes": ("no", "yes")}, "y holds numbers, but classes is"),
    "dates": (X, np.full(N, "2020-01-01", "M8[D]"), {}, "y holds dates, but classes is"),
    "a column of dates": (
        pd.DataFrame({"a": np.full(N, "2020-01-01", "M8[D]"), "b": X[:, 1]}),
        Y,
        {},
        "the column 'a'",
    ),
    "text": (X.astype(str), Y, {}, "X has type str_"),
    "lengths": (X, Y[1:], {}, "inconsistent numbers of samples"),
    "bounds": (X, Y, {"bounds": (0, 5e-324)}, "bounds lie too close"),
}


@pytest.mark.parametrize(("x", "y", "facts", "message"), MISTAKES.values(), ids=MISTAKES)
def test_public_mistakes_are_found_before_the_charge(x, y, facts, message):
    book = Book()
    with pytest.raises(ValueError, match=message):
        classifier(**facts).fit(x, y, book=book)
    assert not book.charged
    with pytest.raises(ValueError, match="target_bounds is"):
        LinearRegression(target_bounds=(0, 5e-324), feature_norm=1.0).fit(X, Y, book=book)
    with pytest.raises(ValueError, match="must hold real numbers"):
        LinearRegression(target_bounds=(-1, 1), feature_norm=1.0).fit(X, Y.astype(str), book=book)
    assert not book.charged


def test_no_value_is_looked_at_before_the_charge():
    """A book that refuses: an entry that would notice being read is not read."""

    class Witness(float):
        seen = False

        def __float__(self):
            Witness.seen = True
            return 1.0

    class Refusing:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            raise KeyError("no")

    with pytest.raises(KeyError):
        classifier().fit([[Witness(1.0), 0.0], [1.0, 0.0]], [0, 1], book=Refusing())
    assert not Witness.seen
    classifier().fit([[Witness(1.0), 0.0], [1.0, 0.0]], [0, 1])
    assert Witness.seen


def test_rows_shrunk_without_a_declared_norm_are_announced():
    """A public fact: the same words for any data, and none where a norm or bounds are declared."""
    for data in (X, X[:0]):
        with pytest.warns(UserWarning, match="Neither feature_norm nor bounds is declared"):
            LogisticRegression(classes=(0, 1)).fit(data, Y[: len(data)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LogisticRegression(bounds=(-1, 1), classes=(0, 1)).fit(X, Y)
        LogisticRegression(feature_norm=1.0, classes=(0, 1)).fit(X, Y)


def test_a_table_model_reads_labels_by_themselves():
    """An object that cannot say what it is called is no label, and no error."""

    class Mute:
        def __str__(self):
            raise RuntimeError("a private word")

    facts = Declaration(Schema(x=Bounded(0, 1), y=Categories(["a", "b"])))
    rows = {"x": [0.1, 0.9] * 100, "y": ["a", "b"] * 100}
    plain = TableModel(facts, "y", epsilon=1.0, random_state=0).fit(rows).estimator.coef_
    odd = {"x": [*rows["x"], 0.5], "y": [*rows["y"], Mute()]}
    assert (TableModel(facts, "y", epsilon=1.0, random_state=0).fit(odd).estimator.coef_ == plain).all()


def test_records_do_not_show_themselves():
    assert repr(Records(X, Y, Y > 0)) == "Records(...)"


class Hostile:
    """Fails at whatever is asked of it."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


def test_a_record_that_fails_when_it_is_looked_at_is_its_own_matter():
    """As a row, an entry, a label or a target: nothing is raised, and other records are read as ever."""
    for rows in ([*X.tolist(), Hostile()], [*X.tolist(), [Hostile(), 1.0]]):
        assert np.array_equal(classifier().fit(rows, [*Y.tolist(), 1]).coef_, PLAIN)
    assert np.array_equal(classifier().fit([*X.tolist(), [0.1, 0.1]], [*Y.tolist(), Hostile()]).coef_, PLAIN)
    model = LinearRegression(epsilon=5.0, bounds=(-4.0, [4.0, 4.0]), target_bounds=(0, 1), random_state=0)
    assert np.array_equal(model.fit([*X.tolist(), [0.1, 0.1]], [*Y.tolist(), Hostile()]).coef_, model.fit(X, Y).coef_)


@pytest.mark.parametrize("odd", [[1.0], ["x", 1.0], 1.0, None])
@pytest.mark.parametrize("container", [deque, UserList])
def test_a_sequence_of_any_kind_is_read_as_a_list_is(container, odd):
    """NumPy gave all records of a deque one type for the sake of one, or failed with their number in its message."""
    rows, labels = container([*X.tolist(), odd, [0.1, 0.1]]), container([*Y.tolist(), 1, "x"])
    assert np.array_equal(classifier().fit(rows, labels).coef_, PLAIN)


@pytest.mark.parametrize("ask", [lambda model, *data: model.fit(*data), coefficients])
def test_more_records_than_exact_sums_hold_are_refused_before_a_value_is_read(ask):
    many = np.broadcast_to(0.0, (2**29 + 1,))
    with pytest.raises(ValueError, match="2\\^29"):
        ask(LinearRegression(target_bounds=(-1, 1), feature_norm=1.0), many[:, None], many)
