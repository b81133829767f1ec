"""Every statistic's function takes the same keywords, which people, editors and type checkers see."""

from __future__ import annotations

import inspect
from typing import Any, assert_type

import pytest

from discreet import statistics
from discreet.release import Release

FUNCTIONS: list[Any] = [
    each for name, each in vars(statistics).items() if name in statistics.__all__ and inspect.isfunction(each)
]
SHARED = ["epsilon", "delta", "rho", "adjacency", "unit", "book", "label", "rng"]
WITHOUT_DELTA = ("quantile", "median", "mode")


def test_every_function_is_found() -> None:
    assert len(FUNCTIONS) == 18


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_keyword_is_spelled_out_with_its_default(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    shared = [name for name in SHARED if name != "delta" or function.__name__ not in WITHOUT_DELTA]
    assert list(parameters)[-len(shared) :] == shared
    assert next(iter(parameters)) == "values"
    defaults = {name: parameters[name].default for name in shared}
    assert defaults.pop("label") == function.__name__.strip("_").replace("_", " ").replace("bounded v", "bounded-v")
    assert set(defaults.values()) == {None, "add-remove", "one record"}
    assert all(each.annotation is not inspect.Parameter.empty for each in parameters.values())
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_keyword_that_is_none_is_refused_by_the_functions_own_name(function: Any) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'epsilom'"):
        function([1.0], epsilom=1.0)


@pytest.mark.parametrize("name", WITHOUT_DELTA)
def test_where_no_delta_helps_none_is_taken(name: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'delta'"):
        getattr(statistics, name)([1.0], delta=1e-6)


def test_a_label_is_the_functions_own_unless_another_is_given() -> None:
    assert statistics.median([1.0], (0, 2), epsilon=1.0, rng=1).label == "median"
    assert statistics.binary_mean([1.0], epsilon=1.0, rng=1, label="share").label == "share"


def test_type_checkers_know_answers_and_keywords() -> None:
    assert_type(statistics.mean([0.5], (0, 1), epsilon=1.0, rng=1), Release[float])
    with pytest.raises(TypeError):
        statistics.mean([0.5], (0, 1), epsilom=1.0)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="epsilon"):
        statistics.mean([0.5], (0, 1), epsilon="much")  # type: ignore[arg-type]
