"""scikit-learn's own contract over private estimators: every check holds, or is a promise of privacy with its reason.

A check that must fail passes as a test by failing, and fails by passing: no reason outlives its cause. Where the check
only lacks a public fact that estimators are told here and never read off the data (the classes, the number of columns),
it must also hold once that fact is ``declared``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator


@dataclass(frozen=True)
class Refused:
    """Why a check must fail and, where it lacks a public fact, with which parameters it holds."""

    why: str
    declared: dict[str, Any] = field(default_factory=dict)


OBJECTS = Refused("an error on an entry that is no number would tell that there is one: its record is ignored")
EMPTY = Refused("an error on empty data would tell that the data are empty")
NAN_TARGETS = Refused("an error on a target that is not finite would tell that there is one: it is ignored")
OTHER_LABELS = Refused("an error on labels outside the declared ones would tell of them")
TEXT_LABELS = Refused("it fits text and numbers by turns; the classes are declared, and (0, 1, 2) are")
TWO_OF_THREE = Refused("it fits two classes and three by turns and expects as many scores; three are declared")
FOUR_CLASSES = Refused("it fits four labels, of which three are declared", {"classes": (0, 1, 2, 3)})
TWO_CLASSES = Refused("it expects one score a record, which is the shape of two classes", {"classes": (0, 1)})


def list_of(columns: int) -> Refused:
    """For checks that fit a list, of so many columns."""
    return Refused("it fits a list, which does not say how many columns it has", {"bounds": (-6.0, [6.0] * columns)})


def contract(estimators: Iterable[Any], refused: Callable[[Any], dict[str, Refused]]) -> Any:
    """Every check on every estimator, with the reason for which it must fail, if there is one."""
    cases = []
    for estimator in estimators:
        reasons, kind, names = refused(estimator), type(estimator).__name__, set()
        for made, check in estimator_checks_generator(estimator, mark=None):
            names.add(name := check.func.__name__)
            cases.append(pytest.param(made, check, reasons.get(name), id=f"{kind}-{name}"))
        assert reasons.keys() <= names, f"{kind} has no such checks: {', '.join(reasons.keys() - names)}"
    return pytest.mark.parametrize(("estimator", "check", "reason"), cases)


def holds(estimator: Any, check: Any, reason: Refused | None) -> None:
    """The check holds; or it fails, as it must, and holds with what is declared."""
    try:
        if reason is None:
            check(estimator)
            return
        failed = _fails(estimator, check)
        if reason.declared:
            check(clone(estimator).set_params(**reason.declared))
    except SkipTest as said:
        pytest.skip(str(said))
    assert failed, f"The check holds, so that its reason is none: {reason.why}"


def _fails(estimator: Any, check: Any) -> bool:
    try:
        check(estimator)
    except SkipTest:
        raise
    except Exception:
        return True
    return False
