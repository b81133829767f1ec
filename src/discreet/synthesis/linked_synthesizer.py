"""A synthesiser of two linked tables: parents, such as households, and their children, such as persons.

Decision 368.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from discreet.adjacency import Adjacency
from discreet.encoding import Encoder
from discreet.errors import whole
from discreet.events import Event
from discreet.habits import answer_other_names
from discreet.mechanisms.budget import Budget
from discreet.random import RngLike, Streams
from discreet.release import Chargeable, Enforced, Release, charged
from discreet.schema import Categories, Declaration, Schema, Unlisted, as_declaration
from discreet.synthesis.domain import Domain
from discreet.synthesis.frames import kind_of_frame
from discreet.synthesis.learning import Progress, rake_tables
from discreet.synthesis.linked_learning import learn_links
from discreet.synthesis.linked_model import LinkedModel
from discreet.synthesis.linked_plan import LinkedPlan, with_count
from discreet.synthesis.linked_rows import LinkedRows, link_rows
from discreet.synthesis.model import Model
from discreet.synthesis.table_synthesizer import TableSynthesizer

__all__ = ["LinkedFit", "LinkedSynthesizer"]

Facts: TypeAlias = Schema | Declaration | str | PathLike[str]
_MOST_CHILDREN = 255
_SETTINGS = ("bins", "structural_zeros", "dependencies", "whole", "dates", "constraints")


@answer_other_names
@dataclass(eq=False, repr=False)
class LinkedSynthesizer:
    r"""A model of a parent table and its child table, whose unit is the parent's key.

    Modelled are the parents' attributes with the number of children; those of a first child, given them; and those of
    each later child, given the parent, the number of children and one other child: the one before it where children
    have an ``order``, the first one where they have none. ``sample`` draws in that course, so that no child is
    without its parent, none is beyond ``max_children``, and children come in order.

    ``order`` names the children's column of numbers or dates that they are ordered by, such as the day of a visit: of
    it, the first one's value and the gap from one to the next are modelled. ``max_children`` is the declared cap: of a
    parent with more, the first ones count, by the order, or as they stand. ``parent`` and ``child`` hold what is
    publicly known of each table beside its schema, as ``TableSynthesizer`` takes it: ``bins``, ``structural_zeros``,
    ``dependencies``, ``whole``, ``dates``, ``constraints``. ``total`` is the number of parents, if it is public.

    Guarantee: (epsilon, delta) for one key with all its rows in both tables, however many; the event is one Gaussian
    release. A root's rows enter every count with whole weights whose sum is that of one record, so that they move it
    by no more than one record does (``linked_rows`` and ``spending`` have the proof).

    Reference: Cai, Xiao and Cormode (2023, PrivLava) and google/dpsynth.relational model the same links; the marginals
    are those of ``TableSynthesizer``.
    """

    epsilon: float = 1.0
    delta: float = 1e-9
    _: KW_ONLY
    max_children: int
    order: str | None = None
    workload: Any = None
    adjacency: str = "add-remove"
    max_cells: int = 1_000_000
    total: float | None = None
    parent: Mapping[str, Any] = field(default_factory=dict)
    child: Mapping[str, Any] = field(default_factory=dict)

    def operation(
        self, parent_schema: Facts, child_schema: Facts, key: str, progress: Progress | None = None
    ) -> LinkedFit:
        """The fit, as an operation: it knows its cost; ``release((parents, children))`` gives a ``LinkedModel``."""
        most = whole("max_children", self.max_children, low=1, high=_MOST_CHILDREN)
        parents = self._domain("parent", parent_schema, key, lambda facts: with_count(facts, most))
        children = self._domain("child", child_schema, key, self._order_last)
        if self.order is not None and not (children.names[-1] == self.order and children.is_bounded(self.order)):
            raise ValueError(
                f"order is {self.order!r}, which must be a modelled column of numbers or dates of the child."
            )
        if any(self.order in (each.left, each.right) for each in children.inequalities):
            raise ValueError(
                f"constraints of the child name {self.order!r}, whose values follow from gaps: leave it out."
            )
        plan = LinkedPlan(
            parents,
            children,
            self.order,
            most,
            Budget(epsilon=self.epsilon, delta=self.delta, noise="gaussian"),
            Adjacency(self.adjacency),
            self.total,
            self.max_cells,
            self.workload,
        )
        return LinkedFit(plan, key, progress)

    def _domain(self, table: str, schema: Facts, key: str, change: Callable[[Declaration], Declaration]) -> Domain:
        """A table's columns and cells; whatever its schema says, the unit is the key."""
        settings, facts = getattr(self, table), as_declaration(schema)
        if odd := [name for name in settings if name not in _SETTINGS]:
            raise ValueError(f"{table} names {odd[0]!r}, but may say {', '.join(_SETTINGS)}.")
        if not isinstance(facts.schema.get(key, Unlisted()), Unlisted):
            raise ValueError(f"key is {key!r}, which the {table}'s schema declares: leave it out there.")
        if facts.unit not in (None, key):
            raise ValueError(f"The {table}'s schema says unit = {facts.unit!r}, but here it is the key, {key!r}.")
        return TableSynthesizer(**settings).domain(change(Declaration(facts.schema, unit=key, text=facts.text)))

    def _order_last(self, facts: Declaration) -> Declaration:
        if self.order is not None and self.order not in facts.schema:
            raise ValueError(f"order is {self.order!r}, which the child's schema does not declare.")
        columns = dict(sorted(facts.schema.items(), key=lambda column: column[0] == self.order))
        return Declaration(Schema(columns), unit=facts.unit, text=facts.text)

    def fit(
        self,
        parents: Any,
        children: Any,
        *,
        key: str,
        parent_schema: Facts,
        child_schema: Facts,
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> LinkedSynthesizer:
        """Fit privately to two frames, mappings of columns or files that share the column ``key``; the book is charged
        before a record is read.
        """
        operation = self.operation(parent_schema, child_schema, key, progress)
        answer = charged(operation, (parents, children), book=book, label=label, rng=rng)
        self.model_: LinkedModel = answer.value
        self.event_: Event = answer.event
        self.reproducible_ = answer.reproducible
        return self

    def sample(
        self, n: int | None = None, rng: RngLike = None, where: Mapping[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """``n`` synthetic parents, all as ``where`` asks, and their children: see ``LinkedModel.sample``."""
        if not hasattr(self, "model_"):
            raise ValueError("This synthesiser is not fitted yet: call fit(parents, children, key=...) first.")
        return self.model_.sample(n, rng, where)


@dataclass(frozen=True)
class LinkedFit:
    """The fit of two linked tables: ``release((parents, children))`` gives a ``LinkedModel``."""

    plan: LinkedPlan
    key: str
    progress: Progress | None = field(default=None, repr=False, compare=False)

    @property
    def event(self) -> Event:
        """The cost, from public facts alone."""
        return self.plan.event

    @property
    def asked(self) -> tuple[float | None, float | None]:
        """Epsilon and delta it is asked for with."""
        return self.plan.budget.epsilon, self.plan.budget.delta

    @property
    def unit(self) -> str:
        """The key: all rows that have it, in both tables."""
        return Enforced(self.key)

    @property
    def label(self) -> str:
        """What a book calls it."""
        return "synthetic linked tables"

    def release(self, data: Any = None, rng: Any = None) -> Release[LinkedModel]:
        """Read both tables, and give the fitted model."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[LinkedModel]]:
        """Refuse data whose columns or types, which are public, do not suit; read nothing, and return what reads."""
        if not isinstance(data, tuple) or len(data) != 2 or any(table is None for table in data):
            raise ValueError("Linked tables must be a pair, (parents, children). One of them is missing.")
        streams, plan = Streams(rng), self.plan
        readers = [self._encoder(plan.parents, plan.parents.names[:-1]), self._encoder(plan.children)]
        facts = [encoder.facts_of(table) for encoder, table in zip(readers, data, strict=True)]
        read_parents, read_children = (e.prepare_every_row(table) for e, table in zip(readers, data, strict=True))
        parent_kind, child_kind = (encoder.unit_kind(table) for encoder, table in zip(readers, data, strict=True))
        if None not in (parent_kind, child_kind) and parent_kind != child_kind:
            raise ValueError(
                f"Column {self.key!r} holds {parent_kind} among the parents, {child_kind} among the children: cast one."
            )
        kinds, plan = [kind_of_frame(table) for table in data], plan.with_whole(facts[0][1], facts[1][1])

        def run() -> Release[LinkedModel]:
            (parents, parent_keys), (children, child_keys) = read_parents(), read_children()
            order = None if plan.order is None else plan.children.numbers(children, plan.order)
            listed = np.ones(len(children), np.bool_)
            for name in plan.children.names:
                if isinstance(children.schema[name], Categories):
                    listed &= children.codes(name) >= 0
            rows: LinkedRows = link_rows(parents, parent_keys, children, child_keys, listed, order, plan.most)
            fitted = learn_links(plan, rows, streams, rake_tables, self.progress)
            statement, (parent_order, child_order) = self._statement(streams.reproducible), (each for each, _ in facts)
            model = LinkedModel(
                Model(fitted.parents, fitted.roots.tree, fitted.roots.tables, kinds[0], statement, parent_order),
                fitted.children,
                fitted.first,
                fitted.later,
                fitted.gap,
                self.key,
                kinds[1],
                child_order,
                statement,
            )
            return Release(model, self.event, reproducible=streams.reproducible, label=self.label, unit=self.unit)

        return run

    def _encoder(self, domain: Domain, names: tuple[str, ...] | None = None) -> Encoder:
        encoder = domain.encoder
        return encoder if names is None else Encoder(encoder.declaration, names)

    def _statement(self, reproducible: bool) -> dict[str, Any]:
        budget = self.plan.budget
        return {
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "adjacency": str(self.plan.adjacency),
            "unit": self.key,
            "max_children": self.plan.most,
            "event": self.event.to_dict(),
            "reproducible": reproducible,
        }
