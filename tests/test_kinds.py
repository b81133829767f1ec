"""Nothing answers by default: a kind that nobody wrote a rule for is refused wherever rules are chosen by kind."""

from __future__ import annotations

import dataclasses
import textwrap
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


def test_a_noise_or_a_method_that_was_let_in_without_a_rule_is_refused() -> None:
    """A budget of a new noise gave Gaussian noise, a tree its own rows, and a running count of a new method a tree."""
    from discreet.mechanisms import Budget
    from discreet.statistics import RunningCount
    from discreet.workloads.trees import Hierarchy

    budget = _holding(Budget, epsilon=1.0, delta=1e-6, rho=None, noise="staircase")
    for ask in (lambda: budget.gaussian, lambda: budget.additive(1), lambda: budget.shares(["additive"])):
        with pytest.raises(ValueError, match="noise is 'staircase', but must be"):
            ask()
    with pytest.raises(ValueError, match="noise is 'staircase', but must be"):
        Hierarchy(4, (2, 2), (1, 1)).for_noise("staircase")
    count = RunningCount(periods=8, rho=0.5)
    object.__setattr__(count, "method", "wavelet")
    with pytest.raises(ValueError, match="method is 'wavelet', but must be"):
        _ = count._rooted


def test_answers_are_frames_of_a_kind_that_is_known() -> None:
    from discreet.encoding.sources import Source

    assert Source(None, None, "x", "pandas").pandas  # type: ignore[arg-type]
    assert not Source(None, None, "x").pandas  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="answers is 'modin', but must be 'pandas' or 'polars'"):
        _ = Source(None, None, "x", unknown("modin")).pandas  # type: ignore[arg-type]


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
    from discreet.linear.solvers.dp_cd import CoordinateDescent, _CoordinateDescentRun

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


# --- neighbours, moments, clipping: a kind that was let in, and that the rule behind does not know -------------------


def _holding(kind: Any, **fields: Any) -> Any:
    """An object of which only these fields are set, as if a constructor had let them in."""
    made = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _swap_problem() -> Any:
    from discreet.linear.problem import Problem

    return _holding(Problem, adjacency="swap").changes


def _swap_estimator() -> Any:
    from discreet.estimators.base import BoundedEstimator

    return object.__new__(type("Swapping", (BoundedEstimator,), {"_adjacency": "swap", "_plan": None}))._movement


def _swap_histogram() -> Any:
    from discreet.mechanisms import StabilityHistogram

    return _holding(StabilityHistogram, adjacency="swap").scale


def _swap_mode_error() -> Any:
    from discreet.mechanisms import StableMode

    return _holding(StableMode, adjacency="swap")._lead_per_change


def _swap_mode_distance() -> Any:
    from discreet.mechanisms import StableMode

    return _holding(StableMode, adjacency="swap")._distance([("a", 9), ("b", 1)])


def _swap_ballots() -> Any:
    from discreet.mechanisms import Budget
    from discreet.pate.ballots import Ballots

    return _holding(Ballots, adjacency="swap", steps=1, questions=1, options=2, budget=Budget(1.0)).mechanism


def _swap_ranks() -> Any:
    from discreet.statistics.ranks import RankChoice

    return RankChoice(1, 0, 9, 1.0, unknown("swap")).sensitivity


def _swap_strategy() -> Any:
    return STRATEGIES[0].sensitivity("l2", unknown("swap"))


def _swap_statistic() -> Any:
    from discreet.statistics import Count

    return _holding(Count, adjacency="swap")._replace


def _swap_participation() -> Any:
    pytest.importorskip("torch")
    from discreet.training.sampling.participation import PoissonSampling

    return type("Swapping", (PoissonSampling,), {"adjacency": "swap"})(0.1).movement


def _swap_synthesis(measured: bool) -> Any:
    from types import SimpleNamespace

    from discreet.synthesis.plan import SynthesisPlan
    from discreet.synthesis.spending import Spending

    if measured:
        return _holding(Spending, adjacency="swap")._replaced
    plan = _holding(SynthesisPlan, adjacency="swap", domain=SimpleNamespace(sizes=[2]))
    return plan._expected_error((0,), 1.0)


def _swap_solver(part: str) -> Any:
    from discreet.events import PureDP
    from discreet.linear.problem import Problem
    from discreet.linear.solvers.gd import GradientDescent
    from discreet.linear.solvers.objective import ObjectivePerturbation

    problem = _holding(Problem, adjacency="swap", epsilon=1.0, delta=1e-6)
    ask: dict[str, Any] = {
        "descent": lambda: _holding(GradientDescent, problem=problem)._under_its_adjacency(PureDP(epsilon=1.0)),
        "objective": lambda: _holding(ObjectivePerturbation, problem=problem)._budget,
    }
    return ask[part]()


def _swap_quality(figure: str | None) -> Any:
    from discreet.schema import Categories, Schema
    from discreet.synthesis.quality_check import QualityCheck

    check: Any = QualityCheck(
        synthetic={"sick": ["no", "yes"]}, schema=Schema(sick=Categories(["no", "yes"])), n=2, epsilon=1.0
    )
    check.__dict__.pop("entries", None)
    object.__setattr__(check, "adjacency", "swap")
    return check.entries if figure is None else check._exact(check.public, figure)


SWAPS = {
    "linear problem": _swap_problem,
    "estimator": _swap_estimator,
    "stability histogram": _swap_histogram,
    "stable mode, its error": _swap_mode_error,
    "stable mode, its distance": _swap_mode_distance,
    "ballots": _swap_ballots,
    "ranks": _swap_ranks,
    "strategy": _swap_strategy,
    "statistic": _swap_statistic,
    "participation in training": _swap_participation,
    "synthesis, its plan": lambda: _swap_synthesis(measured=False),
    "synthesis, its noise": lambda: _swap_synthesis(measured=True),
    "solver, its steps": lambda: _swap_solver("descent"),
    "solver, its tilt": lambda: _swap_solver("objective"),
    "quality check, what a row moves": lambda: _swap_quality(None),
    "quality check, its figures": lambda: _swap_quality("1-way"),
}


@pytest.mark.parametrize("ask", SWAPS.values(), ids=SWAPS)
def test_a_relation_of_neighbours_without_a_rule_has_no_sensitivity(ask: Any) -> None:
    """Each of them took whatever is not 'replace' for 'add-remove', or the other way round."""
    with pytest.raises(ValueError, match="swap"):
        ask()


def test_a_strategy_s_sensitivity_takes_a_relation_by_its_name() -> None:
    """``"replace"`` is the same as ``Adjacency.REPLACE``; by identity it was taken for add-remove, which is less."""
    from discreet.adjacency import Adjacency

    for strategy in STRATEGIES:
        named = strategy.sensitivity("l2", unknown("replace"))
        assert named == strategy.sensitivity("l2", Adjacency.REPLACE)


def test_no_engine_reads_a_moment_of_an_unknown_kind() -> None:
    from discreet.encoding.duckdb import DuckDB
    from discreet.encoding.spark import Spark

    for engine in (DuckDB, Spark):
        with pytest.raises(ValueError, match="must be 'date', 'time', 'zoned' or 'text'"):
            _holding(engine).microseconds("at", "dates")


def test_a_sign_without_a_rule_is_no_comparison() -> None:
    from types import SimpleNamespace

    import sqlglot

    from discreet.tables.conditions import Compare
    from discreet.tables.nodes import Column, Number
    from discreet.tables.possible_groups import _ends
    from discreet.tables.where import Reader

    reader: Any = SimpleNamespace(node=lambda node: Column("age"))
    with pytest.raises(ValueError, match="is not supported"):
        Reader._read_operator(reader, sqlglot.parse_one("age ^ age"))
    compared = Compare("<", Column("age"), Number(3.0))
    object.__setattr__(compared, "sign", "~=")
    with pytest.raises(ValueError, match="no bounds of a column are known"):
        _ends(compared, "age", whole=False)


def test_a_row_is_hashed_by_its_kind() -> None:
    from discreet.encoding.duckdb import DuckDB
    from discreet.tables.bounding import _whole

    with pytest.raises(ValueError, match="must be 'text', 'integer' or 'number'"):
        _whole(_holding(DuckDB), "x", unknown("complex"))


@pytest.mark.parametrize("ask", ["_greedy", "noise_multiplier", "_reach"])
def test_coordinates_are_picked_and_clipped_by_known_rules(ask: str) -> None:
    from discreet.linear.solvers.dp_cd import CoordinateDescent

    plan = _holding(CoordinateDescent, sampling="leverage", clipping="median", problem=None, _measure=None)
    with pytest.raises(ValueError, match=r"leverage|median"):
        getattr(plan, ask)


def test_neighbours_are_made_up_only_where_that_is_known() -> None:
    import datetime as dt

    from discreet.auditing.made_up import _ends, made_up_statistic
    from discreet.schema import Dates, Unlisted

    with pytest.raises(ValueError, match="zero-out"):
        made_up_statistic("count", {"epsilon": 1.0, "adjacency": "zero-out"})
    with pytest.raises(ValueError, match="no values are made up"):
        _ends(unknown(object()))
    assert _ends(Unlisted()) == ("a", "b")
    low, high = _ends(Dates("2020-01-01", "2021-01-01"))  # it was 'a' and 'b', which are no dates
    assert isinstance(low, dt.date)
    assert low < high


# --- numbers of NumPy are numbers ------------------------------------------------------------------------------------


def test_a_number_of_bins_or_of_attributes_may_be_numpys() -> None:
    import polars as pl

    import discreet as dp

    frame = pl.DataFrame({"income": [float(i) for i in range(200)]})
    people = dp.table(frame, schema=dp.Schema(income=dp.Bounded(0, 200)))
    query: Any = people.histogram("income", bins=unknown(np.int64(4)))
    assert len(query.release(epsilon=1.0).value["income_histogram"][0]) == 4
    query = people.median("income", bins=unknown(np.int64(64)))
    assert 0 <= query.release(epsilon=1.0).value["income_median"][0] <= 200
    assert Marginals((2, 3), np.int64(1)).of == Marginals((2, 3), 1).of
    with pytest.raises(ValueError, match=r"of is 1\.5"):
        Marginals((2, 3), 1.5)
    with pytest.raises(ValueError, match=r"bins is 2\.5"):
        people.histogram("income", bins=unknown(2.5)).release(epsilon=1.0)


def test_a_target_of_a_kind_that_is_no_target_is_refused_by_its_name() -> None:
    from discreet.encoding import Design
    from discreet.schema import Bounded, Dates, Declaration, Schema

    with pytest.raises(ValueError, match="which is dates, but must be bounded or have"):
        Design(Declaration(Schema(age=Bounded(0, 9), born=Dates("2020-01-01", "2021-01-01"))), "born")


def test_ranks_compare_all_numbers_of_their_optimizers() -> None:
    """A learning rate that is a tensor, or NumPy's, was passed over."""
    import torch

    from discreet.training.distributed import Ranks, options

    def numbers(lr: Any) -> int:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        optimizer.param_groups[0]["lr"] = lr
        return options(optimizer, Ranks(0, 2))

    for kind in (float, torch.tensor, np.float32, np.float64):
        assert numbers(kind(0.25)) == numbers(0.25) != numbers(kind(0.5))


def test_a_number_of_numpys_that_a_model_keeps_is_part_of_its_state() -> None:
    import torch

    from discreet.training.gradients.state import State

    model: Any = torch.nn.Linear(2, 1)
    model.seen = np.float32(1.0)
    before = State(model)
    model.seen = np.float32(2.0)
    assert before.changed_now() == ["seen"]
    before.restore()
    assert model.seen == 1.0
    assert before.changed_now() == []


# --- a node, an aggregate, a role, a column that was added today -----------------------------------------------------


def test_an_expression_s_node_without_rules_is_refused_by_each_rule() -> None:
    """A new kind of node was a whole number to the one rule and never missing to the other."""
    from discreet.schema import Schema
    from discreet.tables.missing_groups import _may_be_missing
    from discreet.tables.nodes import Node, Number
    from discreet.tables.resolve import _fit_to_types, _may_be_decimal

    @dataclasses.dataclass(frozen=True, slots=True)
    class Median(Node):
        inner: Node

    for rule in (_may_be_missing, _may_be_decimal, lambda node: _fit_to_types(node, Schema(), ())):
        with pytest.raises(ValueError, match="Median"):
            rule(Median(Number(0.5)))


def test_a_desk_knows_the_size_of_an_answer_or_refuses_it() -> None:
    from discreet.desk.questions import _numbers_of
    from discreet.tables.aggregates import Aggregate, Count
    from discreet.tables.binned import Quantiles

    assert _numbers_of(Count()) == 1
    assert _numbers_of(Quantiles("age", (0.25, 0.5))) == 2
    with pytest.raises(ValueError, match="Spread"):
        _numbers_of(object.__new__(type("Spread", (Aggregate,), dict.fromkeys(Aggregate.__abstractmethods__))))


@pytest.mark.parametrize("role", ["auditor", "Analyst", "", None])
def test_whoever_has_no_role_of_a_desk_is_nobody_there(role: Any) -> None:
    """What is not 'analyst' saw every data set, and what is not 'officer' might ask."""
    from discreet.desk.state import Person

    with pytest.raises(ValueError, match="must be 'analyst', 'owner' or 'officer'"):
        Person("ada", role)


def test_values_are_made_up_of_known_declarations() -> None:
    import random

    from discreet.auditing.made_up import _edges
    from discreet.desk.public_tables import _made_up
    from discreet.schema import Unlisted

    assert str(_made_up(Unlisted(), "text", random.Random(0))).startswith("value")
    with pytest.raises(ValueError, match="is declared as object"):
        _made_up(unknown(object()), "number", random.Random(0))
    with pytest.raises(ValueError, match="running_count states no bounds"):
        _edges("running_count", {"epsilon": 1.0})


def test_an_engine_s_columns_are_texts_and_doubles() -> None:
    import pyarrow as pa

    from discreet.encoding.encoder import _array

    with pytest.raises(ValueError, match="type int64"):
        _array(pa.chunked_array([[1, 2]]))


def test_a_law_or_an_alternative_without_a_rule_is_refused() -> None:
    from discreet.accounting.selection import runs_of
    from discreet.events import PureDP, Selected
    from discreet.inference import Proportion, Welch

    assert runs_of(Selected(event=PureDP(epsilon=1.0), mean=10, law=0.5)).shape == 0.5
    selected = Selected(event=PureDP(epsilon=1.0), mean=10)
    object.__setattr__(selected, "law", "binomial")
    with pytest.raises(ValueError, match="must be 'logarithmic', 'geometric' or 'poisson'"):
        runs_of(selected)
    test = Welch(bounds=(0, 1), epsilon=1.0)
    object.__setattr__(test, "alternative", "larger")
    with pytest.raises(ValueError, match="larger"):
        test._toward(0.1)
    exact = Proportion(null=0.5, n=100, epsilon=1.0, adjacency="replace")
    object.__setattr__(exact, "alternative", "larger")
    with pytest.raises(ValueError, match="larger"):
        exact.power(effect=0.1)


def test_a_list_or_a_public_table_of_numpy_s_numbers_is_one_of_numbers() -> None:
    """A column of NumPy's numbers was left out of a look-up without a word, and a listed one was no whole number."""
    from discreet.tables import col
    from discreet.tables.lookups import PublicTable
    from discreet.tables.nodes import Column
    from discreet.tables.whole_values import is_whole

    table = PublicTable.of(
        {"town": np.array([1, 2]), "size": np.array([10, 20], np.int32), "rate": [np.float32(0.5)] * 2}
    )
    assert set(table.lookups("town", Column("town"))) == {"size", "rate"}
    assert is_whole(col("x").among([np.int64(1), np.int8(2)], np.int64(0)).node, lambda _: True)


def test_no_branch_answers_by_default_but_where_a_reason_is_written_down() -> None:
    """The whole source, read for the forms in which a last branch computes; and the reading finds one that is made."""
    from checks.defaults import REASONS, findings, survey

    reasons = [place for places in REASONS.values() for place in places]
    assert len(set(reasons)) == len(reasons)
    assert survey().keys() <= set(reasons)
    for last in ("return 2", "raise ValueError(kind)"):
        for source in (
            f"if kind == 'exp':\n    return 1\n{last}",
            f"if kind == 'exp':\n    x = 1\nelse:\n    {last}",
            f"match kind:\n    case 'exp':\n        return 1\n    case _:\n        {last}",
            f"match kind:\n    case 'exp':\n        return 1\n{last}",
        ):
            found = findings("def f(kind):\n" + textwrap.indent(source, "    "))
            assert [name for name, _, _ in found] == (["f"] if last == "return 2" else [])
    for source in (
        "RULES.get(kind, log)",
        "isinstance(x, (int, float))",
        "1 if kind == 'exp' else 2",
        "kind is Adjacency.REPLACE",
    ):
        assert findings(f"def f(kind):\n    return {source}")
