"""What Python says once where no book counts a release, where scikit-learn fits many times, and to other libraries'
arguments."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import discreet as dp
from discreet import release

pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV, cross_val_score

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
    model = LogisticRegression(epsilon=1.0, feature_norm=1.0)
    if paid:
        with dp.Ledger("sqlite://") as ledger:
            book = ledger.open("b", epsilon=30, delta=1e-3)
            cross_val_score(model, X, y, cv=2, params={"book": book})
    else:
        GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2).fit(X, y)
    (told,) = about(said, "fits this estimator many times")
    assert ("Each fit is charged" if paid else "no book counts") in str(told.message)


@pytest.mark.parametrize("name", ["target_epsilon", "C", "class_weight", "data_norm"])
def test_other_libraries_arguments_are_answered_with_the_name_here(name):
    wanted = {"target_epsilon": "epsilon=", "C": "regularization=", "class_weight": "weigh the same"}
    with pytest.raises(TypeError, match=rf"has no argument {name}=: .*{wanted.get(name, 'feature_norm=')}"):
        LogisticRegression(**{name: 1})
    with pytest.raises(TypeError, match=f"GaussianNB has no argument {name}="):
        GaussianNB(**{name: 1})
    with pytest.raises(TypeError, match="unexpected keyword"):
        LogisticRegression(nonsense=1)


def test_a_path_for_a_book_is_answered_with_how_to_open_one():
    with pytest.raises(ValueError, match=r"book is 'budget\.db'.*dp\.Ledger\('budget\.db'\)\.book"):
        dp.statistics.mean([1.0], bounds=(0, 4), epsilon=1.0, book="budget.db")
