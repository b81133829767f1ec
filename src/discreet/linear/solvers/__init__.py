"""One solver a file, and the table of which is proved for which loss.

A solver is a frozen value made from a ``Problem``: it states its ``event`` from public facts, and ``solve`` reads
records. Its mechanisms are calibrated when first asked for, once (which is why solvers have no slots).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from discreet.events import Event
    from discreet.linear.problem import Problem, Solution
    from discreet.linear.rows import Records
    from discreet.random import Rng

__all__ = ["NAMES", "PROVED", "Solver", "choose", "make"]


class Solver(Protocol):
    """Minimises a ``Problem`` privately; made from public facts, of which the cost is one."""

    @property
    def event(self) -> Event:
        """The cost."""
        ...

    def solve(self, records: Records, rng: Rng) -> Solution:
        """Read the records, and give private weights."""
        ...


_HOMES = {  # the file and the class of each
    "output": ("output", "OutputPerturbation"),
    "objective": ("objective", "ObjectivePerturbation"),
    "gd": ("gd", "GradientDescent"),
    "sgd": ("sgd", "StochasticGradientDescent"),
    "svrg": ("svrg", "VarianceReduced"),
    "cd": ("dp_cd", "CoordinateDescent"),
    "statistics": ("statistics", "SufficientStatistics"),
}
NAMES = tuple(_HOMES)

_ANY = frozenset({"gd", "sgd", "svrg", "cd"})
PROVED: dict[str, frozenset[str]] = {
    "logistic": _ANY | {"output", "objective"},
    "softmax": frozenset({"gd", "sgd", "svrg", "output", "objective"}),
    "huber hinge": _ANY | {"output", "objective"},
    "one-versus-rest huber hinge": frozenset({"gd", "sgd", "svrg"}),
    "squared": _ANY | {"statistics"},
    "custom": _ANY,
}
"""Which solvers are proved for which loss; all others are refused, with the reason."""

_WHY = {
    "output": "output perturbation needs a gradient that the loss itself bounds",
    "objective": "objective perturbation needs a gradient and a curvature that the loss itself bounds",
    "cd": "coordinate descent is written for one score a record",
    "statistics": "sufficient statistics exist for the squared loss only",
}
_NOT_SMOOTH = (
    "an L1 penalty is not smooth, and perturbation of the minimiser is proved for smooth strongly convex objectives"
)


def make(name: str, problem: Problem, options: dict[str, Any]) -> Solver:
    """The solver of that name, or a refusal that says why it is not proved for this loss."""
    if name not in _HOMES:
        raise ValueError(f"solver is {name!r}, but must be 'auto' or one of {', '.join(map(repr, NAMES))}.")
    proved = PROVED[problem.loss.name]
    reason = (
        _WHY[name] if name not in proved else (_NOT_SMOOTH if problem.l1 and name in ("output", "objective") else "")
    )
    if problem.delta == 0 and name in ("sgd", "svrg", "cd"):
        reason = "its noise is Gaussian, which needs a delta above 0"
    if reason:
        fit = sorted(proved - ({"output", "objective"} if problem.l1 else set()))
        raise ValueError(
            f"solver is {name!r}, but it has no guarantee here (loss {problem.loss.name!r}, delta "
            f"{problem.delta:g}): {reason}. Use one of {', '.join(map(repr, fit))}."
        )
    file, kind = _HOMES[name]
    solver = getattr(importlib.import_module(f"discreet.linear.solvers.{file}"), kind)
    known = set(solver.__dataclass_fields__) - {"problem"}
    if unknown := sorted(set(options) - known):
        raise ValueError(
            f"solver_options has {unknown[0]!r}, but solver {name!r} takes {', '.join(sorted(known)) or 'none'}."
        )
    made: Solver = solver(problem=problem, **options)
    return made


def choose(problem: Problem) -> tuple[str, str]:
    """The solver for public facts, and why: the loss, delta, the penalty and the number of features decide."""
    loss, features = problem.loss.name, problem.features
    if loss == "squared" and features <= 500 and (problem.l1 or problem.delta == 0):
        return "statistics", (
            f"squared loss with {features} columns and "
            + ("an L1 penalty" if problem.l1 else "delta 0")
            + ": one release of the sufficient statistics solves it"
        )
    if problem.delta == 0 and loss in ("logistic", "softmax", "huber hinge") and not problem.l1:
        return "objective", "delta is 0: objective perturbation is the strongest pure method for a smooth loss"
    return "gd", (
        "full gradients with Gaussian noise compose without loss, need no sampling, and take any loss"
        if problem.delta > 0
        else "delta is 0 and no other pure solver takes this loss"
    )
