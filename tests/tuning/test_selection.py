"""Private selection: the number of runs, what is kept, what is charged, and what one record can do."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import events, random, tuning
from discreet import statistics as st
from discreet.accounting.selection import Runs, success
from discreet.release import Release
from discreet.tuning.runs import draw_runs


def law(runs: Runs, size: int) -> np.ndarray:
    """Pr[K = 0], Pr[K = 1], …, by recursion from the first term, independent of the sampler."""
    terms = np.zeros(size)
    if math.isinf(runs.shape):
        terms[0] = math.exp(-runs.mean)
        for k in range(1, size):
            terms[k] = terms[k - 1] * runs.mean / k
        return terms
    gamma = success(runs.mean, runs.shape)
    terms[1] = 1.0
    for k in range(1, size - 1):
        terms[k + 1] = terms[k] * (1 - gamma) * (k + runs.shape) / (k + 1)
    return terms / terms.sum()


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5, 1.0, 2.5, math.inf])
def test_the_number_of_runs_has_its_law(shape: float) -> None:
    """Chi-square at level 1e-6 a law; runs drawn at another mean are told apart."""
    from scipy.stats import chisquare

    runs, rng, n = Runs(3.0, shape), random.as_rng(11), 3000
    drawn = np.array([draw_runs(runs, rng) for _ in range(n)])
    counts = np.bincount(np.minimum(drawn, 12), minlength=13)

    def level(claimed: Runs) -> float:
        expected = law(claimed, 4000)
        expected = np.append(expected[:12], expected[12:].sum()) * n
        used = expected > 0
        assert counts[~used].sum() == 0
        return float(chisquare(counts[used], expected[used] * (n / expected[used].sum())).pvalue)

    assert level(runs) > 1e-6
    assert level(Runs(5.0, shape)) < 1e-6


@pytest.mark.parametrize("shape", [-0.9, -0.5, -0.05, 0.0, 0.7])
def test_many_runs_are_drawn_in_about_as_many_coins(shape: float) -> None:
    """Not in as many as the rarest success needs, which is some power of the mean."""

    class Counted:
        coins = 0
        rng = random.as_rng(5)

        def below(self, limit: int) -> int:
            self.coins += 1
            return int(self.rng.below(limit))

    counted = Counted()
    for _ in range(4):
        draw_runs(Runs(300.0, shape), counted)  # type: ignore[arg-type]
    assert counted.coins < 4 * 300 * 60


def test_a_law_from_which_a_draw_hardly_ends_is_refused_before_the_charge() -> None:
    def searching(mean: float, law: Any) -> tuning.Selection:
        run = Fixed(1.0, events.PureDP(epsilon=1.0))
        return tuning.Selection(train=lambda _: run, space=[{}], score=ByValue(), mean=mean, law=law, default=0)

    for mean, law in ((1 + 1e-9, "geometric"), (2.0, 1e-9), (1.00001, 50.0)):
        with pytest.raises(ValueError, match=r"mean is .* near to one"):
            searching(mean, law)
    for mean, law in ((1.0, "geometric"), (1 + 1e-9, "logarithmic"), (1.01, "geometric"), (2.0, "poisson")):
        searching(mean, law)


class Fixed:
    """An operation that releases what it was told, at a stated price."""

    unit = "one record"

    def __init__(self, value: Any, event: events.Event) -> None:
        self.value, self.event = value, event

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        if self.value == "fails":
            raise RuntimeError("a private record: 42")
        return Release(self.value, self.event)


class ByValue:
    """A score that is the model itself."""

    unit = "one record"
    event = events.PureDP(epsilon=0.1)

    def release(self, data: Any = None, rng: Any = None) -> Release[float]:
        return Release(float(data[0]), self.event)


def choose(values: list[Any], **options: Any) -> tuning.Chosen:
    event = options.pop("event", events.PureDP(epsilon=0.5))
    space = [{"value": value} for value in values]
    settings = {"score": ByValue(), "mean": 20.0, "law": "geometric", "rng": 8} | options
    return tuning.select(lambda params: Fixed(params["value"], event), space, [1, 2], **settings)


def test_the_best_of_the_runs_is_kept_with_its_parameters_and_the_price_of_the_search() -> None:
    chosen = choose([1.0, 5.0, 3.0])
    assert chosen.params == {"value": 5.0}
    assert chosen.model == chosen.score == 5.0
    run = events.PureDP(epsilon=0.5) + events.PureDP(epsilon=0.1)
    assert chosen.event == events.Selected(event=events.OneOf(events=(run,)), mean=20, law="geometric")


def test_a_failing_candidate_scores_worst_and_says_nothing() -> None:
    assert choose(["fails", 2.0, math.nan]).model == 2.0
    assert choose(["fails"]).failed
    assert "42" not in repr(choose(["fails"]))


@pytest.mark.parametrize("rng", [None, 8])
def test_what_candidates_and_scores_draw_by_themselves_is_secret(rng: Any) -> None:
    """They meet records row after row, so a seed of the process would give other rows other draws when one leaves."""
    drawn: list[float] = []

    class Drawing(Fixed):
        def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
            drawn.append(float(np.random.rand()))  # noqa: NPY002
            return super().release(data, rng)

    def search() -> list[float]:
        drawn.clear()
        np.random.seed(0)  # noqa: NPY002
        tuning.select(
            lambda params: Drawing(1.0, events.PureDP(epsilon=0.5)), [{}], [1, 2], score=ByValue(), mean=3.0, rng=rng
        )
        assert float(np.random.rand()) == np.random.RandomState(0).rand()  # noqa: NPY002
        return list(drawn)

    one, other = search(), search()
    assert (one == other) == (rng is not None)
    assert len(set(one)) == len(one)


def test_losers_are_destroyed() -> None:
    made: list[weakref.ref[Any]] = []

    class Model(float):
        pass

    class Trains(Fixed):
        def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
            model = Model(len(made) % 7)
            made.append(weakref.ref(model))
            return Release(model, self.event)

    event = events.PureDP(epsilon=0.5)
    settings: dict[str, Any] = {"score": ByValue(), "mean": 20.0, "law": "geometric", "rng": 8}
    chosen = tuning.select(lambda params: Trains(None, event), [{}], None, **settings)
    gc.collect()
    assert len(made) > 3
    assert [ref() for ref in made if ref() is not None] == [chosen.model]


def test_a_cap_makes_that_many_runs_whatever_was_drawn() -> None:
    calls: list[int] = []

    class Counts(Fixed):
        def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
            calls.append(1)
            return Release(1.0, self.event)

    event = events.PureDP(epsilon=0.5)
    for seed in range(3):
        calls.clear()
        tuning.select(lambda p: Counts(1.0, event), [{}], None, score=ByValue(), mean=2.0, cap=9, rng=seed)
        assert len(calls) == 9


def test_no_run_at_all_returns_the_declared_default() -> None:
    found = {choose([1.0], mean=1.0, law="poisson", default="nothing", rng=seed).model for seed in range(20)}
    assert found == {1.0, "nothing"}  # missed by chance: twenty times the same has probability below 2e-4, seeds fixed
    with pytest.raises(ValueError, match="default is missing"):
        choose([1.0], law="poisson")


def test_the_book_is_charged_once_for_the_whole_search_before_anything_runs(tmp_path: Any) -> None:
    book = dp.Ledger(tmp_path / "budget.db").open("search", epsilon=2.0, delta=1e-6)
    choose([1.0, 2.0], mean=10.0, law="logarithmic", book=book)
    assert [entry.label for entry in book.entries()][-1] == "private selection"
    ran: list[int] = []

    class Notes(Fixed):
        def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
            ran.append(1)
            return super().release(data, rng)

    dear = events.PureDP(epsilon=5.0)
    with pytest.raises(dp.BudgetExceeded):
        tuning.select(lambda p: Notes(1.0, dear), [{}], None, score=ByValue(), book=book)
    assert not ran


def test_candidates_of_different_cost_are_priced_as_the_costliest() -> None:
    prices = {"small": events.PureDP(epsilon=0.2), "large": events.PureDP(epsilon=0.8)}
    search = tuning.Selection(
        train=lambda p: Fixed(1.0, prices[p["size"]]), space={"size": ["small", "large"]}, score=ByValue(), mean=5
    )
    alike = tuning.Selection(train=lambda p: Fixed(1.0, prices["large"]), space=[{}], score=ByValue(), mean=5)
    assert dp.epsilon(search.event, 1e-6) == pytest.approx(dp.epsilon(alike.event, 1e-6), rel=1e-3)


def test_a_candidate_that_protects_another_unit_is_refused() -> None:
    class Household(Fixed):
        unit = "one household"

    with pytest.raises(ValueError, match="must all protect the same"):
        tuning.Selection(train=lambda p: Household(1.0, events.PureDP(epsilon=1.0)), space=[{}], score=ByValue())


def test_the_cost_is_said_before_the_run() -> None:
    search = tuning.Selection(
        train=lambda p: st.Mean(bounds=(0, 1), epsilon=1.0), space=[{}], score=ByValue(), mean=10, law="logarithmic"
    )
    assert search.cost(1e-6).startswith("ε = 1.1 per candidate becomes ")
    assert "(mean 10, logarithmic)" in search.cost(1e-6)


def test_public_mistakes_of_any_candidate_are_found_before_the_charge(tmp_path: Any) -> None:
    book = dp.Ledger(tmp_path / "budget.db").open("search", epsilon=5.0, delta=1e-6)
    with pytest.raises(ValueError, match="values is a str"):
        tuning.select(lambda p: st.Mean(bounds=(0, 1), epsilon=1.0), [{}], "text", score=ByValue(), book=book)
    assert book.spent().epsilon == 0


def test_one_record_that_no_model_can_predict_moves_the_count_by_one() -> None:
    class Strict:
        def predict(self, X: np.ndarray) -> np.ndarray:
            if not np.isfinite(X).all():
                raise ValueError("NaN")
            return np.ones(len(X))

    rows, targets = np.zeros((50, 2)), np.ones(50)
    odd = rows.copy()
    odd[7] = np.nan
    from discreet.encoding.rowwise import map_rows
    from discreet.tuning.scores import _agreeing

    counts = [_agreeing(map_rows(Strict().predict, x, 50), targets) for x in (rows, odd)]
    assert counts == [50, 49]
    objects = targets.astype(object)
    objects[3] = np.array([1, 2])  # comparing gives an array, whose truth is an error
    assert _agreeing(map_rows(Strict().predict, rows, 50), objects) == 49


def predicted(answer: Any, frame: Any) -> int:
    """How many of a frame's targets, all of them one, a model gets right that fails on any text."""
    from discreet.encoding.rowwise import map_rows
    from discreet.tuning.scores import _agreeing

    def predict(rows: Any) -> Any:
        if any(isinstance(entry, str) for entry in rows["x"]):
            raise TypeError
        return answer(rows)

    return _agreeing(map_rows(predict, frame, len(frame)), np.ones(len(frame)))


@pytest.mark.parametrize("form", ["series", "frame", "column", "squeezed", "wide frame"])
def test_one_record_moves_the_count_by_one_whatever_holds_the_predictions(form: str) -> None:
    import pandas as pd

    answers: dict[str, Any] = {
        "series": lambda rows: pd.Series(1.0, index=rows.index),
        "frame": lambda rows: pd.DataFrame({"y": 1.0}, index=rows.index),
        "column": lambda rows: np.ones((len(rows), 1)),
        "squeezed": lambda rows: np.squeeze(np.ones(len(rows))),
        "wide frame": lambda rows: pd.DataFrame({"no": 0.0, "yes": 1.0}, index=rows.index),
    }
    for size in (1, 2, 20):
        rows = pd.DataFrame({"x": np.zeros(size)})
        odd = pd.concat([rows, pd.DataFrame({"x": ["text"]})], ignore_index=True)
        right = 0 if form == "wide frame" else size
        assert predicted(answers[form], rows) == predicted(answers[form], odd) == right


@pytest.mark.parametrize("odd", ["text", None, [1.0, 2.0], complex(1), object()], ids=lambda odd: type(odd).__name__)
def test_a_value_that_is_no_number_counts_nothing_in_a_total(odd: Any) -> None:
    score = tuning.Total(values=lambda model, records: records, bounds=(-1.0, 0.0), epsilon=1e6)
    assert score.release((None, [-0.5] * 3 + [odd]), rng=1).value == pytest.approx(-1.5, abs=0.01)


def test_targets_may_be_a_frame_of_one_column_of_any_length() -> None:
    import pandas as pd

    class Ones:
        def predict(self, X: Any) -> Any:
            return np.ones(len(X))

    for size in (1, 2, 5):
        data = np.zeros((size, 1)), pd.DataFrame({"y": [1.0] * size})
        assert tuning.Correct(epsilon=1e6).release((Ones(), data), rng=1).value == size


def test_runs_share_neither_an_operation_nor_its_parameters() -> None:
    """An operation that trains in place must not train on, nor the best model change after it was scored."""

    class InPlace(Fixed):
        def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
            self.value.append(1)
            return Release(self.value, self.event)

    class Length(ByValue):
        def release(self, data: Any = None, rng: Any = None) -> Release[float]:
            return Release(float(len(data[0])), self.event)

    def train(params: dict[str, Any]) -> Any:
        return InPlace(params["layers"], events.PureDP(epsilon=0.5))

    space = [{"layers": []}]
    chosen = tuning.select(train, space, None, score=Length(), mean=20.0, law="geometric", cap=30, rng=8)
    assert (chosen.model, chosen.score, chosen.params, space) == ([1], 1.0, {"layers": []}, [{"layers": []}])


def test_a_run_that_would_cost_more_than_was_charged_does_not_happen() -> None:
    made: list[float] = []

    def train(params: dict[str, Any]) -> Any:
        made.append(1.0)
        return Fixed(5.0, events.PureDP(epsilon=0.5 * len(made)))

    assert tuning.select(train, [{}], None, score=ByValue(), mean=5.0, law="geometric", rng=8).failed


def test_spaces_are_public_lists() -> None:
    from scipy.stats import loguniform

    grid = tuning.candidates({"b": [1, 2], "a": [3]})
    assert grid == [{"a": 3, "b": 1}, {"a": 3, "b": 2}]
    drawn = tuning.candidates({"lr": loguniform(1e-3, 1)}, size=5)
    assert drawn == tuning.candidates({"lr": loguniform(1e-3, 1)}, size=5)
    assert len(drawn) == 5
    with pytest.raises(ValueError, match="space is empty"):
        tuning.candidates([])


def test_the_cost_is_told_before_anything_is_read(capsys):
    """On standard error, and before the data is touched: here there is none to be touched."""

    class Unread:
        def __array__(self, *_, **__):
            raise RuntimeError("read")

        def __iter__(self):
            raise RuntimeError("read")

    near = tuning.Total(values=lambda mean, x: -np.abs(x - mean), bounds=(-1, 0), epsilon=0.5)
    train = lambda params: st.Mean(bounds=(0, params["high"]), epsilon=0.5)  # noqa: E731
    best = tuning.select(train, {"high": [1.0, 2.0]}, Unread(), score=near, mean=2, delta=1e-6, rng=1)
    told = capsys.readouterr().err
    assert told.startswith("ε = 1 per candidate becomes ")
    assert "(mean 2, logarithmic), at δ = 1e-06." in told
    assert best.failed


def test_torch_models_are_searched_and_charged_once():
    torch = pytest.importorskip("torch")
    from discreet.training import Training

    x = torch.linspace(-1, 1, 60).reshape(30, 2)
    y = (x[:, 0] > 0).long()

    def train(params):
        return Training(
            lambda: torch.nn.Linear(2, 2), dataset_size=30, batch_size=10, epochs=1, noise_multiplier=1.0, **params
        )

    charges = []

    class Book:
        def charge(self, event, label="", *, unit="one record", reproducible=False):
            charges.append((event, label, unit))

    best = tuning.search(train, {"lr": [0.1, 1.0]}, (x, y), score_epsilon=0.5, mean=1.5, book=Book(), rng=3)
    assert set(best.params) == {"lr"}
    assert [label for _, label, _ in charges] == ["private selection"]
    assert charges[0][0] == best.event
    assert isinstance(best.model, torch.nn.Linear)
    with pytest.raises(ValueError, match="score_epsilon"):
        tuning.search(train, {"lr": [0.1]}, (x, y))
