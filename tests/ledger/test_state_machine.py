"""The ledger as a state machine, beside a model of what an adversary learns;
``searches/ledger.py`` runs it for longer.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import discreet as dp
from discreet import events
from tests.ledger.adversary import Knowledge, Shelf
from tests.ledger.machine import LedgerMachine

brief = settings(max_examples=9, stateful_step_count=16, database=None, derandomize=True,
                 phases=[Phase.generate], deadline=None)  # fmt: skip


def test_a_file_keeps_every_promise_whatever_is_done_to_it(tmp_path: Path) -> None:
    numbers = itertools.count()

    class InAFile(LedgerMachine):
        address = staticmethod(lambda: f"sqlite:///{tmp_path / f'{next(numbers)}.db'}")

    run_state_machine_as_test(InAFile, settings=brief)


def test_postgresql_keeps_every_promise_whatever_is_done_to_it(postgres: str) -> None:
    numbers = itertools.count()
    server = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)

    def address() -> str:
        name = f"run_{next(numbers)}"
        with server.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA {name}"))
        url = sa.make_url(postgres).update_query_dict({"options": f"-c search_path={name}"})
        return url.render_as_string(hide_password=False)

    class OnAServer(LedgerMachine):
        pass

    OnAServer.address = staticmethod(address)  # type: ignore[assignment]
    run_state_machine_as_test(OnAServer, settings=settings(brief, max_examples=4))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_model_of_the_adversary_is_the_exact_account(epsilon: float) -> None:
    """It agrees with the certified bounds of the tight account, which it does not use."""
    told = [
        (events.PureDP(epsilon=0.1), 3),
        (events.PureDP(epsilon=0.2), 1),
        (events.Gaussian(noise_multiplier=5.0), 4),
    ]
    known = Knowledge()
    for event, count in told:
        known.learn(event, count)
    composed = events.Composed(events=tuple(event * count for event, count in told))
    assert known.delta(epsilon) == pytest.approx(dp.delta(composed, epsilon=epsilon), rel=2e-3)
    assert known.worst == 10
    known.learn(events.ApproxDP(epsilon=0.0, delta=0.25))
    assert known.delta(100.0) == pytest.approx(0.25)


def test_a_record_is_in_one_part_of_each_partition() -> None:
    tenth = events.PureDP(epsilon=0.1)
    parts = [Shelf(1.0, 0.0, "part", told=[(tenth, count, 1)]) for count in (2, 5)]
    book = Shelf(1.0, 0.0, told=[(tenth, 1, 1)], inside=[Shelf(1.0, 0.0, "partition", inside=parts)])
    assert sorted(known.worst for known in book.knowledge()) == [6, 12]
