"""Arguments as other libraries call them, answered with what to write here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

__all__ = ["BUDGETS", "answer_arguments", "answer_other_names", "refuse_other_names"]

Call = TypeVar("Call", bound=Callable[..., Any])
Estimator = TypeVar("Estimator", bound=type)

BUDGETS = {"eps": "write epsilon=", "target_delta": "write delta=", "target_epsilon": "write epsilon="}
OTHER_NAMES = BUDGETS | {
    "C": "write regularization=, which is about 1/(C * n) for n records, or leave it out",
    "alpha": "write regularization=, or leave it out",
    "accountant": "give the book when you fit: fit(X, y, book=book)",
    "book": "give the book when you fit: fit(X, y, book=book)",
    "class_weight": "all records weigh the same, because a weight would multiply what one record can do: leave it out, "
    "and move the threshold of the predicted probabilities instead",
    "data_norm": "write feature_norm=",
    "max_iter": "how often records are read is part of the price: write solver_options={...}, or leave it out",
    "n_jobs": "leave it out",
    "penalty": "write regularization=, and Ridge or Lasso for a penalty of their kind",
    "tol": "leave it out: when to stop must not depend on the records",
}


def answer_other_names(cls: Estimator) -> Estimator:
    """An estimator whose constructor answers an argument of another library with the one to write here.

    Above ``@dataclass``, which writes the constructor.
    """
    init = vars(cls)["__init__"]
    known = set(inspect.signature(init).parameters)

    @wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        refuse_other_names(type(self).__name__, given.keys() - known, OTHER_NAMES)
        init(self, *args, **given)

    setattr(cls, "__init__", checked)  # noqa: B010 - of a class that type checkers do not know
    return cls


def answer_arguments(names: Mapping[str, str]) -> Callable[[Call], Call]:
    """Let a function answer an argument of another library with the one to write here.

    >>> @answer_arguments({"target_epsilon": "write epsilon="})
    ... def train(epsilon): ...
    >>> train(target_epsilon=1.0)
    Traceback (most recent call last):
    ...
    TypeError: train has no argument target_epsilon=: write epsilon=.
    """

    def decorate(function: Call) -> Call:
        known = set(inspect.signature(function).parameters)

        @wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            refuse_other_names(function.__name__, given.keys() - known, names)
            return function(*args, **given)

        return checked  # type: ignore[return-value]

    return decorate


def refuse_other_names(who: str, unknown: Iterable[str], names: Mapping[str, str]) -> None:
    """Refuse the arguments of other libraries among those that ``who`` does not know, with what to write."""
    for name in unknown:
        if name in names:
            raise TypeError(f"{who} has no argument {name}=: {names[name]}.")
