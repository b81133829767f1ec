"""Arguments as other libraries call them, answered with what to write here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["KnowsOtherNames"]

OTHER_NAMES = {
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
    "target_delta": "write delta=",
    "target_epsilon": "write epsilon=",
    "tol": "leave it out: when to stop must not depend on the records",
}


class KnowsOtherNames:
    """Base of estimators whose constructors answer an argument of another library with the one to write here."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _answering(cls.__init__)  # type: ignore[method-assign]


def _answering(init: Callable[..., None]) -> Callable[..., None]:
    known = set(inspect.signature(init).parameters)

    @wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given.keys() - known:
            if name in OTHER_NAMES:
                raise TypeError(f"{type(self).__name__} has no argument {name}=: {OTHER_NAMES[name]}.")
        init(self, *args, **given)

    return checked
