"""Arguments as other libraries call them, answered with what to write here."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any, TypeVar

__all__ = ["answer_other_names"]

Estimator = TypeVar("Estimator", bound=type)

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


def answer_other_names(cls: Estimator) -> Estimator:
    """An estimator whose constructor answers an argument of another library with the one to write here.

    Above ``@dataclass``, which writes the constructor.
    """
    init = vars(cls)["__init__"]
    known = set(inspect.signature(init).parameters)

    @wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given.keys() - known:
            if name in OTHER_NAMES:
                raise TypeError(f"{type(self).__name__} has no argument {name}=: {OTHER_NAMES[name]}.")
        init(self, *args, **given)

    setattr(cls, "__init__", checked)  # noqa: B010 - of a class that type checkers do not know
    return cls
