"""Audits: whole fits on worst-case neighbours never show more than epsilon,
and would show it if the noise were half.
"""

import numpy as np
import pytest

from discreet.auditing import epsilon_lower_bound
from discreet.linear import solvers
from discreet.linear.losses import HuberHinge, Logistic, Squared
from discreet.linear.problem import Problem
from discreet.linear.rows import Map
from discreet.random import seeded

FALSE_ALARM = 1e-6
TRIALS = 500
CASES = {
    "output, pure": ("output", Logistic(), 0.0, {}),
    "output": ("output", HuberHinge(0.5), 1e-5, {}),
    "objective, pure": ("objective", Logistic(), 0.0, {}),
    "objective": ("objective", HuberHinge(0.5), 1e-5, {}),
    "gd, pure": ("gd", Logistic(), 0.0, {"steps": 1}),
    "gd": ("gd", Logistic(), 1e-5, {"steps": 1}),
    "sgd": ("sgd", Logistic(), 1e-5, {"steps": 2, "rate": 0.5}),
    "svrg": ("svrg", Logistic(), 1e-5, {"rounds": 1, "inner": 1, "rate": 0.5}),
    "cd": ("cd", Squared(), 1e-5, {"updates": 2}),
    "cd, adaptive": ("cd", Logistic(), 1e-5, {"updates": 1, "clipping": "adaptive", "smoothness": (1.0,)}),
    "cd, greedy": ("cd", Logistic(), 1e-5, {"updates": 1, "sampling": "greedy", "smoothness": (1.0,)}),
    "statistics": ("statistics", Squared(), 1e-5, {}),
}


def audited(solver, loss, delta, options, epsilon, adjacency="add-remove"):
    """What hundreds of fits of one weight rule out, at the best of some thresholds: a record at the bound added,
    or flipped.
    """
    problem = Problem(
        loss=loss, epsilon=epsilon, delta=delta, square=1.0, features=1, regularization=0.5, size=1, adjacency=adjacency
    )
    plan, rng = solvers.make(solver, problem, options), seeded(5)
    ones = np.ones((1, 1))
    one = Map.from_bounds(1.0, None, 1, False).records(ones, np.array([1]))
    other = (
        one.take(np.arange(0))
        if adjacency == "add-remove"
        else Map.from_bounds(1.0, None, 1, False).records(ones, np.array([-1.0 if loss.name == "squared" else 0]))
    )
    found = [np.array([plan.solve(data, rng).weights[0, 0] for _ in range(TRIALS)]) for data in (other, one)]
    thresholds = np.quantile(np.concatenate(found), [0.25, 0.4, 0.5, 0.6, 0.75])
    return max(
        epsilon_lower_bound(
            tuple(int((side > t).sum()) for side in found), TRIALS, delta=delta, alarm=FALSE_ALARM / len(thresholds)
        )
        for t in thresholds
    )


@pytest.mark.parametrize("name", CASES)
def test_an_audit_on_worst_case_neighbours_stays_below_epsilon(name):
    assert audited(*CASES[name], epsilon=1.0) <= 1.0


@pytest.mark.parametrize("name", CASES)
def test_an_audit_under_replace_stays_below_epsilon(name):
    assert audited(*CASES[name], epsilon=1.0, adjacency="replace") <= 1.0


@pytest.mark.parametrize("name", ["output, pure", "objective, pure", "gd, pure", "gd", "cd"])
def test_the_same_audit_finds_too_little_noise(name):
    """Power: noise made for an epsilon of 12 is caught claiming 1."""
    assert audited(*CASES[name], epsilon=12.0) > 1.0
