"""What Python says once where no book counts a release, where scikit-learn fits many times, and to other libraries'
arguments."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet import release

pytest.importorskip("sklearn")

from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from discreet.estimators import GaussianNB
from discreet.linear import LogisticRegression

X = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2))
y = (X[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """As in a new process, and with all warnings heard."""
    monkeypatch.setattr(release, "_said", set())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield heard


def about(heard, text):
    return [each for each in heard if text in str(each.message)]


def test_a_release_without_a_book_says_so_once(said):
    """And names the line of the user's own program."""
    for _ in range(3):
        dp.statistics.mean([1.0, 2.0], bounds=(0, 4), epsilon=1.0)
    (told,) = about(said, "No book counts this release")
    assert told.filename == __file__


def test_a_book_or_a_seed_is_silence(said):
    with dp.Ledger("sqlite://") as ledger:
        dp.statistics.mean([1.0], bounds=(0, 4), epsilon=1.0, book=ledger.open("b", epsilon=3))
    dp.statistics.mean([1.0], bounds=(0, 4), epsilon=1.0, rng=1)
    assert about(said, "No book counts") == []


@pytest.mark.parametrize("paid", [False, True])
def test_a_search_of_scikit_learn_says_that_every_fit_counts(said, paid):
    model = LogisticRegression(epsilon=1.0, feature_norm=1.0, classes=(0, 1))
    if paid:
        with dp.Ledger("sqlite://") as ledger:
            book = ledger.open("b", epsilon=30, delta=1e-3)
            cross_val_score(model, X, y, cv=2, params={"book": book})
    else:
        GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2).fit(X, y)
    (told,) = about(said, "fits this estimator many times")
    assert ("Each fit is charged" if paid else "no book counts") in str(told.message)


def test_a_scaler_of_scikit_learn_before_a_private_model_is_said_to_be_unpaid(said):
    model = LogisticRegression(epsilon=1.0, feature_norm=1.0, classes=(0, 1))
    for _ in range(2):
        make_pipeline(StandardScaler(), Normalizer(), model).fit(X, y)
    (told,) = about(said, "not private, and no book counts it")
    assert str(told.message).startswith("StandardScaler, of scikit-learn")  # a Normalizer looks at rows one by one
    assert told.filename == __file__


def test_what_learns_is_found_inside_of_what_it_is_composed_of(said):
    inside = make_column_transformer((make_pipeline(StandardScaler()), [0]), ("passthrough", [1]))
    make_pipeline(inside, LogisticRegression(epsilon=1.0, feature_norm=1.0, classes=(0, 1))).fit(X, y)
    (told,) = about(said, "not private, and no book counts it")
    assert str(told.message).startswith("StandardScaler, of scikit-learn")


def test_a_pipeline_without_what_learns_says_nothing_of_it(said):
    private = dp.estimators.StandardScaler(epsilon=1.0, bounds=(-1, 1))
    given = make_column_transformer(
        (OneHotEncoder(categories=[[0.0]], handle_unknown="ignore"), [0]), ("passthrough", [1])
    )
    for first in (Normalizer(), private, given):
        model = LogisticRegression(epsilon=1.0, feature_norm=1.0, classes=(0, 1))
        make_pipeline(first, model).fit(X, y)
    assert about(said, "of scikit-learn, is fitted") == []


@pytest.mark.parametrize("name", ["target_epsilon", "C", "class_weight", "data_norm"])
def test_other_libraries_arguments_are_answered_with_the_name_here(name):
    wanted = {"target_epsilon": "epsilon=", "C": "regularization=", "class_weight": "weigh the same"}
    with pytest.raises(TypeError, match=rf"has no argument {name}=: .*{wanted.get(name, 'feature_norm=')}"):
        LogisticRegression(**{name: 1}, classes=(0, 1))
    with pytest.raises(TypeError, match=f"GaussianNB has no argument {name}="):
        GaussianNB(**{name: 1}, classes=(0, 1))
    with pytest.raises(TypeError, match="unexpected keyword"):
        LogisticRegression(nonsense=1, classes=(0, 1))


def test_every_room_answers_another_librarys_name_of_the_budget():
    table = dp.table(pl.DataFrame({"x": [1.0]}), schema={"x": dp.Bounded(0, 1)})
    for ask in (
        lambda **given: dp.statistics.mean([1.0], bounds=(0, 4), **given),
        lambda **given: table.mean("x").release(**given),
        lambda **given: dp.synthesis.TableSynthesizer(**given),
        lambda **given: dp.training.fit(None, None, **given),
    ):
        with pytest.raises(TypeError, match=r"has no argument target_epsilon=: write epsilon="):
            ask(target_epsilon=1.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        dp.statistics.mean([1.0], bounds=(0, 4), nonsense=1.0)


def test_a_number_of_bins_is_answered_with_edges():
    with pytest.raises(ValueError, match=r"bins is 10, but must be the edges themselves.*linspace"):
        dp.statistics.histogram([1.0], bins=10, epsilon=1.0)


def test_a_path_for_a_book_is_answered_with_how_to_open_one():
    with pytest.raises(ValueError, match=r"book is 'budget\.db'.*dp\.Ledger\('budget\.db'\)\.book"):
        dp.statistics.mean([1.0], bounds=(0, 4), epsilon=1.0, book="budget.db")
