"""A raise is an entry with who and why; what came before keeps its part of the limit,
and the rest has a filter of its own.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import discreet as dp
import searches.raises
from discreet import cli, events
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded
from discreet.ledger import ChainBroken, Ledger, LedgerError, pricing, tree
from discreet.ledger.stages import Stage
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode
from tests.ledger.tampering import by_hand

TENTH = events.PureDP(epsilon=0.1)
GAUSSIAN = events.Gaussian(noise_multiplier=20.0)


def run(*arguments: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


def test_the_owner_can_raise_a_limit_and_the_book_says_who_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reproduction: a refusal told the analyst to ask for a raise, and no command could."""
    address = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(address, who="analyst") as ledger:
        book = ledger.open("census", epsilon=1.0)
        book.charge(TENTH * 10)
        with pytest.raises(BudgetExceeded, match="ask the data owner to raise the limit"):
            book.charge(TENTH)
    run("ledger", "raise", "census", "--epsilon", "0.5", "--why", "a second wave", "--ledger", address)
    printed = capsys.readouterr().out
    assert "census: the limit is now epsilon=1.5, delta=0; epsilon=0.5 is left" in printed
    assert "pure events only" in printed
    with Ledger(address, who="analyst") as ledger:
        book = ledger.open("census", epsilon=1.0)  # scripts that open it need no change
        assert book.affords(TENTH) == 5
        raised = book.entries()[-1]
        assert (raised.kind, raised.label, raised.increment) == ("raise", "a second wave", (0.5, 0.0))
        assert raised.who
        book.charge(TENTH * 5)
        assert (book.spent().epsilon, book.limit) == (1.5, (1.5, 0.0))
        with pytest.raises(BudgetExceeded, match=r"to 1\.600 at delta=0, above the limit 1\.5"):
            book.charge(TENTH)
        assert ledger.verify().entries == 4
        with pytest.raises(LedgerError, match="Limits are fixed"):
            ledger.open("census", epsilon=1.5)
    run("ledger", "history", "census", "--ledger", address)
    run("ledger", "raise", "census", "--epsilon", "0", "--why", "nothing", "--ledger", address, code=2)


def test_what_came_before_keeps_its_whole_delta_and_no_more_epsilon_than_it_proved(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    for _ in range(5):
        book.charge(GAUSSIAN)
    before = book.spent()
    book.raise_limit(epsilon=1.0, delta=2e-6, why="more waves")
    assert book.spent().epsilon == before.epsilon
    assert (book.limit, book.spent().delta) == ((4.0, 3e-6), 3e-6)
    stage = book.snapshot().book.stage
    assert stage.limit.epsilon == 4 - Fraction(repr(before.epsilon))
    assert stage.limit.delta == Fraction("2e-6")  # of 3e-6: what came before keeps the whole of its own
    assert not stage.amounts.adaptive
    count = 0
    while book.affords(GAUSSIAN * 4):
        book.charge(GAUSSIAN * 4)
        count += 1
    assert count > 3
    assert before.epsilon < book.spent().epsilon <= 4.0
    assert book.spent().proof.startswith("before the raise, then ")
    assert book.remaining().epsilon == pytest.approx(4.0 - book.spent().epsilon, abs=1e-12)
    ledger.verify()


def test_a_raise_without_delta_admits_pure_events_only(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.charge(GAUSSIAN)
    book.raise_limit(epsilon=1.0, why="counts")
    with pytest.raises(
        BudgetExceeded, match="'fit' needs a delta, but book 'census' has no delta left since its limit"
    ):
        book.charge(GAUSSIAN, label="fit")
    with pytest.raises(BudgetExceeded, match="pure events only"):
        book.charge(events.ApproxDP(epsilon=0.1, delta=1e-9), label="approximate")
    book.charge(TENTH)
    book.raise_limit(delta=1e-6, why="and models")
    book.charge(GAUSSIAN)
    ledger.verify()


@pytest.mark.parametrize("event", [
    GAUSSIAN, events.ApproxDP(epsilon=0.1, delta=1e-9), events.PoissonSampled(rate=0.1, event=GAUSSIAN),
    events.TruncatedPoissonSampled(rate=0.5, max_batch_size=9, dataset_size=10, event=GAUSSIAN), events.ZCDP(rho=0.01),
])  # fmt: skip
def test_a_book_without_delta_refuses_what_needs_one_in_a_sentence_that_says_so(
    ledger: Ledger, event: events.Event
) -> None:
    book = ledger.open("pure", epsilon=1.0)
    with pytest.raises(
        BudgetExceeded, match="'model' needs a delta, but book 'pure' has delta=0 and allows pure events only"
    ):
        book.charge(event, label="model")
    inside = ledger.open("outer", epsilon=1.0).sub("inner", epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetExceeded, match="book 'outer' has delta=0"):
        inside.charge(event, label="model")


def test_a_fit_with_delta_is_refused_by_a_book_without_in_that_sentence(ledger: Ledger) -> None:
    linear = pytest.importorskip("discreet.linear")
    model = linear.LogisticRegression(epsilon=1.0, delta=1e-6, feature_norm=1.0, classes=(0, 1))
    with pytest.raises(BudgetExceeded, match="'LogisticRegression' needs a delta, but book 'pure' has delta=0"):
        model.fit(np.array([[0.1], [0.2]]), [0, 1], book=ledger.open("pure", epsilon=3.0))


def test_a_ceiling_declared_at_opening_cannot_be_passed(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6, max_epsilon=2.0)
    assert book.terms.max_delta == 1e-6
    book.raise_limit(epsilon=0.5, why="first")
    for extra in ({"epsilon": 0.6}, {"delta": 1e-9}, {"epsilon": 0.5, "delta": 1e-12}):
        with pytest.raises(BudgetExceeded, match="above the ceiling epsilon=2, delta=1e-06 that was declared"):
            book.raise_limit(why="too much", **extra)
    book.raise_limit(epsilon=0.5, why="second")
    assert book.limit == (2.0, 1e-6)
    with pytest.raises(LedgerError, match=r"at most \(2, 1e-06\) by raises"):
        ledger.open("census", epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"max_epsilon is 0\.5"):
        ledger.open("low", epsilon=1.0, max_epsilon=0.5)


def test_a_raise_without_a_reason_or_an_amount_or_a_limit_is_refused(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=0.5)
    for bad in ({"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": math.inf}, {"delta": 0.5}, {"delta": math.nan}):
        with pytest.raises(ValueError, match=r"epsilon|delta"):
            book.raise_limit(why="because", **bad)
    for why in ("", "  ", None):
        with pytest.raises(ValueError, match="why is empty"):
            book.raise_limit(epsilon=1.0, why=why)  # type: ignore[arg-type]
    book.split("region", ["north"])
    with pytest.raises(ValueError, match="is a partition"):
        ledger.book("census/region").raise_limit(epsilon=1.0, why="because")
    assert book.limit == (1.0, 0.5)


def test_a_stage_in_which_nothing_was_charged_is_widened(ledger: Ledger) -> None:
    """No answer was seen: neither epsilon nor delta is lost."""
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.raise_limit(epsilon=1.0, delta=1e-6, why="typed too little")
    assert book.snapshot().book.stage.limit == Terms(epsilon=2.0, delta=2e-6).limit
    book.charge(GAUSSIAN)
    other = ledger.open("other", epsilon=2.0, delta=2e-6)
    other.charge(GAUSSIAN)
    assert other.spent().epsilon == book.spent().epsilon


def test_a_plan_may_open_a_new_stage(ledger: Ledger) -> None:
    """Given what was seen before, it is fixed before the stage's first answer."""
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.charge(GAUSSIAN)
    assert not book.plan(GAUSSIAN).entry.amounts.planned  # type: ignore[union-attr]
    book.raise_limit(epsilon=1.0, delta=1e-6, why="training")
    assert book.plan(GAUSSIAN * 3).entry.amounts.planned  # type: ignore[union-attr]
    ledger.verify()


# --- books in books
# -------------------------------------------------------------------------------------------------------


def test_a_raise_touches_neither_the_books_inside_nor_those_above(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    alice = book.sub("alice", epsilon=0.5)
    alice.charge(TENTH * 5)
    alice.raise_limit(epsilon=2.0, why="a promotion")
    with pytest.raises(BudgetExceeded, match="of book 'census'"):
        alice.charge(TENTH * 6)
    alice.charge(TENTH * 5)
    assert (book.spent().epsilon, alice.spent().epsilon) == (1.0, 1.0)
    book.raise_limit(epsilon=1.0, why="another year")
    assert alice.limit == (2.5, 0.0)
    alice.charge(TENTH * 10)
    with pytest.raises(BudgetExceeded, match="of book 'census'"):
        alice.charge(TENTH)
    ledger.verify()


def test_a_raised_part_is_still_counted_by_the_book_above(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    parts = book.split("region", ["north", "south"], epsilon=0.4)
    parts["north"].charge(TENTH * 4)
    parts["south"].charge(TENTH * 2)
    parts["north"].raise_limit(epsilon=0.4, why="more from the north")
    parts["north"].charge(TENTH * 4)
    assert book.spent().epsilon == pytest.approx(0.8)
    ledger.verify()


def test_a_raised_book_pays_for_each_part_in_full(ledger: Ledger) -> None:
    """What parts had saved before the raise belongs to the stage that ended: it is not spent again."""
    book = ledger.open("census", epsilon=0.4)
    parts = book.split("region", ["north", "south"], epsilon=9.0)
    parts["north"].charge(TENTH * 4)
    book.raise_limit(epsilon=0.3, why="the south is behind")
    parts["south"].charge(TENTH * 2)
    assert book.spent().epsilon == pytest.approx(0.6)
    with pytest.raises(BudgetExceeded, match="of book 'census'"):
        parts["north"].charge(TENTH * 2)
    ledger.verify()


# --- the chain
# ------------------------------------------------------------------------------------------------------------


def test_raises_survive_a_restart_on_every_store(url: str) -> None:
    with Ledger(url, who="owner") as ledger:
        book = ledger.open("census", epsilon=1.0, delta=1e-6)
        book.charge(GAUSSIAN)
        book.raise_limit(epsilon=1.0, delta=1e-6, why="more")
        book.charge(GAUSSIAN)
        state, trail = book.spent(), book.snapshot().readings
    with Ledger(url, create=False) as ledger:
        assert ledger.book("census").spent() == state
        assert trail[-1][1].epsilon == state.epsilon
        assert ledger.verify().entries == 4


@pytest.mark.parametrize(("statement", "message"), [
    ("UPDATE discreet_entries SET terms = replace(terms, '1.0', '9.0') WHERE kind = 'raise'", "was edited"),
    ("UPDATE discreet_books SET amounts = replace(amounts, 'before_epsilon\":\"', 'before_epsilon\":\"-')",
     "do not follow"),
    ("UPDATE discreet_books SET amounts = substr(amounts, 1, instr(amounts, char(10)) - 1)", "do not follow"),
])  # fmt: skip
def test_a_raise_that_was_tampered_with_is_found(ledger: Ledger, statement: str, message: str) -> None:
    book = ledger.open("census", epsilon=1.0)
    book.charge(TENTH)
    book.raise_limit(epsilon=1.0, why="more")
    ledger.verify()
    with ledger._store.write() as connection:
        connection.execute(sa.text("DROP TRIGGER discreet_entries_no_update"))
        connection.execute(sa.text(statement))
    with pytest.raises(ChainBroken, match=message):
        ledger.verify()


def test_a_raise_beyond_the_ceiling_that_was_appended_by_hand_is_found(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, max_epsilon=1.5)
    with ledger._store.write() as connection:
        more = json.dumps({"epsilon": 1.0, "delta": 0.0})
        by_hand(ledger, connection).append(book=book.name, kind="raise", label="more", terms=more)
    with pytest.raises(ChainBroken, match="beyond its ceiling"):
        ledger.verify()


# --- an adversary who asks for a raise when the answers please
# --------------------------------------------------------------


def losses(node: BookNode, budget: int, p: float, loss: float) -> list[tuple[float, float, Stage]]:
    """Every way an adaptive run may end: its probability with the record, its log-ratio, and where the book then
    stands.

    Coins of randomised response with two biases; the next one is chosen by the last answer, and the limit is raised,
    once, when the run looks promising.
    """
    if budget and loss > 0.4 and node.since is None:
        node = node.raise_limit(0.4, 0.1)
    epsilon = 0.15 if loss > 0 else 0.1
    price = pricing.price(events.PureDP(epsilon=epsilon), Adjacency.ADD_REMOVE)
    after = tree.advance([node], price)[0]
    if not budget or not after.within:
        return [(p, loss, node.stage)]
    heads = 1 / (1 + math.exp(-epsilon))
    return losses(after, budget - 1, p * heads, loss + epsilon) + losses(
        after, budget - 1, p * (1 - heads), loss - epsilon
    )


def test_no_run_that_raises_when_it_likes_what_it_sees_loses_more_than_the_ceiling() -> None:
    """Exact, over every transcript of an adaptive run: the hockey-stick divergence at the ceiling,
    and each reading's own.
    """
    start = BookNode("census", Terms(epsilon=0.8, delta=0.1, filter="renyi", max_epsilon=1.2, max_delta=0.2))
    ends = losses(start, 11, 1.0, 0.0)
    assert sum(p for p, _, _ in ends) == pytest.approx(1.0)
    raised = sum(p for p, _, stage in ends if stage.raised)
    assert 0.05 < raised < 0.95
    assert max(loss for _, loss, _ in ends) > 1.2  # it is the filters, not the pure sum, that stop it
    lost = sum(p * max(0.0, 1 - math.exp(1.2 - loss)) for p, loss, _ in ends)
    assert 0 < lost <= 0.2
    at_readings = sum(p * max(0.0, 1 - math.exp(stage.read().epsilon - loss)) for p, loss, stage in ends)
    assert at_readings <= 0.2


def test_the_report_says_who_raised_what_and_whether_it_was_promised(ledger: Ledger) -> None:
    cases = {"free": {}, "bound": {"max_epsilon": 3.0}}
    for name, ceiling in cases.items():
        book = ledger.open(name, epsilon=1.0, **ceiling)  # type: ignore[arg-type]
        book.charge(TENTH)
        assert not dp.report(book).facts["raises"]
        book.raise_limit(epsilon=1.0, why="a <second> wave")
        made = dp.report(book)
        assert [(item["who"], item["why"]) for item in made.facts["raises"]] == [("tester", "a <second> wave")]
        assert made.facts["limit"]["epsilon"] == 2.0
        html = made.html()
        assert "a &lt;second&gt; wave" in html
        assert ("these raises were decided after answers had been seen" in html) == (name == "free")
        assert ("The ceiling was promised in advance" in html) == (name == "bound")
        assert ("no ceiling was declared" in made.facts["assumptions"][-1]) == (name == "free")


def test_a_short_search_finds_no_policy_that_learns_more_than_was_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """Its long form: ``python -m searches raises``."""
    searches.raises.main(4)
    assert "policies" in capsys.readouterr().out


def test_limits_and_rows_beyond_floats_are_refused_or_kept_and_crash_nothing(ledger: Ledger) -> None:
    book = ledger.open("vast", epsilon=1e308, delta=1e-6)
    book.charge(events.Gaussian(noise_multiplier=1.0))
    assert book.spent().epsilon < 10
    with pytest.raises(ValueError, match="must leave the book at"):
        book.raise_limit(epsilon=1.7e308, why="more")
    assert book.limit == (1e308, 1e-6)
    book.charge(events.Gaussian(noise_multiplier=1.0))
    with pytest.raises(ValueError, match="rows_per_unit"):
        ledger.open("crowd", epsilon=1.0, unit="patient", rows_per_unit=10**400)
    ledger.verify()


def test_a_reason_with_half_a_character_is_refused_and_nothing_is_raised(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    with pytest.raises(ValueError, match="whole characters"):
        book.raise_limit(epsilon=1.0, why="\ud800")
    assert book.limit == (1.0, 0.0)


def test_a_ceiling_or_a_unit_of_its_own_is_refused_for_a_sub_book_not_forgotten(tmp_path: Path) -> None:
    """The command took the words and kept nothing of them: a ceiling that was asked for did not hold."""
    address = ("--ledger", str(tmp_path / "budget.db"))
    run("ledger", "open", "census", "--epsilon", "3", *address)
    run("ledger", "open", "census/alice", "--epsilon", "1", "--max-epsilon", "2", *address, code=2)
    run("ledger", "open", "census/alice", "--epsilon", "1", "--unit", "patient", *address, code=2)
    run("ledger", "open", "census/alice", "--epsilon", "1", *address)
