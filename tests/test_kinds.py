"""Nothing answers by default: a kind that nobody wrote a rule for is refused wherever rules are chosen by kind."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from discreet.auditing._distance import between
from discreet.errors import choice
from discreet.linear import fused, kernels
from discreet.linear.solvers import _WHY, NAMES, PROVED
from discreet.mechanisms.factorization import Banded, Workload
from discreet.mechanisms.factorization.strategy import step_weights
from discreet.synthesis.frames import as_frame
from discreet.workloads import AllRanges, Identity, Marginals, Prefix, four_queries, hierarchy, optimise
from discreet.workloads.inference import Constraints

WORKLOADS = [AllRanges(8), Prefix(8), Identity(8), four_queries(), Marginals((2, 3), 1)]
STRATEGIES = [optimise(workload, noise=noise) for workload in WORKLOADS for noise in ("gaussian", "laplace")]


def unknown(value: Any) -> Any:
    """What type checkers would refuse, and people write."""
    return value


@pytest.mark.parametrize("norm", ["L1", "l3", "", None, 1])
@pytest.mark.parametrize("matrix", [*WORKLOADS, *STRATEGIES, hierarchy(AllRanges(8))], ids=lambda m: type(m).__name__)
def test_a_sensitivity_is_never_taken_in_another_norm(matrix: Any, norm: Any) -> None:
    with pytest.raises(ValueError, match="must be 'l1' or 'l2'"):
        matrix.column_norm(norm)
    if hasattr(matrix, "difference_norm"):
        with pytest.raises(ValueError, match="must be 'l1' or 'l2'"):
            matrix.difference_norm(norm)


@pytest.mark.parametrize("noise", ["gauss", "Laplace", None])
def test_an_unknown_noise_has_no_best_strategy(noise: Any) -> None:
    for workload in WORKLOADS:
        with pytest.raises(ValueError, match="'gaussian' or 'laplace'"):
            optimise(workload, noise=noise)


def test_an_unknown_measure_of_error_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 'mean' or 'max'"):
        step_weights(8, unknown("median"))
    with pytest.raises(ValueError, match="must be 'mean' or 'max'"):
        Banded.optimised(Workload(8), 2, unknown("median"))
    with pytest.raises(ValueError, match="must be 'mean' or 'max'"):
        Banded.optimised(Workload(8), 2).error(Workload(8), unknown("median"))


def test_a_kind_of_loss_without_a_kernel_is_refused() -> None:
    column, rows = np.ones(3), np.ones((3, 2))
    for kind in (-1, 4):
        with pytest.raises(ValueError, match="no kernel"):
            kernels.column_sum(kind, column, column.copy(), column, 0.5, 1.0)
        with pytest.raises(ValueError, match="no kernel"):
            kernels.inside_count(kind, column, column, column, 0.5, 1.0)
    with pytest.raises(ValueError, match="no kernel"):  # residuals must be given for it, and here they are not
        fused.gradient_sum(kernels.CUSTOM, rows, fused.lengths(rows), column, np.zeros(2), 0.5, 1.0)


def test_every_solver_that_is_not_proved_for_a_loss_has_its_reason() -> None:
    for proved in PROVED.values():
        assert set(NAMES) - proved <= set(_WHY)


def test_other_kinds() -> None:
    with pytest.raises(ValueError, match="'increasing' or 'decreasing'"):
        Constraints(monotone=unknown("rising"))
    with pytest.raises(ValueError, match="must be 'polars' or 'pyarrow'"):
        as_frame(unknown("modin"), {"a": np.array([1.0])})
    with pytest.raises(ValueError, match="must be 'hamming', 'linf', 'l1' or 'l2'"):
        between([1.0], [2.0], unknown("L2"))


def test_choice_takes_words_only() -> None:
    for odd in (None, 1, True, b"l1", ["l1"], float("nan")):
        with pytest.raises(ValueError, match="must be 'l1'"):
            choice("norm", odd, {"l1": 1})


def test_a_kind_that_is_let_in_without_a_rule_is_refused_by_each_rule() -> None:
    """What a new kind meets when its constructor knows it and the code behind does not."""
    from discreet.linear.solvers.cd import CoordinateDescent, _CoordinateDescentRun

    run = object.__new__(_CoordinateDescentRun)
    run.plan = plan = object.__new__(CoordinateDescent)
    for field in dataclasses.fields(CoordinateDescent):
        object.__setattr__(plan, field.name, None)
    object.__setattr__(plan, "sampling", "leverage")
    with pytest.raises(ValueError, match="leverage"):
        run._pick(np.zeros(2))


def test_a_kind_that_training_has_no_rule_for_is_refused() -> None:
    """Reductions, factors of clipping, ways to show progress; a new kind that a constructor let in, too."""
    torch = pytest.importorskip("torch")
    from discreet.training import Clipping, fit
    from discreet.training.gradients.clipped_sum import ClippedSum
    from discreet.training.gradients.contraction import Contraction

    weights = {"a": torch.zeros(2)}
    with pytest.raises(ValueError, match="must be 'mean', 'sum' or 'none'"):
        ClippedSum(weights, Clipping(), unknown("median"))
    clipping = Clipping()
    object.__setattr__(clipping, "factor", "normalised")
    with pytest.raises(ValueError, match="must be 'abadi' or 'automatic'"):
        clipping.terms(1.0)
    with pytest.raises(ValueError, match="must be 'abadi' or 'automatic'"):
        Contraction(weights, clipping)
    with pytest.raises(ValueError, match="must be True, False, 'local' or a function"):
        fit(torch.nn.Linear(2, 2), (torch.zeros(4, 2), torch.zeros(4).long()), progress=unknown("locally"))


def test_a_bag_of_words_that_is_neither_summed_nor_averaged_has_no_fast_rule() -> None:
    pytest.importorskip("torch")
    from types import SimpleNamespace

    from discreet.training.gradients.rules.layers import _embedding_bag

    for mode in ("max", "median"):
        given = {"input": None, "weight": None, "mode": mode}
        call: Any = SimpleNamespace(arguments=given, is_shared=lambda x: True)
        assert _embedding_bag(call) is None
