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
from discreet.workloads.constrained_inference import Constraints

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


# --- accounting, ledger, encoding, cli -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Add", "both", "", None, 1])
def test_a_mixture_of_an_unknown_kind_has_no_transform(kind: Any) -> None:
    from discreet.accounting.pld.mixtures import Mixtures

    with pytest.raises(ValueError, match="must be 'remove', 'add' or 'replace'"):
        Mixtures(kind, np.array([0.1]), np.array([1.0]), np.ones(1))


@pytest.mark.parametrize("below", [-1.0, -1, np.float32(-1), np.int64(-1), np.float16("nan"), np.array([-1.0])[0]])
def test_a_price_below_zero_is_refused_whatever_its_type(below: Any) -> None:
    from discreet import events
    from discreet.accounting.facts import Leaf, _checked_fact
    from discreet.adjacency import Adjacency
    from discreet.errors import NotCertified

    leaf = Leaf(events.PureDP(epsilon=1.0), Adjacency.ADD_REMOVE)
    for stated in (below, (1.0, below)):
        with pytest.raises(NotCertified, match="no bound"):
            _checked_fact(lambda *_: stated, leaf)  # noqa: B023


def test_a_sample_has_a_pair_only_where_one_is_proved() -> None:
    from discreet import events
    from discreet.accounting.leaves.samplers import _poisson_pair
    from discreet.adjacency import Adjacency
    from discreet.errors import UnsupportedAdjacency

    event = events.PoissonSampled(rate=0.1, event=events.Gaussian(noise_multiplier=1.0))
    assert _poisson_pair(event, Adjacency.ZERO_OUT) == _poisson_pair(event, Adjacency.REPLACE)
    with pytest.raises(UnsupportedAdjacency, match="no pair of a sample is known there"):
        _poisson_pair(event, unknown("swap"))


def test_two_changes_are_counted_only_between_relations_for_which_that_is_known(monkeypatch: Any) -> None:
    from discreet import events
    from discreet.accounting import neighbours
    from discreet.adjacency import Adjacency
    from discreet.errors import UnsupportedAdjacency

    leaf = events.Laplace(noise_multiplier=1.0)
    assert neighbours.restate(leaf, 1, Adjacency.REPLACE, 1).ideal
    monkeypatch.setattr(neighbours, "_TWO_CHANGES", set())  # as if one of the two had been added today
    with pytest.raises(UnsupportedAdjacency, match="how many changes"):
        neighbours.restate(leaf, 1, Adjacency.REPLACE, 1)


def test_a_kind_of_entry_or_of_unit_that_no_ledger_writes_is_refused() -> None:
    from discreet import events
    from discreet.ledger import ChainBroken, Ledger
    from discreet.ledger.snapshot import _History
    from discreet.ledger.units import Charged

    book = Ledger("sqlite://").open("census", epsilon=1.0)
    entry = book.charge(events.PureDP(epsilon=0.1))
    history = object.__new__(_History)
    history.entries = []
    with pytest.raises(ChainBroken, match="'gift', which no ledger writes"):
        history.add(dataclasses.replace(entry, kind="gift"), 1)
    with pytest.raises(ValueError, match="by is 'rumour', but must be"):
        str(Charged("person", "rumour"))


@pytest.mark.parametrize("kind", ["dates", "Time", None])
def test_a_moment_that_is_stored_in_an_unknown_way_is_not_read(kind: Any) -> None:
    from discreet.encoding.duckdb import DuckDB

    with pytest.raises(ValueError, match="must be 'date', 'time', 'zoned' or 'text'"):
        object.__new__(DuckDB).seconds("at", kind)


def test_a_column_of_an_unknown_kind_is_not_read() -> None:
    from discreet.encoding.duckdb import DuckDB
    from discreet.encoding.encoder import _entries
    from discreet.encoding.sources import _cast
    from discreet.schema import Bounded, Unlisted

    with pytest.raises(ValueError, match="'integer', 'text' and 'number'"):
        _cast(object.__new__(DuckDB), "x", unknown("complex"), None, Bounded(0, 1), False)
    with pytest.raises(ValueError, match="not read from a mapping"):
        _entries(["a"], Unlisted())


def test_a_declared_column_is_a_feature_by_its_kind_or_none(monkeypatch: Any) -> None:
    from discreet.encoding import Design
    from discreet.schema import Bounded, Categories, Declaration, Schema, Unlisted

    design = Design(Declaration(Schema(age=Bounded(0, 9), sick=Categories(["no", "yes"]))), "sick")
    rows = design.encoder.read({"age": [1], "sick": ["no"]})
    monkeypatch.setattr(Design, "features", property(lambda self: {"age": Unlisted()}))
    with pytest.raises(ValueError, match="Unlisted, which is no feature"):
        design.matrix(rows)


def test_a_model_s_file_says_dates_as_dates() -> None:
    """They were written as unlisted columns: whatever was neither bounded nor listed was."""
    from discreet.linear.saved import as_schema_facts
    from discreet.schema import Bounded, Dates, Declaration, Schema, Times, declaration

    facts = Declaration(
        Schema(day=Dates("2020-01-01", "2021-01-01"), at=Times("2020-01-01 08:00", "2020-01-02"), age=Bounded(0, 9))
    )
    assert declaration(as_schema_facts(facts)).schema == facts.schema
    with pytest.raises(ValueError, match="which no schema file says"):
        as_schema_facts(unknown(dataclasses.replace(facts, schema={"x": object()})))


@pytest.mark.parametrize("number", [12345, np.int64(12345), np.int32(12345), 12345.0, np.float32(12345)])
def test_numpy_s_numbers_are_shown_as_numbers(number: Any) -> None:
    from discreet.cli.answers import cell

    assert cell(number) == "12,345"
    assert cell(np.float32(0.5)) == "0.5"
    assert cell(True) == "True"


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
