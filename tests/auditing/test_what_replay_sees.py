"""Operations that are broken on purpose, each beside an honest one: replay rejects the first and accepts the second."""

from __future__ import annotations

import functools
import socket
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet import events
from discreet.auditing import ReplayError, replay
from discreet.auditing._charges import ALARM, covers_cost, size_of_noise, too_small
from discreet.auditing._same import Incomparable, same
from discreet.mechanisms import (
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    ProposeTestRelease,
    SparseVector,
)
from discreet.random import laplace_cells, seeded, system
from discreet.random.tap import coins, draw_output
from discreet.release import Release

NOISE = Laplace(sensitivity=1.0, epsilon=1.0)
DATA, NEIGHBOUR = [0.5, 0.25, 1.0], [0.5, 0.25]


def total(x):
    return float(np.sum(x))


def honest(x):
    return NOISE.release(total(x))


def rejected(operation, match, data=DATA, neighbour=NEIGHBOUR, **options):
    with pytest.raises(ReplayError, match=match):
        replay(operation, data, neighbour, **options)


# --- errors --------------------------------------------------------------------------------------------------------


def fails(x):
    raise KeyError("a name")


def test_an_operation_that_always_fails_shows_nothing():
    rejected(fails, r"Both runs failed \(KeyError\)")
    rejected(fails, "Both runs failed", allow=(ValueError,))
    replay(fails, DATA, NEIGHBOUR, allow=(LookupError,))


def test_the_fixture_rejects_it_too(replay):
    with pytest.raises(ReplayError, match="Both runs failed"):
        replay(fails, DATA, NEIGHBOUR)
    replay(fails, DATA, NEIGHBOUR, allow=(KeyError,))


def test_an_error_whose_text_depends_on_data_is_found_though_allowed():
    def quotes(x):
        raise ValueError(f"{len(x)} records")

    rejected(quotes, "ended differently", allow=(ValueError,))


# --- where noise comes from ----------------------------------------------------------------------------------------


def test_noise_from_a_seed_is_found():
    for rng in (42, seeded(42)):
        rejected(lambda x, rng=rng: NOISE.release(total(x), rng=rng), "comes from a seed")
        replay(lambda x, rng=rng: NOISE.release(total(x), rng=rng), DATA, NEIGHBOUR, seeded=True)
    replay(lambda x: NOISE.release(total(x), rng=system()), DATA, NEIGHBOUR)


def test_a_seed_is_found_in_many_entries_drawn_by_threads():
    wide = lambda x, rng: Laplace(sensitivity=1.0, epsilon=1.0).release(np.full(20_000, total(x) / 20_000), rng=rng)  # noqa: E731
    rejected(lambda x: wide(x, 42), "comes from a seed")


def test_public_choices_may_come_from_a_seed():
    replay(lambda x: (seeded(3).below(100), honest(x)), DATA, NEIGHBOUR)


def by_hand(noise, **options):
    """A mechanism of the user's own, which says that it is Laplace noise."""
    return lambda x: Release(
        draw_output(NOISE, np.array([total(x)]), "l1", 1.0, lambda: np.array([total(x)]) + noise(), **options),
        NOISE.event,
    )


def test_noise_of_another_generator_is_found():
    rejected(by_hand(lambda: np.random.default_rng(42).laplace()), "nothing was drawn")
    rejected(by_hand(lambda: np.random.default_rng().laplace()), "nothing was drawn")
    rejected(lambda x: total(x) + np.random.default_rng().laplace(), "results differ")
    rejected(lambda x: honest(x).value + np.random.default_rng().laplace(), "results differ")
    replay(by_hand(lambda: (laplace_cells(1 << 40, 1) + 0.5) * 2.0**-40), DATA, NEIGHBOUR)


def test_a_draw_that_adds_no_noise_is_found():
    rejected(by_hand(lambda: 0.0), "nothing was drawn")
    rejected(by_hand(lambda: 0.0 * laplace_cells(1 << 40, 1)), "smaller than the steps declare")
    rejected(by_hand(lambda: laplace_cells(1 << 40, 1) * 2.0**-100), "smaller than the steps declare")


MECHANISMS = {
    "laplace": Laplace(sensitivity=1.0, epsilon=0.3),
    "gaussian": Gaussian(sensitivity=1.0, sigma=2.0),
    "discrete laplace": DiscreteLaplace(epsilon=0.3),
    "discrete laplace, mostly zero": DiscreteLaplace(epsilon=30.0),
    "discrete gaussian": DiscreteGaussian(sigma=3.0, max_size=400),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_of_half_its_scale_is_found_in_a_vector_and_honest_noise_is_not(name):
    """False alarm 1e-12. Power: 400 entries of half the noise, where noise is not mostly zero."""
    mechanism = MECHANISMS[name]
    value = np.zeros(400, int) if "discrete" in name else np.zeros(400)
    event = mechanism.event if name != "discrete gaussian" else events.DiscreteGaussian(sigma=3.0)
    limit = getattr(mechanism, "widened_sensitivity", mechanism.sensitivity)
    noise = mechanism.release(value).value
    assert not too_small(size_of_noise(event, value, noise, limit))
    half = noise // 2 if "discrete" in name else noise / 2
    assert too_small(size_of_noise(event, value, half * (half > 0), limit)) == (name != "discrete laplace, mostly zero")


def test_noise_that_a_double_cannot_hold_is_no_alarm():
    """Beside 1e300 noise of scale 1 is rounded away, by a function of the noisy value alone."""
    large = Laplace(sensitivity=1.0, epsilon=1.0, max_size=1)
    replay(lambda x: large.release(1e300), DATA, NEIGHBOUR)
    assert 0 < ALARM <= 1e-9


# --- what a run keeps ----------------------------------------------------------------------------------------------

KEPT: dict[str, float] = {}


@functools.cache
def seen_first(_, box=[]):  # noqa: B006
    return box


def in_a_global(x):
    return KEPT.setdefault("sum", total(x))


def helper(x):
    return KEPT.setdefault("of a helper", total(x))


def in_a_helper(x):
    return helper(x)


def in_a_default(x, kept=[]):  # noqa: B006
    kept.append(total(x))
    return kept[0]


def in_an_attribute(x):
    in_an_attribute.kept = getattr(in_an_attribute, "kept", total(x))
    return in_an_attribute.kept


def in_a_cache(x):
    box = seen_first("the only key")
    box.append(total(x))
    return box[0]


@dataclass
class Keeper:
    kept: float | None = None

    def release(self, x):
        self.kept = total(x) if self.kept is None else self.kept
        return self.kept

    __call__ = release


def in_a_closure():
    kept = []

    def operation(x):
        kept.append(total(x))
        return kept[0]

    return operation


def in_a_partial():
    return functools.partial(lambda kept, x: kept.setdefault("sum", total(x)), {})


KEEPERS = {
    "global": lambda: in_a_global,
    "helper's global": lambda: in_a_helper,
    "default": lambda: in_a_default,
    "attribute": lambda: in_an_attribute,
    "cache": lambda: in_a_cache,
    "bound method": lambda: Keeper().release,
    "object": Keeper,
    "closure": in_a_closure,
    "partial": in_a_partial,
}


@pytest.mark.parametrize("name", KEEPERS)
def test_a_value_kept_between_calls_is_found(name, monkeypatch):
    """Without noise, and the same on both sides because the first call decided it: seen only by fresh objects."""
    monkeypatch.setitem(globals(), "KEPT", {})
    rejected(KEEPERS[name](), "results differ")
    replay(KEEPERS[name](), DATA, NEIGHBOUR, fresh=False)  # the control: this is how it hid
    seen_first.cache_clear()
    vars(in_an_attribute).clear()


def test_data_that_a_run_changes_do_not_reach_the_next():
    shared = [0.5, 0.25, 1.0]

    def sorts(x):
        x.sort()
        return honest(x)

    replay(sorts, shared, shared[:2])
    assert shared == [0.5, 0.25, 1.0]


def test_what_cannot_be_copied_is_refused_unless_the_user_says_so():
    lock = threading.Lock()

    def locked(x):
        with lock:
            return honest(x)

    with pytest.raises(ValueError, match="fresh=False"):
        replay(locked, DATA, NEIGHBOUR)
    replay(locked, DATA, NEIGHBOUR, fresh=False)


def test_a_function_that_calls_itself_is_copied():
    def power(x, n=3):
        return honest(x) if n == 0 else power(x, n - 1)

    replay(power, DATA, NEIGHBOUR)


# --- what is charged -----------------------------------------------------------------------------------------------


def test_two_releases_declared_as_one_are_found():
    def twice(x):
        return [honest(x).value, honest(x).value]

    rejected(lambda x: Release(twice(x), NOISE.event), "cost more than the event")
    rejected(twice, "cost more than the event", event=NOISE.event)
    replay(lambda x: Release(twice(x), NOISE.event * 2), DATA, NEIGHBOUR)
    replay(twice, DATA, NEIGHBOUR, event=events.PureDP(epsilon=2.0))
    replay(lambda x: (honest(x), honest(x)), DATA, NEIGHBOUR)


def test_noise_of_a_smaller_scale_than_is_charged_is_found():
    rejected(lambda x: Release(Laplace(sensitivity=1.0, epsilon=2.0).release(total(x)).value, NOISE.event), "cost more")
    replay(
        lambda x: Release(Laplace(sensitivity=1.0, epsilon=0.5).release(total(x)).value, NOISE.event), DATA, NEIGHBOUR
    )


def test_disjoint_groups_cost_what_one_does_and_overlapping_ones_do_not():
    noise = Gaussian(sensitivity=1.0, sigma=2.0)

    def groups(x, sides):
        return Release([noise.release(float(sum(side(v) for v in x))).value for side in sides], noise.event)

    replay(lambda x: groups(x, [lambda v: v > 0.6, lambda v: v <= 0.6]), DATA, NEIGHBOUR)
    rejected(lambda x: groups(x, [lambda v: v > 0.6, lambda v: v > 0.9]), "cost more")


def test_releases_of_the_same_records_are_not_covered_by_being_called_parallel():
    """One record is in one part: of ``a | b`` it pays for one,
    unless it is replaced and so leaves one for the other.
    """
    other = Laplace(sensitivity=1.0, epsilon=0.5)

    def twice(x):
        return [honest(x).value, other.release(total(x)).value]

    rejected(lambda x: Release(twice(x), NOISE.event | other.event), "cost more than the event")
    rejected(lambda x: Release(twice(x), events.PoissonSampled(rate=0.5, event=NOISE.event | other.event)), "cost more")
    replay(lambda x: Release(twice(x), (NOISE.event | other.event) * 2), DATA, NEIGHBOUR)

    def sides(x):
        return Release(
            [
                noise.release(float(sum(v > 0.3 for v in x) if side else sum(v <= 0.3 for v in x))).value
                for noise, side in ((NOISE, True), (other, False))
            ],
            NOISE.event | other.event,
        )

    replay(sides, DATA, NEIGHBOUR)
    replay(sides, [0.5, 0.25, 1.0], [0.5, 0.25, 0.2])


def test_more_choices_of_parts_than_can_be_compared_are_not_covered():
    leaf = [events.PureDP(epsilon=0.1 * (i + 1)) for i in range(24)]
    many = events.Composed(events=tuple(a | b for a, b in zip(leaf[::2], leaf[1::2], strict=True)))
    more = many + (leaf[3] | leaf[7]) + (leaf[2] | leaf[9])
    assert covers_cost(many, [leaf[0]])
    assert not covers_cost(more, [leaf[0]])
    assert not covers_cost(more * 9, [more])


def test_sampled_steps_are_covered_by_the_sampled_event():
    noise = Gaussian(sensitivity=1.0, sigma=2.0)
    step = events.PoissonSampled(rate=0.5, event=noise.event)

    def steps(x, count):
        keep = [coins([*map(str, x)], system()) < np.uint64(2**63) for _ in range(count)]
        return [noise.release(float(np.sum(k))).value for k in keep]

    replay(lambda x: Release(steps(x, 8), step * 8), DATA, NEIGHBOUR)
    rejected(lambda x: Release(steps(x, 8), step), "cost more")


def test_rounds_of_the_sparse_vector_are_paid_once_each():
    replay(lambda x: AboveThreshold(threshold=50.0).release([total(x)] * 9), DATA, NEIGHBOUR)
    replay(lambda x: SparseVector(threshold=-50.0, max_positives=3).release([total(x)] * 9), DATA, NEIGHBOUR)
    one = AboveThreshold(threshold=-50.0).event
    rejected(
        lambda x: Release(SparseVector(threshold=-50.0, max_positives=3).release([total(x)] * 9).value, one),
        "cost more",
    )


def test_a_tests_base_algorithm_is_compared_with_its_own_part():
    noise = Gaussian(sensitivity=1.0, sigma=3.0)
    far = {"distance": lambda x: 500 + len(x), "base": lambda x: noise.release(total(x)).value}
    paid = ProposeTestRelease(epsilon=1.0, delta=1e-6, base_event=noise.event, **far)
    replay(paid.release, DATA, NEIGHBOUR)
    rejected(lambda x: Release(paid.release(x).value, ProposeTestRelease(epsilon=1.0, delta=1e-6).event), "cost more")


def test_an_answer_of_a_test_may_be_anything():
    """A ragged list, a text, an empty array: whatever the base algorithm gives."""
    for answer in ([[1], [2, 3]], "safe", {}, np.zeros(0), [None]):
        test = ProposeTestRelease(epsilon=1.0, delta=0.1, distance=lambda x: 500 + len(x), base=lambda _, a=answer: a)
        replay(test.release, DATA, NEIGHBOUR)


def test_a_step_without_a_price_cannot_be_compared():
    def unpriced(x, **options):
        return Release(
            draw_output(
                "mine",
                np.array([total(x)]),
                "l1",
                1.0,
                lambda: np.array([total(x)]) + laplace_cells(1 << 20, 1),
                **options,
            ),
            NOISE.event,
        )

    rejected(unpriced, "does not say what it costs")
    replay(lambda x: unpriced(x, event=NOISE.event), DATA, NEIGHBOUR)


def test_prices_are_compared_where_kinds_differ():
    laplace, gaussian = events.Laplace(noise_multiplier=1.0), events.Gaussian(noise_multiplier=3.0)
    assert covers_cost(events.PureDP(epsilon=1.0), [laplace])
    assert not covers_cost(events.PureDP(epsilon=0.9), [laplace])
    assert covers_cost(events.ZCDP(rho=1 / 9), [gaussian, gaussian])
    assert not covers_cost(events.GDP(mu=0.47), [gaussian, gaussian])
    assert covers_cost(events.GDP(mu=0.472), [gaussian, gaussian])
    assert covers_cost(laplace | gaussian, [gaussian])
    assert not covers_cost(events.Composed(events=()), [gaussian])
    assert covers_cost(events.Composed(events=()), [])


# --- outside -------------------------------------------------------------------------------------------------------


def test_a_file_with_private_values_is_found(tmp_path):
    path = tmp_path / "notes.txt"
    rejected(lambda x: path.write_text(str(total(x))) and honest(x), "file")

    def publishes(x):
        answer = honest(x)
        path.write_text(str(answer.value))
        return answer

    replay(publishes, DATA, NEIGHBOUR)


def test_a_file_that_is_added_to_and_one_that_is_left_are_found(tmp_path):
    def appends(x):
        with (tmp_path / "log.txt").open("a") as file:
            file.write(str(len(x)))
        return honest(x)

    rejected(appends, "file")
    rejected(lambda x: (tmp_path / f"{len(x)}.txt").touch() or honest(x), "file")


def test_prints_and_warnings_are_compared():
    rejected(lambda x: print(len(x)) or honest(x), "prints")
    replay(lambda x: print("one line") or honest(x), DATA, NEIGHBOUR)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(UserWarning, match="records"):
            rejected(lambda x: warnings.warn(f"{len(x)} records", stacklevel=1) or honest(x), "warnings")


def test_what_reaches_outside_is_refused():
    rejected(
        lambda x: subprocess.run([sys.executable, "--version"], check=True, capture_output=True) and honest(x), "Popen"
    )

    def sends(x):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(str(total(x)).encode(), ("127.0.0.1", 9))
        return honest(x)

    rejected(sends, "sendto")
    replay(sends, DATA, NEIGHBOUR, reaches=("socket.sendto",))  # unless the caller answers for it


def test_what_happens_once_in_a_process_is_looked_at_again(tmp_path):
    """A cache that the first run writes, and no later one: as compilation and imports do."""
    path = str(tmp_path / "compiled")

    def compiles(x):
        if not Path(path).exists():
            print("compiling")
            Path(path).write_text("code")
        return honest(x)

    replay(compiles, DATA, NEIGHBOUR)


def test_noise_in_another_thread_cannot_be_judged():
    def threaded(x):
        answers = []
        worker = threading.Thread(target=lambda: answers.append(honest(x)))
        worker.start()
        worker.join()
        return len(answers)

    rejected(threaded, "another thread")


def test_a_thread_left_behind_is_found():
    def leaves(x):
        done = threading.Event()
        threading.Thread(target=done.wait, args=(60,), daemon=True).start()
        stops.append(done)
        return honest(x)

    stops: list[threading.Event] = []
    try:
        with pytest.raises(ReplayError, match="leaves a thread"):
            replay(leaves, DATA, NEIGHBOUR, fresh=False)
    finally:
        for done in stops:
            done.set()


# --- what is compared ----------------------------------------------------------------------------------------------


def framed(kind, **columns):
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_compared_exactly(kind):
    """Values, types, order of rows and columns, missing values and the signs of zeros."""
    base = framed(kind, a=[1.0, float("nan"), 0.0], b=["x", None, "z"])
    assert same(base, framed(kind, a=[1.0, float("nan"), 0.0], b=["x", None, "z"]))
    for other in (
        framed(kind, a=[1.0, float("nan"), -0.0], b=["x", None, "z"]),
        framed(kind, a=[1.0, 2.0, 0.0], b=["x", None, "z"]),
        framed(kind, b=["x", None, "z"], a=[1.0, float("nan"), 0.0]),
        framed(kind, a=[1, 2, 0], b=["x", None, "z"]),
        framed(kind, a=[1.0, 0.0, float("nan")], b=["x", "z", None]),
        framed(kind, a=[1.0], b=["x"]),
        framed(kind, a=[1.0, float("nan"), 0.0]),
        {"a": 1},
    ):
        assert not same(base, other)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_an_operation_may_return_a_frame(kind):
    replay(lambda x: framed(kind, a=[honest(x).value]), DATA, NEIGHBOUR)
    rejected(lambda x: framed(kind, a=[honest(x).value] * len(x)), "results differ")


def test_an_index_is_part_of_a_pandas_frame():
    base = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="key"))
    for index in (pd.Index([6, 5], name="key"), pd.Index([5, 6], name="other"), pd.Index([5.0, 6.0], name="key"), None):
        assert not same(base, pd.DataFrame({"a": [1, 2]}, index=index))
    assert not same(pd.Series([1], name="a"), pd.Series([1], name="b"))
    assert not same(
        pd.Series(["a"], dtype=pd.CategoricalDtype(["a"])), pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"]))
    )


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_answers_of_a_table_are_compared_with_their_cost(frame):
    schema = dp.Schema(k=dp.Categories(["a", "b"]), x=dp.Bounded(0, 1))

    def asked(rows):
        table = dp.table(framed(frame, k=[k for k, _ in rows], x=[float(x) for _, x in rows]), schema=schema)
        return table.group_by("k").count().mean("x").release(epsilon=1.0)

    rows = [("a", 0.5), ("b", 0.25), ("a", 1.0)]
    replay(asked, rows, rows[1:])
    assert replay(asked, rows, rows[1:]).steps
    rejected(lambda rows: Release(asked(rows).value, asked(rows).event), "cost more", rows, rows[1:])


def test_results_are_compared_to_the_last_bit():
    assert same([np.arange(3.0), {"a": (1, None)}, {1, 2}], [np.arange(3.0), {"a": (1, None)}, {1, 2}])
    for a, b in (
        (0.0, -0.0),
        (1, True),
        (np.zeros(1), -np.zeros(1)),
        ({1: 0}, {True: 0}),
        ({1: 0, 2: 0}, {2: 0, 1: 0}),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(1), np.zeros(1, np.float32)),
        (0j, -0j),
        (np.float32(0), np.float32(-0.0)),
        (Keeper(1.0), Keeper(2.0)),
        ("a", "b"),
    ):
        assert not same(a, b)

    class Plain:
        def __init__(self, x):
            self.x, self.me = x, self

    assert same(Plain(1), Plain(1))
    assert not same(Plain(1), Plain(2))


def test_what_has_no_equality_is_refused():
    class Lazy:
        def __eq__(self, other):
            return np.zeros(2)

        __hash__ = None

    with pytest.raises(Incomparable):
        same(Lazy(), Lazy())
    rejected(lambda x: Lazy(), "has no equality")
