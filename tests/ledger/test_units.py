"""A book keeps one unit: what protects somebody else is refused,
or restated for as many rows as one of them may have.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from scipy.special import logsumexp
from scipy.stats import binom

import discreet as dp
import searches.groups
from discreet import cli, events
from discreet.errors import BudgetExceeded, DiscreetError, UnsupportedEvent
from discreet.ledger import Book, Ledger, LedgerError, chain, groups, pricing
from discreet.ledger.amounts import ORDERS, UNIT
from discreet.ledger.integrity import IntegrityCheck
from discreet.ledger.rules import BEFORE
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode, outcome
from discreet.release import ONE_RECORD, Enforced, Operation
from tests.ledger.tampering import by_hand, unguarded

TENTH = events.PureDP(epsilon=0.1)
STEP = events.PoissonSampled(rate=0.1, event=events.Gaussian(noise_multiplier=2.0))


@pytest.fixture
def patients(ledger: Ledger) -> Book:
    """A book that protects patients, of whose rows nothing is known."""
    return ledger.open("hospital", epsilon=10.0, delta=1e-5, unit="patient")


# --- refused
# ------------------------------------------------------------------------------------------------------------


def test_a_charge_for_one_row_to_a_book_of_patients_is_refused_and_says_what_to_do(patients: Book) -> None:
    with pytest.raises(DiscreetError) as refused:
        patients.charge(TENTH, label="ages")
    for words in (
        "'ages'",
        "one record",
        "'patient'",
        "'hospital'",
        "Nothing was released",
        "rows_per_unit",
        "unit='patient'",
    ):
        assert words in str(refused.value)
    assert patients.spent().entries == 0
    assert patients.charge(TENTH, label="ages", unit="patient").unit.by == "said"  # type: ignore[union-attr]


def test_a_charge_for_a_patient_to_a_book_of_rows_is_refused_too(ledger: Ledger) -> None:
    """Leaving out all rows of a patient is proved; leaving out one of them is not."""
    rows = ledger.open("rows", epsilon=1.0)
    with pytest.raises(DiscreetError, match=r"protects the unit 'patient', but book 'rows' keeps one record"):
        rows.charge(TENTH, unit="patient")
    with pytest.raises(DiscreetError, match="protects the unit 'household', but book 'beds' keeps the unit 'patient'"):
        ledger.open("beds", epsilon=1.0, unit="patient", rows_per_unit=4).charge(TENTH, unit="household")
    for unit in ("", "a\nb", "x" * 201, None):
        with pytest.raises(ValueError, match="unit is"):
            rows.charge(TENTH, unit=unit)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["plan", "reserve"])
def test_plans_and_reservations_keep_their_unit(patients: Book, kind: str) -> None:
    with pytest.raises(DiscreetError, match="keeps the unit 'patient'"):
        getattr(patients, kind)(TENTH)
    held = getattr(patients, kind)(TENTH * 2, label="job", unit="patient")
    with pytest.raises(
        DiscreetError, match="'rows' protects 'one record', but the reservation 'job' was made for 'patient'"
    ):
        held.charge(TENTH, label="rows")
    assert held.charge(TENTH, unit="patient") is held.entry
    assert patients.affords(TENTH, unit="patient") > 0
    with pytest.raises(DiscreetError, match="keeps the unit"):
        patients.affords(TENTH)


def test_the_unit_is_fixed_at_opening_and_inherited(ledger: Ledger) -> None:
    book = ledger.open("clinic", epsilon=1.0, unit="patient", rows_per_unit=4)
    assert ledger.open("clinic", epsilon=1.0, unit="patient", rows_per_unit=4).terms == book.terms
    for other in ({}, {"unit": "visit"}, {"unit": "patient"}, {"unit": "patient", "rows_per_unit": 5}):
        with pytest.raises(LedgerError, match="unit='patient', rows_per_unit=4"):
            ledger.open("clinic", epsilon=1.0, **other)  # type: ignore[arg-type]
    inside = [book.sub("a", epsilon=0.5), *book.split("ward", ["x", "y"]).values()]
    assert {(each.terms.unit, each.terms.rows_per_unit) for each in inside} == {("patient", 4)}
    with pytest.raises(ValueError, match="the unit is one record"):
        ledger.open("other", epsilon=1.0, rows_per_unit=2)
    with pytest.raises(ValueError, match="may come back with another number of rows"):
        ledger.open("other", epsilon=1.0, unit="patient", rows_per_unit=2, adjacency="replace")


# --- every room says whom it protects
# -------------------------------------------------------------------------------------

VALUES = np.linspace(0, 1, 400)


def operations() -> dict[str, object]:
    """Something that charges, from each room; ``unit`` is what the caller says, if anything."""
    pd, table = pytest.importorskip("pandas"), dp.table
    linear, torch = pytest.importorskip("discreet.linear"), pytest.importorskip("torch")
    frame = pd.DataFrame({"id": np.arange(400) // 4, "x": VALUES})
    schema = dp.Schema(x=dp.Bounded(0, 1))
    X, y = VALUES[:, None], (VALUES > 0.5).astype(int)

    sparse = dp.mechanisms.SparseVector(threshold=1.0, max_positives=1)

    def trained(book: Book, **said: str) -> object:
        from discreet.training import fit

        data = (torch.tensor(X).float(), torch.tensor(y).long())
        return fit(
            torch.nn.Linear(1, 2), data, noise_multiplier=9.0, epochs=1, batch_size=400, book=book, rng=1, **said
        )

    def model(book: Book, **said: str) -> object:
        return linear.LogisticRegression(epsilon=1.0, feature_norm=1.0, random_state=0, **said, classes=(0, 1)).fit(
            X, y, book=book
        )

    def interval(book: Book, **said: str) -> object:
        from discreet.linear.inference import coefficients

        return coefficients(
            linear.LinearRegression(target_bounds=(-1, 1), epsilon=1.0, bounds=(0, 1), random_state=0, **said),
            X,
            VALUES,
            book=book,
        )

    return {
        "statistic": lambda book, **said: dp.statistics.mean(VALUES, bounds=(0, 1), epsilon=1.0, book=book, **said),
        "workload": lambda book, **said: dp.workloads.answer(
            dp.workloads.Prefix(2), [1, 2], epsilon=1.0, book=book, **said
        ),
        "table": lambda book: table(frame, schema=schema).mean("x").release(epsilon=1.0, book=book),
        "model": model,
        "interval": interval,
        "training": trained,
        "sparse vector": lambda book, **said: replace(sparse, **said).start(1, book).ask(2),
    }


@pytest.mark.parametrize("room", ["statistic", "workload", "table", "model", "interval", "training", "sparse vector"])
def test_what_protects_a_row_is_refused_by_a_book_of_patients_in_every_room(patients: Book, room: str) -> None:
    """The reproduction: a book of patients took fits and queries that protect one row."""
    ask = operations()[room]
    with pytest.raises(DiscreetError, match="keeps the unit 'patient'"):
        ask(patients)  # type: ignore[operator]
    assert patients.spent().entries == 0
    if room != "table":  # a table is told by its unit column
        ask(patients, unit="patient")  # type: ignore[operator]
        assert str(patients.entries()[-1].unit) == "patient, as the caller said"


def test_a_table_with_a_unit_column_charges_that_unit_and_nothing_else(ledger: Ledger) -> None:
    pd = pytest.importorskip("pandas")
    people = dp.table(
        pd.DataFrame({"id": [1, 1, 2], "x": [0.1, 0.2, 0.3]}), schema=dp.Schema(x=dp.Bounded(0, 1)), unit="id"
    )
    question = people.mean("x")
    assert question.unit == "id"
    assert isinstance(question.unit, Enforced)
    book = ledger.open("by id", epsilon=1.0, unit="id")
    question.release(epsilon=1.0, book=book, rng=1)
    assert str(book.entries()[-1].unit) == "id, bounded by the library"
    with pytest.raises(DiscreetError, match="keeps one record"):
        question.release(epsilon=1.0, book=ledger.open("by row", epsilon=1.0))


def test_a_sampler_of_users_charges_users(ledger: Ledger) -> None:
    torch = pytest.importorskip("torch")
    from discreet.training import PerUser, make_private

    def run(book: Book, unit: str | None = None) -> None:
        model = torch.nn.Linear(1, 1)
        data = torch.utils.data.TensorDataset(torch.zeros(6, 1), torch.zeros(6, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=2)
        users = PerUser(batch_size=2, dataset_size=3, users=[0, 0, 1, 1, 2, 2], records_per_user=2, name="client")
        make_private(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            loader,
            loss_reduction="mean",
            noise_multiplier=3.0,
            epochs=1,
            sampler=users,
            book=book,
            unit=unit,
        )

    book = ledger.open("clients", epsilon=10.0, delta=1e-5, unit="client")
    run(book)
    assert str(book.entries()[-1].unit) == "client, bounded by the library"
    with pytest.raises(ValueError, match="the sampler bounds 'client': say it in one place"):
        run(book, unit="patient")


def test_operations_state_their_unit() -> None:
    mean = dp.statistics.Mean(bounds=(0, 1), epsilon=1.0)
    assert mean.unit == ONE_RECORD
    assert isinstance(mean, Operation)
    assert dp.statistics.Mean(bounds=(0, 1), epsilon=1.0, unit="patient").unit == "patient"
    assert dp.statistics.Mean(bounds=(0, 1), epsilon=1.0, unit="patient").event == mean.event
    for bad in ("", 3):
        with pytest.raises(ValueError, match="unit is"):
            dp.statistics.Mean(bounds=(0, 1), epsilon=1.0, unit=bad)  # type: ignore[arg-type]


# --- the command line
# -----------------------------------------------------------------------------------------------------


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four rows a patient, a schema without a unit, and a book opened for patients."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i // 4},{i % 100},{'yes' if i % 100 > 50 else 'no'}" for i in range(800)]
    Path("visits.csv").write_text("patient_id,age,sick\n" + "\n".join(rows) + "\n")
    Path("schema.toml").write_text('[columns]\nage = { bounds = [0, 100] }\nsick = { categories = ["no", "yes"] }\n')
    x = np.linspace(0, 1, 200, dtype=np.float32)[:, None]
    np.savez("data.npz", x=x, y=(x[:, 0] > 0.5).astype(np.int64))
    Path("run.toml").write_text(
        '[model]\nlayers = [1, 2]\n[data]\npath = "data.npz"\n[training]\nbatch_size = 200\n'
        "[privacy]\nnoise_multiplier = 9.0\nepochs = 1\n"
    )
    run(
        "ledger",
        "open",
        "study",
        "--epsilon",
        "30",
        "--delta",
        "1e-5",
        "--unit",
        "one patient",
        "-l",
        "sqlite:///budget.db",
    )
    return tmp_path


def run(*arguments: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


BOOK = ("--ledger", "budget.db", "--book", "study")
COMMANDS = {
    "query": (
        "query",
        "visits.csv",
        "--schema",
        "schema.toml",
        "--sql",
        "SELECT AVG(age) FROM v",
        "--epsilon",
        "1",
        *BOOK,
    ),
    "fit": (
        "fit",
        "visits.csv",
        "--schema",
        "schema.toml",
        "--target",
        "sick",
        "--epsilon",
        "1",
        "--out",
        "m.joblib",
        *BOOK,
    ),
    "train": ("train", "run.toml", "--quiet", "--seed", "1", *BOOK),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_protects_a_row_is_refused_by_a_book_of_patients(
    clinic: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reproduction on the command line: ``--unit "one patient"``, four rows a patient,
    and the report said otherwise.
    """
    run(*COMMANDS[command], code=2)
    printed = capsys.readouterr()
    assert "protects one record (a row), but book 'study' keeps the unit 'one patient'" in printed.err
    assert not Path("m.joblib").exists()
    with Ledger("sqlite:///budget.db") as ledger:
        assert ledger.book("study").spent().entries == 0


def test_commands_that_know_the_unit_are_charged(clinic: Path) -> None:
    schema = Path("schema.toml")
    schema.write_text('unit = "patient_id"\n' + schema.read_text())
    run(
        "ledger",
        "open",
        "ids",
        "--epsilon",
        "30",
        "--delta",
        "1e-5",
        "--unit",
        "patient_id",
        "-l",
        "sqlite:///budget.db",
    )
    for command in ("query", "fit"):
        run(*(part if part != "study" else "ids" for part in COMMANDS[command]))
    Path("run.toml").write_text(Path("run.toml").read_text() + 'unit = "one patient"\n')
    run(*COMMANDS["train"])
    with Ledger("sqlite:///budget.db") as ledger:
        assert [str(entry.unit) for entry in ledger.entries() if entry.event] == [
            "patient_id, bounded by the library",
            "patient_id, bounded by the library",
            "one patient, as the caller said",
        ]


# --- restated for several rows
# --------------------------------------------------------------------------------------------


def test_a_row_costs_a_unit_of_k_rows_what_the_group_account_says(ledger: Ledger) -> None:
    """k·ε exactly, (kμ)², k²ρ at every order, (kε, δ(e^{kε}−1)/(e^ε−1)); never k times a divergence at one order."""
    k, relation = 4, "add-remove"
    assert groups.price(TENTH, relation, rows=k).pure == Fraction(2, 5)  # type: ignore[arg-type]
    gaussian = groups.price(events.Gaussian(noise_multiplier=2.0), relation, rows=k)  # type: ignore[arg-type]
    assert gaussian.mu2 == pytest.approx((k / 2.0) ** 2 * UNIT, rel=1e-9)
    assert gaussian.renyi == pytest.approx([a * (k / 2.0) ** 2 / 2 * UNIT for a in ORDERS], rel=1e-9)
    zcdp = groups.price(events.ZCDP(rho=0.01), relation, rows=k)  # type: ignore[arg-type]
    assert zcdp.renyi == pytest.approx([a * 0.01 * k**2 * UNIT for a in ORDERS], rel=1e-9)
    approximate = groups.price(events.ApproxDP(epsilon=0.1, delta=1e-9), relation, rows=k)  # type: ignore[arg-type]
    assert approximate.pure == Fraction(2, 5)
    owed = 1e-9 * sum(math.exp(i * 0.1) for i in range(k))
    assert owed <= approximate.delta <= owed * (1 + 1e-9)
    laplace = groups.price(events.Laplace(noise_multiplier=10.0), relation, rows=k)  # type: ignore[arg-type]
    one = groups.price(events.Laplace(noise_multiplier=10.0), relation)  # type: ignore[arg-type]
    assert all(four > k * single for four, single in zip(laplace.renyi, one.renyi, strict=True) if single < UNIT / 100)


def group_of(matrix: np.ndarray, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """A mechanism on a count, as rows of probabilities: the pairs of inputs that are k apart."""
    return [pair for low, high in zip(matrix, matrix[k:], strict=False) for pair in ((low, high), (high, low))]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_converted_prices_are_never_below_the_divergences_of_real_mechanisms_at_distance_k(k: int) -> None:
    """Exact enumeration: geometric noise on a count, and on the count of a Poisson sample."""
    inputs, outputs = np.arange(8), np.arange(-60, 68)
    lattice = np.exp(-np.abs(outputs[None, :] - inputs[:, None]) / 2.0)
    geometric = lattice / lattice.sum(axis=1, keepdims=True)
    cases: list[tuple[events.Event, np.ndarray]] = [(events.DiscreteLaplace(scale=2.0, sensitivity=1), geometric)]
    # the value read is the number of sampled rows: binomial thinning, then the noise
    rate = 0.3
    thinned = binom.pmf(inputs[None, :], inputs[:, None], rate)
    cases.append((events.PoissonSampled(rate=rate, event=cases[0][0]), thinned @ geometric))
    for event, matrix in cases:
        price = groups.price(event, "add-remove", rows=k)  # type: ignore[arg-type]
        for p, q in group_of(matrix, k):
            assert float(price.pure) >= np.max(np.log(p / q)) - 1e-6  # the lattice is cut, far out
            for order, paid in zip(ORDERS[:16], price.renyi, strict=False):
                truth = logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
                assert paid / UNIT >= truth - 1e-9


@pytest.mark.parametrize(("k", "delta"), [(3, 1e-4)])
def test_a_sampled_event_is_restated_as_a_whole(k: int, delta: float) -> None:
    """The profile of the group bounds the true one of a group that is sampled row by row,
    and never k times one order.
    """
    event = STEP * 2
    price = groups.planned_price(event, dp.Adjacency.ADD_REMOVE, Fraction(delta), k)
    assert price is not None
    epsilon = float(price.planned_epsilon)
    one = dp.delta(event, epsilon / k)
    assert one * sum(math.exp(i * epsilon / k) for i in range(k)) <= delta * (1 + 1e-9)
    assert epsilon > dp.epsilon(event, delta)


def test_a_sampled_event_is_planned_or_priced_at_a_delta_or_refused(ledger: Ledger) -> None:
    def fresh(name: str) -> Book:
        return ledger.open(name, epsilon=8.0, delta=1e-3, unit="patient", rows_per_unit=3, filter="basic")

    planned = fresh("planned")
    assert planned.charge(STEP).amounts.planned  # type: ignore[union-attr]
    used = fresh("used")
    used.charge(TENTH)
    with pytest.raises(UnsupportedEvent, match=r"3 rows at once.*delta="):
        used.charge(STEP)
    entry = used.charge(STEP, delta=1e-4)
    assert entry.amounts.pure >= dp.epsilon(STEP, 1e-4, group_size=3)  # type: ignore[union-attr,operator]
    assert str(entry.unit) == "one record, up to 3 per unit"
    with pytest.raises(BudgetExceeded, match="no finite epsilon at delta=1e-09 for 3 rows"):
        used.charge(events.ApproxDP(epsilon=1.0, delta=1e-3), delta=1e-9)


def test_k_rows_fit_exactly_where_arithmetic_says_so(ledger: Ledger) -> None:
    """Ten charges of 0.1 for four rows are 4: not 3.99…, not 4.000…1."""
    book = ledger.open("clinic", epsilon=4.0, unit="patient", rows_per_unit=4)
    assert book.affords(TENTH) == 10
    for _ in range(10):
        book.charge(TENTH)
    assert book.spent().epsilon == 4.0
    with pytest.raises(BudgetExceeded):
        book.charge(events.PureDP(epsilon=1e-9))
    assert ledger.verify().entries == 11


def test_one_row_a_unit_costs_what_a_row_costs_and_says_so(ledger: Ledger) -> None:
    book = ledger.open("people", epsilon=1.0, delta=1e-6, unit="patient", rows_per_unit=1)
    entry = book.charge(events.Gaussian(noise_multiplier=10.0))
    assert entry.amounts == pricing.price(events.Gaussian(noise_multiplier=10.0), dp.Adjacency.ADD_REMOVE)
    assert str(entry.unit) == "one record, up to 1 per unit"


# --- the chain
# ------------------------------------------------------------------------------------------------------------


def test_the_chain_keeps_the_unit_of_every_charge(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url) as ledger:
        book = ledger.open("hospital", epsilon=1.0, unit="patient", rows_per_unit=2)
        book.charge(TENTH)
        book.charge(TENTH, unit="patient")
        assert [json.loads(entry.terms) for entry in book.entries()[1:]] == [
            {"by": "converted", "reproducible": False, "rows": 2, "unit": "one record"},
            {"by": "said", "reproducible": False, "rows": 1, "unit": "patient"},
        ]
        ledger.verify()
    with Ledger(url) as ledger:
        with ledger._store.write() as connection:
            connection.execute(sa.text("DROP TRIGGER discreet_entries_no_update"))
            connection.execute(
                sa.text("UPDATE discreet_entries SET terms = replace(terms, 'said', 'enforced') WHERE seq = 3")
            )
        with pytest.raises(chain.ChainBroken, match="Entry 3 was edited"):
            ledger.verify()


@pytest.mark.parametrize(
    "unit",
    [
        {"unit": "patient", "by": "said", "rows": 1},
        {"unit": "one record", "by": "converted", "rows": 1},
        {"unit": "one record", "by": "record", "rows": 2},
        {"unit": "one record", "by": "guessed", "rows": 1},
    ],
)
def test_a_charge_in_another_unit_that_was_appended_by_hand_is_found(ledger: Ledger, unit: dict[str, object]) -> None:
    ledger.open("rows", epsilon=1.0)
    with ledger._store.write() as connection:
        price = pricing.price(TENTH, dp.Adjacency.ADD_REMOVE).to_json()
        by_hand(ledger, connection).append(
            book="rows", kind="charge", event=TENTH.to_json(), price=price, terms=json.dumps(unit)
        )
        connection.execute(sa.text("UPDATE discreet_books SET amounts = :price, entries = 1"), {"price": price})
    with pytest.raises(chain.ChainBroken, match="Entry 2 charges book 'rows' for another unit than the book keeps"):
        ledger.verify()


def test_a_unit_column_that_is_called_like_a_row_is_refused(ledger: Ledger) -> None:
    with pytest.raises(DiscreetError, match="Rename the column"):
        ledger.open("rows", epsilon=1.0).charge(TENTH, unit=Enforced("one record"))


def test_charges_of_the_version_before_still_verify_and_are_shown_as_not_recorded(ledger: Ledger) -> None:
    """That version wrote no unit: the terms of a charge were empty, and those of a book had fewer names."""
    book = ledger.open("old", epsilon=1.0, unit="one household")
    words = json.loads(book.terms.to_json())
    for new in [name for name in words if name not in ("epsilon", "delta", "adjacency", "unit", "filter", "kind")]:
        del words[new]
    old = json.dumps(words, sort_keys=True, separators=(",", ":"))
    with ledger._store.write() as connection:
        unguarded(connection)
        for table in ("entries", "head"):
            connection.execute(sa.text(f"DELETE FROM discreet_{table}"))
        connection.execute(sa.text("UPDATE discreet_books SET terms = :old"), {"old": old})
        by_hand(ledger, connection).append(book="old", kind="open", terms=old, rules=BEFORE)
        price = pricing.price(TENTH, dp.Adjacency.ADD_REMOVE)
        said = {"rules": BEFORE, **outcome(BookNode("old", Terms.from_json(old), price, 1))}
        by_hand(ledger, connection).append(
            book="old", kind="charge", event=TENTH.to_json(), price=price.to_json(), **said
        )
        connection.execute(
            sa.text("UPDATE discreet_books SET amounts = :price, entries = 1"), {"price": price.to_json()}
        )
    ledger.verify()
    ledger._integrity = IntegrityCheck(ledger._store, ledger.who, ledger._clock)  # as in a process of the new version
    again = ledger.open("old", epsilon=1.0, unit="one household")
    assert again.entries()[-1].unit is None
    assert any(entry["unit"] == "not recorded" for entry in dp.report(again).facts["entries"])
    with pytest.raises(DiscreetError, match="keeps the unit 'one household'"):
        again.charge(TENTH)
    again.charge(TENTH, unit="one household")
    ledger.verify()


def test_a_short_search_finds_no_converted_price_below_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    """Its long form: ``python -m searches groups``."""
    searches.groups.main(2)
    assert "no price below the truth" in capsys.readouterr().out
