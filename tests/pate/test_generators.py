"""Generators: the interface of a synthesiser, tables and images, what is refused, and the way of the votes."""

import copy

import numpy as np
import pytest

pytest.importorskip("torch", reason="generators need torch")
import torch

import discreet as dp
from discreet.auditing import mu_lower_bound, record, replay
from discreet.mechanisms.budget import Budget
from discreet.pate import GPATE, PATEGAN, Images
from discreet.pate.ballots import Ballots
from discreet.pate.discriminators import Parts, TeacherDiscriminators
from discreet.random import seeded
from discreet.release import charged
from discreet.synthesis import PrivateBins
from discreet.synthesis.domain import Domain
from discreet.synthesis.layouts import TableLayout
from tests.pate.generated import FACTS, IMAGES, KINDS, PICTURES, SMALL, TABLE, fewer, made


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_gives_back_the_kind_of_frame_that_was_given(kind):
    pd = pytest.importorskip("pandas", reason="frames need an extra")
    pl = pytest.importorskip("polars", reason="frames need an extra")
    for frame, expected in ((TABLE, dict), (pd.DataFrame(TABLE), pd.DataFrame), (pl.DataFrame(TABLE), pl.DataFrame)):
        synthetic = kind(**SMALL).fit(frame, schema=FACTS, rng=1).sample(20, rng=2)
        assert isinstance(synthetic, expected)
        assert set(np.asarray(synthetic["sick"])) <= {"no", "yes"}
        ages = np.asarray(synthetic["age"], float)
        assert ((ages >= 0) & (ages <= 100) | np.isnan(ages)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [None, ("a", "b")], ids=["images", "with labels"])
def test_images_come_back_inside_their_bounds(kind, classes):
    facts = Images(shape=(3, 3), bounds=(-5, 10), labels=classes)
    labels = np.array(["a", "b"] * 30)
    data = PICTURES if classes is None else (PICTURES, labels)
    found = kind(**SMALL).fit(data, schema=facts, rng=1).sample(5000, rng=2)  # in several parts
    images = found if classes is None else found[0]
    assert images.shape == (5000, 3, 3)
    assert images.min() >= -5
    assert images.max() <= 10
    assert classes is None or set(found[1]) == {"a", "b"}


def test_generators_learn_what_the_teachers_know():
    """Two classes of pictures, nearly without noise: the generator's pictures are of either, and labels fit."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    bright = np.where(labels[:, None] == np.array([0, 0, 0, 0, 1, 1, 1, 1]), 230, 25) + rng.normal(0, 5, (600, 8))
    facts = Images(shape=(2, 4), bounds=(0, 255), labels=(0, 1))
    settings = {"epsilon": 1e4, "delta": 1e-5, "n_teachers": 6, "steps": 80, "batch_size": 48, "lr": 5e-3}
    for kind in KINDS:
        images, told = kind(**settings).fit((bright.reshape(-1, 2, 4), labels), schema=facts, rng=0).sample(400, rng=1)
        top, bottom = images[:, 0].mean(axis=1), images[:, 1].mean(axis=1)
        assert ((bottom > top) == (told == 1)).mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_a_book_is_charged_once_and_samples_cost_nothing(kind):
    book = dp.Ledger("sqlite://").open("people", epsilon=2.0, delta=1e-5)
    fitted = kind(**SMALL).fit(TABLE, schema=FACTS, book=book)
    spent = book.spent()
    fitted.sample(10)
    assert book.spent() == spent
    assert not fitted.reproducible_
    assert [entry.label for entry in book.entries()][1:] == [kind.__name__]


MISTAKES = [
    ({"steps": 0}, "steps"),
    ({"n_teachers": 0}, "n_teachers"),
    ({"votes": "loud"}, "votes"),
    ({"delta": 0.0}, "delta"),
    ({"batch_size": 1}, "batch_size"),
    ({"lr": -1.0}, "lr"),
    ({"adjacency": "zero-out"}, "adjacency"),
    ({"bins": PrivateBins(3)}, "PrivateBins"),
    ({"target": "shoe"}, "target"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("facts", "said"), MISTAKES, ids=[said for _, said in MISTAKES])
def test_public_mistakes_are_found_before_the_charge(kind, facts, said):
    with pytest.raises(ValueError, match=said):
        kind(**SMALL | facts).operation(FACTS)


@pytest.mark.parametrize(
    ("facts", "said"),
    [({"projections": 999}, "projections"), ({"reach": 0.0}, "reach"), ({"threshold": 2.0}, "threshold")],
    ids=["projections", "reach", "threshold"],
)
def test_what_only_g_pate_is_told_is_checked_too(facts, said):
    with pytest.raises(ValueError, match=said):
        GPATE(**SMALL | facts).operation(FACTS)


@pytest.mark.parametrize(
    "data", [TABLE, PICTURES[:, :1], PICTURES.astype(str), (PICTURES, 3)], ids=["table", "shape", "text", "pair"]
)
def test_what_are_publicly_no_images_is_refused(data):
    with pytest.raises(ValueError, match="images must be"):
        PATEGAN(**SMALL).operation(IMAGES).prepare(data)
    with pytest.raises(ValueError, match=r"pair|labels|images"):
        PATEGAN(**SMALL).operation(Images(shape=(3, 3), labels=(0, 1))).prepare(data)


def test_a_generator_that_is_not_fitted_says_so():
    with pytest.raises(ValueError, match="not fitted"):
        PATEGAN().sample(3)


def test_a_fitted_generator_can_be_copied_and_says_what_it_cost():
    fitted = made(PATEGAN)
    twin = copy.deepcopy(fitted)
    np.testing.assert_equal(twin.sample(9, rng=3), fitted.sample(9, rng=3))
    assert fitted.model_.statement["event"] == fitted.event_.to_dict()


def test_progress_is_told_once_a_step():
    told = []
    PATEGAN(**SMALL).fit(TABLE, schema=FACTS, progress=lambda share, stage: told.append((share, stage)))
    assert told == [(0.5, "votes"), (1.0, "votes")]


def test_a_coordinate_is_the_winners_middle_or_nothing_or_the_mean():
    noisy = np.array([[1.0, 9.0], [6.0, 4.0]])
    facts = {"n_teachers": 10, "vote_bins": 2, "reach": 2.0}
    assert GPATE(votes="max", **facts)._coordinates(noisy).tolist() == [1.0, -1.0]
    assert GPATE(votes="max", threshold=0.8, **facts)._coordinates(noisy).tolist() == [1.0, 0.0]
    assert GPATE(votes="mean", **facts)._coordinates(noisy) == pytest.approx([0.8, -0.2])


# --- rows and parts --------------------------------------------------------------------------------------------------


def test_a_row_is_a_function_of_its_record_and_what_does_not_fit_is_left_out():
    facts = Images(shape=(2, 2), bounds=(0, 10), labels=(0, 1))
    images = np.array([[[0, 5], [10, 99]]] * 4, float)
    images[1, 0, 0] = np.nan
    rows = facts.prepare((images, np.array([1, 1, 0, 7])))()
    assert rows.tolist() == [[0, 0.5, 1, 1, 0, 1], [0, 0.5, 1, 1, 1, 0]]
    table = TableLayout(Domain(dp.schema.Declaration(FACTS), 4))
    strange = {"age": [20, 999, "x"], "sex": ["f", "alien", "m"], "sick": ["no", "yes", "no"]}
    assert table.prepare(strange)().sum(axis=1).tolist() == [3.0, 3.0]  # the alien is nobody


@pytest.mark.parametrize("target", [None, "sex", "sick"])
def test_a_tables_rows_are_its_records_again_whichever_column_stands_last(target):
    table = TableLayout(Domain(dp.schema.Declaration(FACTS), 4), target).for_container(TABLE)
    again = table.values(table.prepare(TABLE)(), seeded(1))
    assert list(again["sex"]) == TABLE["sex"]
    assert list(again["sick"]) == TABLE["sick"]
    assert (np.asarray(again["age"]) // 25 == np.minimum(np.asarray(TABLE["age"]) // 25, 3)).all()
    assert table.classes == (0 if target is None else 2)
    assert len(PATEGAN(**SMALL | {"target": target}).fit(TABLE, schema=FACTS, rng=1).sample(7)["age"]) == 7


def test_no_records_are_no_error():
    for kind in KINDS:
        assert len(kind(**SMALL).fit(PICTURES[:0], schema=IMAGES).sample(3)) == 3


def teachers(rows, n=5, seed=0):
    parts = Parts(rows, n, b"key")
    return TeacherDiscriminators(parts, n, rows.shape[1], 0, 3, 0.05, torch.Generator().manual_seed(seed))


def test_a_teacher_that_diverges_or_has_nothing_casts_its_fixed_vote():
    rows = np.full((40, 4), np.finfo(np.float32).max, np.float32) * np.linspace(0.9, 1, 40, dtype=np.float32)[:, None]
    found, queries = teachers(rows), torch.rand(6, 4)
    for _ in range(3):
        found.learn(queries, 8)
    fixed = np.arange(5)[:, None] % 2
    wild = ~np.isfinite(found._first.detach().numpy()).all(axis=(1, 2))
    assert wild.any()
    assert (found.votes(queries)[wild] == fixed[wild]).all()
    assert (teachers(rows[:0]).votes(queries) == fixed).all()


@pytest.mark.parametrize("at", [0, 17, 59])
def test_a_record_more_or_less_changes_one_teachers_votes_only(at):
    """Bit by bit: other teachers' weights are the same numbers."""
    rows = np.random.default_rng(1).random((60, 4), np.float32)
    whole, other = teachers(rows), teachers(np.delete(rows, at, 0))
    for each in (whole, other):
        for _ in range(4):
            each.learn(torch.full((6, 4), 0.5), 8)
    changed = [i for i in range(5) if not torch.equal(whole._first[i], other._first[i])]
    assert len(changed) == 1


# --- audits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_replay_finds_nothing(kind, adjacency):
    operation = kind(**SMALL | {"adjacency": adjacency}).operation(IMAGES)

    def run(data):
        answer = charged(operation, data)
        return dp.Release(answer.value.sample(5, rng=1), answer.event)

    other = (
        fewer(PICTURES, 7)
        if adjacency == "add-remove"
        else np.concatenate([fewer(PICTURES, 7), [[[9, 1, 0], [8, 2, 5], [0, 9, 9]]]])
    )
    replay(run, PICTURES, other)
    replay(run, other, PICTURES)


def test_an_audit_of_a_generators_ballots_finds_less_than_the_claim():
    """One teacher, with records or without: all its votes move. 60 runs a side, false alarm 1e-3, fixed draws."""
    settings = PATEGAN(epsilon=4.0, delta=1e-5, n_teachers=1, steps=1, batch_size=8, hidden=4, teacher_steps=6)
    hits = []
    for rows in (PICTURES, PICTURES[:0]):
        operation, share = settings.operation(IMAGES), []
        for seed in range(60):
            ballot = record(lambda data, op=operation, seed=seed: op.release(data, seed), rows).steps[-1].output
            share.append((ballot[:, 1] - ballot[:, 0]).sum())
        hits.append(int((np.array(share) > 0).sum()))
    claimed = 1 / Budget(epsilon=4.0, delta=1e-5, noise="gaussian").noise_multiplier
    found = mu_lower_bound((hits[0], hits[1]), 60, alarm=1e-3)
    assert found < claimed


def test_the_same_audit_finds_noise_that_is_too_small():
    """Power: the counts of a ballot whose every vote moves, with the noise promised and with a third of it."""
    ballots = Ballots(Budget(epsilon=4.0, delta=1e-5, noise="gaussian"), 1, 8, 2)
    claimed = 1 / Budget(epsilon=4.0, delta=1e-5, noise="gaussian").noise_multiplier
    told = [ballots.noisy(np.full((1, 8), vote), seeded(i)) for vote in (1, 0) for i in range(400)]
    score = np.array([(each[:, 1] - each[:, 0]).sum() for each in told]).reshape(2, 400)
    assert 0.4 * claimed < mu_lower_bound(tuple((score > 0).sum(axis=1)), 400, alarm=1e-3) < claimed
    loud = np.array([8, -8])[:, None] + (score - np.array([8, -8])[:, None]) / 3
    assert mu_lower_bound(tuple((loud > 4).sum(axis=1)), 400, alarm=1e-3) > claimed
