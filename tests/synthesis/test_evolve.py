"""Private Evolution: what a vote is, what it costs, what it finds, and what is refused."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.errors import BudgetExceeded
from discreet.release import charged
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import (
    CellVariations,
    Evolve,
    Images,
    ImageVariations,
    LayoutVariations,
    StrokeVariations,
    TextVariations,
    evolve,
)
from discreet.synthesis.nearest import count_votes, embed_rows, nearest, whole_features

BITS = [f"b{place}" for place in range(6)]
FACTS = Schema({name: Categories([0, 1]) for name in BITS} | {"age": Bounded(0, 100, missing=0)})
ASKED = itertools.count()
GREY = Images(shape=(6, 6), bounds=(0, 255), labels=("dark", "light"))


def table(n, seed=0):
    """Five fair bits, the sixth their parity, and an age by it: no five of the six bits tell anything."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 5))
    parity = bits.sum(axis=1) % 2
    columns = dict(zip(BITS, [*bits.T, parity], strict=True))
    return columns | {"age": 30.0 + 30.0 * parity}


class Levels(LayoutVariations):
    """Images of one grey."""

    def draw(self, n, rng):
        return rng.random(n)

    def vary(self, candidates, degree, rng):
        return np.clip(candidates + rng.normal(0, 0.2 * degree, len(candidates)), 0, 1)

    def rows(self, candidates):
        return np.repeat(candidates[:, None], 36, axis=1)


def parities(rows):
    return np.mean(sum(np.asarray(rows[name], int) for name in BITS) % 2 == 0)


# --- votes -----------------------------------------------------------------------------------------------------------


def test_a_vote_is_the_nearest_by_brute_force_and_depends_on_no_other_record():
    rng = np.random.default_rng(1)
    rows, candidates = rng.random((5000, 20)).astype(np.float32), rng.random((60, 20)).astype(np.float32)
    rows[100] = (candidates[3] + candidates[7]) / 2  # as near a tie as floats allow
    features, own = whole_features(rows), whole_features(candidates)
    together = nearest(features, own)
    assert together.tolist() == [int(((own - row) ** 2).sum(axis=1).argmin()) for row in features]
    for kept in (np.arange(1, 5000), np.array([100]), rng.permutation(5000)):
        assert (nearest(features[kept], own) == together[kept]).all()


def test_one_record_more_is_one_vote_more_of_its_class():
    rng = np.random.default_rng(2)
    features, own = rng.integers(0, 255, (300, 8)).astype(float), rng.integers(0, 255, (20, 8)).astype(float)
    codes, classes = rng.integers(0, 2, 300), np.repeat([0, 1], 10)
    all_votes = count_votes(features, codes, own, classes)
    for left_out in range(0, 300, 37):
        kept = np.arange(300) != left_out
        change = all_votes - count_votes(features[kept], codes[kept], own, classes)
        assert sorted(change.tolist()) == [0] * 19 + [1]
        assert classes[change.argmax()] == codes[left_out]


def test_a_record_on_which_an_embedding_fails_has_no_vote_and_moves_no_other():
    def embedding(rows):
        if np.isclose(rows, 0.5).any():
            raise RuntimeError("one record in the block")
        return rows @ np.arange(12.0).reshape(4, 3)

    rows = np.random.default_rng(3).random((700, 4))
    alone, readable = embed_rows(embedding, rows)
    rows[5], rows[9] = 0.5, np.inf
    with_odd, still = embed_rows(embedding, rows, 3)
    assert readable.all()
    assert np.flatnonzero(~still).tolist() == [5, 9]
    assert (with_odd[still] == alone[still]).all()


def test_a_variant_whose_records_vote_twice_is_caught_by_replay(monkeypatch):
    rows = {name: values[:40] for name, values in table(40).items()}
    fewer = {name: values[1:] for name, values in rows.items()}
    operation = Evolve(CellVariations(FACTS), epsilon=1.0, delta=1e-6, rounds=2, candidates=10).operation()
    assert replay(operation.release, rows, fewer).steps
    monkeypatch.setattr(evolve, "count_votes", lambda *given: 2 * count_votes(*given))
    with pytest.raises(ReplayError, match="differs by 2"):
        replay(operation.release, rows, fewer)


def test_odd_records_move_no_other_and_say_nothing():
    """A signalling NaN and a number beyond doubles would warn, and a text may fail at whatever is done with it."""

    class Odd(str):
        def casefold(self):
            raise RuntimeError("what this record says")

    images = np.full((6, 2, 2), 51, np.float32)
    images.view(np.uint32)[0, 0, 0] = 0x7FA00000
    wide = np.full((6, 2, 2), 51, np.longdouble)
    wide[0, 0, 0] = np.finfo(np.longdouble).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [len(Images(shape=(2, 2)).prepare(rows)()) for rows in (images, wide)] == [5, 6]
    read = TextVariations(["x"], {}).prepare([Odd("Ann"), "Ann", "\ud800", "é" * 10_000, "é" * 10_100])
    rows, _ = read()
    assert (rows[0] == rows[1]).all()
    assert (rows[3] == rows[4]).all()


def test_distances_of_cells_are_what_the_page_says():
    """Numbers lie as far apart as the cells between them, however many there are, and also where some are missing."""
    for bins in (4, 16, 1000, 1 << 16):
        facts = Schema(age=Bounded(0, 1, missing=0), income=Bounded(0, 1), sex=Categories(["f", "m"]))
        cells = CellVariations(facts, bins=bins)
        pairs = [[0, 0, 0], [bins - 1, 0, 0], [0, bins // 2, 0], [0, bins, 0], [0, 0, 1]]
        features = cells.features(cells.rows(np.array(pairs)))
        assert (features == np.rint(features)).all()
        squares = ((features[1:] - features[0]) ** 2).sum(axis=1) / 2.0**24
        assert squares == pytest.approx([1 - 1 / bins, 0.5, 2, 2], rel=0.02)


def test_numbers_that_may_be_missing_vary_as_numbers():
    cells, rng = CellVariations(Schema(age=Bounded(0, 1)), bins=50), np.random.default_rng(6)
    varied = cells.vary(np.full((2000, 1), 25), 0.1, rng)[:, 0]
    numbers = varied[varied < 50]
    assert 1900 < len(numbers) < 2000
    assert np.abs(numbers - 25).max() <= 5
    again = cells.vary(np.full((2000, 1), 50), 0.1, rng)[:, 0]
    assert sorted(set(again)) == list(range(50))


# --- cost ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("rounds", [1, 7, 30])
def test_the_event_is_a_gaussian_a_round_and_costs_no_more_than_asked(adjacency, rounds):
    settings = {"epsilon": 0.7, "delta": 1e-6, "rounds": rounds, "candidates": 50, "adjacency": adjacency}
    event = Evolve(CellVariations(FACTS), **settings).operation().event
    assert 0.69 < dp.epsilon(event, delta=1e-6, adjacency=adjacency) <= 0.7
    assert isinstance(event.event, dp.events.Gaussian)
    assert event.count == rounds


def test_a_book_is_charged_before_a_record_is_read_and_a_unit_counts_once():
    book = dp.Ledger("sqlite://").open("table", epsilon=1.2, delta=1e-5, unit="who")
    columns = table(200) | {"who": np.zeros(200, int)}
    generator = CellVariations(Declaration(FACTS, unit="who"))
    settings = {"epsilon": 1.0, "delta": 1e-6, "rounds": 2, "candidates": 10, "threshold": 0.0}
    fitted = Evolve(generator, **settings).fit(columns, book=book)
    assert fitted.population_.votes.sum() < 200  # one vote, and noise of deviation 6
    assert book.spent().epsilon <= 1.0
    with pytest.raises(BudgetExceeded):
        Evolve(generator, **settings).fit(columns, book=book)


# --- what it finds ---------------------------------------------------------------------------------------------------


def test_a_table_of_a_high_order_is_found_which_pairs_and_triples_do_not_show():
    """False alarm: of 2,000 fair coins 70 % show heads with a chance below 1e-70."""
    generator = CellVariations(FACTS, bins=10, whole=["age"])
    fitted = Evolve(generator, epsilon=2.0, delta=1e-6, rounds=4, candidates=300).fit(table(20_000), rng=1)
    sample = fitted.sample(2000, rng=2)
    assert parities(sample) > 0.9
    marginals = dp.synthesis.TableSynthesizer(2.0, 1e-6, workload=3, bins=10).fit(table(20_000), schema=FACTS, rng=1)
    assert parities(marginals.sample(2000, rng=2)) < 0.7
    assert sorted(sample) == sorted(table(1))
    assert np.asarray(sample["age"]).dtype.kind == "i"


def test_images_of_a_class_are_like_the_records_of_that_class():
    rng = np.random.default_rng(4)
    light = rng.integers(0, 2, 4000)
    images = np.where(light[:, None, None] == 1, 220, 20) + rng.integers(-20, 20, (4000, 6, 6))
    labels = np.where(light == 1, "light", "dark")
    images[0], labels[1] = np.nan if images.dtype.kind == "f" else 255, "neither"
    public = rng.integers(0, 256, (200, 1, 1)) * np.ones((1, 6, 6))
    fitted = Evolve(ImageVariations(public, GREY), epsilon=1.0, delta=1e-6, rounds=3, candidates=60)
    made, told = fitted.fit((images, labels), rng=1).sample(500, rng=2)
    assert made.shape == (500, 6, 6)
    assert made[told == "light"].mean() > 180
    assert made[told == "dark"].mean() < 75
    assert 0.35 < np.mean(told == "light") < 0.65  # classes come as often as records vote


def test_strokes_need_no_public_image():
    cross = np.zeros((6, 6))
    cross[2:4], cross[:, 2:4] = 255, 255
    frame = 255 - cross
    images, labels = np.array([cross, frame] * 1000), np.array(["dark", "light"] * 1000)
    generator = StrokeVariations(GREY, strokes=2)
    drawn, told = (
        Evolve(generator, epsilon=2.0, delta=1e-6, rounds=6, candidates=80)
        .fit((images, labels), rng=1)
        .sample(400, rng=2)
    )
    for name, model in (("dark", cross), ("light", frame)):
        other = frame if name == "dark" else cross
        assert (
            np.abs(drawn[told == name].mean(axis=0) - model).mean()
            < np.abs(drawn[told == name].mean(axis=0) - other).mean()
        )


def test_texts_come_from_templates_that_records_are_near():
    words = {"who": ["Ann", "Bob", "Cid"], "what": ["a fever", "a cough", "two broken ribs"]}
    generator = TextVariations(["{who} has {what}.", "{who} is well."], words, labels=("ill", "well"))
    rng = np.random.default_rng(5)
    labels = ["ill" if coin else "well" for coin in rng.integers(0, 2, 3000)]
    texts = ["Bob has a very bad cough." if label == "ill" else "Ann is well" for label in labels]
    odd = [None, 7, float("nan"), "", "x" * 10_000]
    fitted = Evolve(generator, epsilon=1.0, delta=1e-6, rounds=3, candidates=40)
    made, told = fitted.fit((texts + odd, labels + ["ill"] * 5), rng=1).sample(300, rng=2)
    assert np.mean([text == "Bob has a cough." for text, label in zip(made, told, strict=True) if label == "ill"]) > 0.8
    assert np.mean([text == "Ann is well." for text, label in zip(made, told, strict=True) if label == "well"]) > 0.8


def test_what_is_drawn_again_is_repeated_or_varied_as_asked():
    fitted = Evolve(CellVariations(FACTS), epsilon=1.0, delta=1e-6, rounds=2, candidates=8).fit(table(500), rng=1)
    plain, varied = ({tuple(row) for row in np.stack([rows[name] for name in BITS], axis=1)}
                     for rows in (fitted.sample(400, rng=3), fitted.sample(400, rng=3, degree=0.5)))  # fmt: skip
    assert len(plain) <= 8 < len(varied)


def test_a_generator_of_ones_own_is_asked_for_draws_variations_and_rows_alone():
    images, labels = np.full((2000, 6, 6), 51), np.array(["dark"] * 2000)
    embedding = lambda rows: rows.mean(axis=1, keepdims=True)  # noqa: E731
    fitted = Evolve(Levels(GREY), embedding, epsilon=1.0, delta=1e-6, rounds=5, candidates=40)
    made, told = fitted.fit((images, labels), rng=1).sample(200, rng=2)
    assert abs(np.median(made[told == "dark"]) - 51) < 10


def test_a_candidate_that_has_no_features_gets_no_vote_and_fails_no_fit():
    """Known only after the charge: a failure would cost the budget."""

    class FailingLater(Levels):
        def rows(self, candidates):
            return np.where(candidates > 0.5, np.nan, candidates)[:, None].repeat(36, axis=1)

        def draw(self, n, rng):
            return 0.5 * rng.random(n)

    images, labels = np.full((500, 6, 6), 140), np.array(["dark"] * 500)
    for embedding in (None, lambda rows: rows[:, :2] / (not np.isnan(rows).any())):
        fitted = Evolve(FailingLater(GREY), embedding, epsilon=1.0, delta=1e-6, rounds=4, candidates=40)
        population = fitted.fit((images, labels), rng=1).population_
        assert (population.candidates > 0.5).any()
        assert (population.votes[population.candidates > 0.5] == 0).all()


def test_variations_that_are_longer_or_no_whole_numbers_are_kept_as_they_are():
    class Growing(Levels):
        def draw(self, n, rng):
            return np.array(["a"] * n)

        def vary(self, candidates, degree, rng):
            return np.array([text + "b" for text in candidates])

        def rows(self, candidates):
            return super().rows(np.array([min(len(text) / 10, 1) for text in candidates]))

    images, labels = np.full((500, 6, 6), 100), np.array(["dark"] * 500)
    fitted = Evolve(Growing(GREY), epsilon=1.0, delta=1e-6, rounds=4, candidates=20).fit((images, labels), rng=1)
    assert "abbb" in fitted.population_.candidates


def test_progress_is_told_round_by_round():
    stages = []
    settings = {"epsilon": 1.0, "delta": 1e-6, "rounds": 3, "candidates": 8}
    Evolve(CellVariations(FACTS), **settings).fit(
        table(50), rng=1, progress=lambda share, stage: stages.append((share, stage))
    )
    assert stages == [(0.0, "round 1 of 3"), (1 / 3, "round 2 of 3"), (2 / 3, "round 3 of 3"), (1.0, "done")]


# --- what is refused -------------------------------------------------------------------------------------------------


def replaced(**methods):
    """A generator of one's own in which something is wrong."""
    return type("Wrong", (Levels,), {name: staticmethod(method) for name, method in methods.items()})(GREY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"generator": replaced(draw=lambda n, rng: [0.5] * n)}, "draw must give an array"),
        ({"generator": replaced(draw=lambda n, rng: rng.random(n - 1))}, "draw must give an array"),
        ({"generator": replaced(vary=lambda candidates, degree, rng: candidates[:1])}, "vary must give"),
        ({"generator": replaced(vary=lambda candidates, degree, rng: candidates * np.nan)}, "rows gives"),
        ({"generator": replaced(rows=lambda candidates: np.zeros((len(candidates), 6, 6)))}, "36 numbers"),
        ({"generator": replaced(rows=lambda candidates: np.zeros((len(candidates), 37)))}, "36 numbers"),
        ({"generator": replaced(rows=lambda candidates: np.full((len(candidates), 36), 255))}, "from 0 to 1"),
        ({"generator": replaced(rows=lambda candidates: np.zeros((3, 36)))}, "3 rows for 2 candidates"),
        ({"generator": replaced(features=lambda rows: rows / 3)}, "no whole numbers"),
        ({"embedding": lambda rows: rows - rows.mean(axis=0)}, "beside other rows"),
        ({"embedding": lambda rows: rows[:, :3] + next(ASKED)}, "asked again"),
    ],
    ids=itertools.count(),
)
def test_a_generator_or_an_embedding_that_fails_is_refused_before_the_charge(settings, message):
    book = dp.Ledger("sqlite://").open("images", epsilon=3.0, delta=1e-5)
    asked = {"generator": Levels(GREY), "epsilon": 1.0, "delta": 1e-6, "rounds": 2, "candidates": 8} | settings
    images, labels = np.full((20, 6, 6), 51), np.array(["dark", "light"] * 10)
    with pytest.raises(ValueError, match=message):
        charged(Evolve(**asked).operation(), (images, labels), book=book)
    assert book.spent().epsilon == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"generator": FACTS}, "generator is Schema"),
        ({"rounds": 0}, "rounds is 0"),
        ({"candidates": 1}, "candidates is 1"),
        ({"threshold": -1.0}, "threshold is -1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"delta": 0.0}, "delta"),
        ({"adjacency": "near"}, "near"),
        ({"embedding": lambda rows: rows / 0 if rows is None else rows[:, :0]}, "embedding gives 0 numbers"),
        ({"embedding": lambda rows: np.zeros((len(rows), 2000))}, "embedding gives 2000 numbers"),
        ({"embedding": lambda rows: 1 / 0}, "embedding"),
    ],
    ids=itertools.count(),
)
def test_what_is_publicly_wrong_is_refused_before_the_charge(settings, message):
    book = dp.Ledger("sqlite://").open("table", epsilon=3.0, delta=1e-5)
    asked = {"generator": CellVariations(FACTS), "epsilon": 1.0, "delta": 1e-6, "rounds": 2, "candidates": 8} | settings
    with pytest.raises(ValueError, match=message):
        charged(Evolve(**asked).operation(), table(50), book=book)
    assert book.spent().epsilon == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ImageVariations(np.zeros((3, 5, 5)), GREY), "public has shape"),
        (lambda: ImageVariations(np.full((3, 6, 6), np.nan), GREY), "no numbers"),
        (lambda: ImageVariations(np.zeros((3, 4)), Images(shape=(4,))), "two dimensions"),
        (lambda: StrokeVariations(Images(shape=(6, 6, 3))), "two dimensions"),
        (lambda: StrokeVariations(GREY, strokes=0), "strokes is 0"),
        (lambda: TextVariations([], {}), "templates must be a list"),
        (lambda: TextVariations(["{who} sings."], {}), "words says nothing of 'who'"),
        (lambda: TextVariations(["x"], {"who": "Ann"}), "words"),
        (lambda: CellVariations(FACTS, bins=dp.synthesis.PrivateBins(4)), "PrivateBins"),
        (lambda: CellVariations(Schema(a=Categories([0, 1])), target="a"), "no column beside the target"),
        (lambda: TextVariations(["{who}", "{who:d}"], {"who": ["Ann"]}), "cannot be filled in"),
        (lambda: TextVariations(["x"], {}).prepare("one text"), "list or a column"),
        (lambda: TextVariations(["x"], {}).prepare({"text": ["a"]}), "a dict"),
        (lambda: TextVariations(["x"], {}).prepare(pd.DataFrame({"text": ["a"]})), "named columns"),
        (lambda: TextVariations(["x"], {}).prepare(np.arange(3)), "holds numbers"),
        (lambda: TextVariations(["x"], {}).prepare(np.array([["a"]])), "2 dimensions"),
        (lambda: TextVariations(["x"], {}).prepare(("a", "b", "c")), "no labels are declared"),
        (lambda: TextVariations(["x"], {}, labels=("a", "b")).prepare((["x"], np.array([["a"]]))), "2 dimensions"),
        (lambda: TextVariations(["x"], {}).prepare((["a"], ["b"])), "no labels are declared"),
        (lambda: TextVariations(["x"], {}, labels=("a", "b")).prepare(["a"]), "pair"),
    ],
    ids=itertools.count(),
)
def test_generators_refuse_what_is_publicly_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_nothing_is_sampled_before_a_fit():
    with pytest.raises(ValueError, match="call fit"):
        Evolve(CellVariations(FACTS)).sample(3)
