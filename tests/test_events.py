"""The vocabulary: events are values, they survive JSON, and their algebra has the laws it promises."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import events as ev
from discreet.adjacency import Adjacency
from tests import strategies

STEP = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4.0))
KINDS = [getattr(ev, name) for name in ev.__all__ if name not in ("Event", "leaves")]


# --- values ------------------------------------------------------------------------------------------------------


@given(strategies.events())
def test_an_event_survives_json_and_equal_events_give_equal_text(event):
    """Canonical JSON: the same event back, and the same text from it."""
    back = ev.Event.from_json(event.to_json())
    assert back == event
    assert hash(back) == hash(event)
    assert back.to_json() == event.to_json()


@given(strategies.events())
def test_an_event_is_frozen_and_its_dictionary_is_plain_json(event):
    """No field can be changed, and a dictionary of it holds nothing but JSON's own types."""
    for field in dataclasses.fields(event):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, None)
    assert json.loads(json.dumps(event.to_dict(), allow_nan=False)) == event.to_dict()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_a_tag_a_docstring_and_no_instance_dictionary(kind):
    """The tag is the class's name; slots keep misspelt attributes out."""
    assert kind.tag == kind.__name__
    assert len(kind.__doc__) > 20
    assert "__slots__" in vars(kind)
    assert not hasattr(kind, "__dict__") or "__dict__" not in dir(object.__new__(kind))


def test_every_kind_is_listed_in_all():
    """The table that JSON tags are looked up in holds the public kinds and nothing else."""
    assert {kind.tag for kind in KINDS} == set(ev.tree._BY_TAG)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "Gaussian2", "noise_multiplier": 1}',
        '{"type": "os.system", "noise_multiplier": 1}',
        '{"noise_multiplier": 1}',
        '{"type": null}',
        '{"type": ["Gaussian"]}',
        '{"type": "Event"}',
    ],
)
def test_an_unknown_tag_is_refused(text):
    """Kinds come from a fixed table; the message lists it."""
    with pytest.raises(ValueError, match=r"type is .*must be one of ApproxDP"):
        ev.Event.from_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "object with a 'type'"),
        ("3", "object with a 'type'"),
        ('{"type": "Gaussian"}', "Gaussian needs"),
        ('{"type": "Gaussian", "noise_multiplier": 1, "sigma": 2}', "no parameter 'sigma'"),
        ('{"type": "Gaussian", "noise_multiplier": "1"}', "noise_multiplier is '1'"),
        ('{"type": "Gaussian", "noise_multiplier": NaN}', "noise_multiplier is nan"),
        ('{"type": "PoissonSampled", "rate": 0.1, "event": 3}', "event is a int"),
        ('{"type": "Repeated", "event": {"type": "NonPrivate"}, "count": 1.5}', "count is 1.5"),
        ('{"type": "Composed", "events": 3}', "events"),
        ('{"type": "RDP", "orders": 2, "epsilons": 1}', "orders"),
    ],
)
def test_json_that_describes_no_event_is_refused(text, message):
    """Always a ValueError that says what is wrong."""
    with pytest.raises(ValueError, match=message):
        ev.Event.from_json(text)


# --- parameters --------------------------------------------------------------------------------------------------

NEVER_A_NUMBER = [math.nan, "1", None, True, [1.0], 1j, b"1"]
GAUSSIAN = ev.Gaussian(noise_multiplier=1.0)
POSITIVE = [*NEVER_A_NUMBER, 0, 0.0, -1.0, math.inf, -math.inf, 10**400]
NONNEGATIVE = [*NEVER_A_NUMBER, -1e-300, math.inf, 10**400]
PROBABILITY = [*NEVER_A_NUMBER, -0.1, 1.0000001, math.inf]
WHOLE = [math.nan, "1", None, True, 1.0, 1.5, -1]

BAD = [
    (ev.Laplace, "noise_multiplier", POSITIVE, {}),
    (ev.Gaussian, "noise_multiplier", POSITIVE, {}),
    (ev.DiscreteLaplace, "scale", POSITIVE, {}),
    (ev.DiscreteLaplace, "sensitivity", [*WHOLE, 0], {"scale": 1.0}),
    (ev.DiscreteGaussian, "sigma", POSITIVE, {}),
    (ev.DiscreteGaussian, "sensitivity", [*WHOLE, 0], {"sigma": 1.0}),
    (ev.Exponential, "epsilon", NONNEGATIVE, {}),
    (ev.RandomizedResponse, "epsilon", NONNEGATIVE, {}),
    (ev.RandomizedResponse, "categories", [*WHOLE, 0, 1], {"epsilon": 1.0}),
    (ev.PureDP, "epsilon", NONNEGATIVE, {}),
    (ev.ApproxDP, "epsilon", NONNEGATIVE, {"delta": 0.1}),
    (ev.ApproxDP, "delta", PROBABILITY, {"epsilon": 1.0}),
    (ev.ZCDP, "rho", NONNEGATIVE, {}),
    (ev.GDP, "mu", NONNEGATIVE, {}),
    (ev.PoissonSampled, "rate", PROBABILITY, {"event": GAUSSIAN}),
    (ev.TruncatedPoissonSampled, "rate", PROBABILITY, {"event": GAUSSIAN, "max_batch_size": 1, "dataset_size": 1}),
    (ev.TruncatedPoissonSampled, "max_batch_size", [*WHOLE, 0], {"event": GAUSSIAN, "rate": 0.1, "dataset_size": 1}),
    (ev.TruncatedPoissonSampled, "dataset_size", [*WHOLE, 0], {"event": GAUSSIAN, "rate": 0.1, "max_batch_size": 1}),
    (ev.FixedSizeSampled, "rate", PROBABILITY, {"event": GAUSSIAN}),
    (ev.BallsInBins, "bins", [*WHOLE, 0], {"event": GAUSSIAN}),
    (ev.Repeated, "count", WHOLE, {"event": GAUSSIAN}),
]
CASES = [
    pytest.param(kind, name, value, rest, id=f"{kind.__name__}-{name}-{str(value)[:12]}")
    for kind, name, values, rest in BAD
    for value in values
]


@pytest.mark.parametrize(("kind", "name", "value", "rest"), CASES)
def test_a_bad_parameter_is_named_with_its_value_and_the_range(kind, name, value, rest):
    """NaN, negative, zero, infinite, absurd, wrong type: one sentence that says which, what and what is allowed."""
    with pytest.raises(ValueError, match="but must be a") as caught:
        kind(**{name: value}, **rest)
    message = str(caught.value)
    assert message.startswith(f"{name} is ")
    assert repr(value) in message
    assert "number" in message


@pytest.mark.parametrize(
    "build",
    [
        lambda: ev.RDP(orders=(), epsilons=()),
        lambda: ev.RDP(orders=(2.0, 3.0), epsilons=(1.0,)),
        lambda: ev.RDP(orders=(2.0, 2.0), epsilons=(1.0, 1.0)),
        lambda: ev.RDP(orders=(1.0,), epsilons=(1.0,)),
        lambda: ev.RDP(orders=(math.inf,), epsilons=(1.0,)),
        lambda: ev.RDP(orders=(2.0,), epsilons=(math.nan,)),
        lambda: ev.RDP(orders=(2.0,), epsilons=(-1.0,)),
    ],
)
def test_a_bad_rdp_curve_is_refused(build):
    """Orders above one, each once, with one price each."""
    with pytest.raises(ValueError, match=r"^(orders|epsilons) (is|has) "):
        build()


@pytest.mark.parametrize("kind", [ev.PoissonSampled, ev.FixedSizeSampled, ev.Shuffled, ev.BallsInBins, ev.Repeated])
def test_what_is_wrapped_must_be_an_event(kind):
    """A number, a class or nothing inside a sampler is refused."""
    rest = {"rate": 0.1, "bins": 2, "count": 2}
    named = {field.name: rest[field.name] for field in dataclasses.fields(kind) if field.name in rest}
    for value in (3, None, ev.Gaussian, "Gaussian"):
        with pytest.raises(ValueError, match=r"event is a .*must be an Event"):
            kind(event=value, **named)


def test_composition_holds_events_only():
    """Parallel needs at least one part; a composition of nothing is the event that costs nothing."""
    with pytest.raises(ValueError, match="events is empty"):
        ev.Parallel(events=())
    with pytest.raises(ValueError, match="must be an Event"):
        ev.Composed(events=(STEP, 3))
    assert ev.leaves(ev.Composed(events=())) == {}


@pytest.mark.parametrize("kind", [ev.PoissonSampled, ev.BallsInBins])
def test_a_poisson_sampler_refuses_what_was_proved_under_replace(kind):
    """Amplification compares in with out, so the inside must be proved for that."""
    rest = {"rate": 0.1} if kind is ev.PoissonSampled else {"bins": 2}
    with pytest.raises(ValueError, match="under 'replace'"):
        kind(event=GAUSSIAN + ev.Laplace(noise_multiplier=1.0, adjacency="replace"), **rest)


def test_randomized_response_is_never_add_remove():
    """It reveals how many records there are."""
    with pytest.raises(ValueError, match="reveals the number"):
        ev.RandomizedResponse(epsilon=1.0, adjacency="add-remove")


def test_an_unknown_adjacency_is_refused_with_the_known_ones():
    """The message lists the three names."""
    with pytest.raises(ValueError, match="'add-remove', 'replace', 'zero-out'"):
        ev.Gaussian(noise_multiplier=1.0, adjacency="swap")


def test_numbers_of_other_kinds_are_taken_as_floats():
    """An int, a Fraction and the float they equal make the same event."""
    assert (
        ev.Gaussian(noise_multiplier=2)
        == ev.Gaussian(noise_multiplier=Fraction(2))
        == ev.Gaussian(noise_multiplier=2.0)
    )
    assert ev.Gaussian(noise_multiplier=1.0).adjacency is Adjacency.ADD_REMOVE


# --- algebra -----------------------------------------------------------------------------------------------------


@given(strategies.events(), strategies.events(), strategies.events())
def test_addition_is_associative_and_order_does_not_matter_to_the_walk(a, b, c):
    """+ flattens; leaves() forgets the order and the shape of the tree."""
    assert (a + b) + c == a + (b + c)
    assert list(ev.leaves(a + b + c).items()) == list(ev.leaves(c + a + b).items())


@given(strategies.events(), st.integers(min_value=0, max_value=6))
def test_repeating_is_listing(event, count):
    """e * n has the leaves of e + e + ... ; n * e is e * n."""
    listed = ev.Composed(events=(event,) * count)
    assert ev.leaves(event * count) == ev.leaves(count * event) == ev.leaves(listed)


@given(strategies.events(), st.integers(min_value=0, max_value=99), st.integers(min_value=0, max_value=99))
def test_repetitions_multiply_and_add(event, m, n):
    """(e * m) * n is e * (mn), and e * m + e * n is e * (m + n)."""
    assert ev.leaves(event * m * n) == ev.leaves(event * (m * n))
    assert ev.leaves(event * m + event * n) == ev.leaves(event * (m + n))


@given(strategies.events(), strategies.events(), strategies.events())
def test_parallel_is_associative(a, b, c):
    """| flattens."""
    assert (a | b) | c == a | (b | c)


@given(strategies.events())
def test_parallel_of_one_and_the_sum_of_one_are_itself(event):
    """A partition of one part is no partition; sum() needs no special start; zero repetitions cost nothing."""
    assert ev.leaves(ev.Parallel(events=(event,))) == ev.leaves(event)
    assert ev.leaves(sum([event])) == ev.leaves(event)
    assert ev.leaves(event * 0) == {}


@given(strategies.leaves(), strategies.leaves())
def test_sampled_and_parallel_nodes_are_leaves(a, b):
    """The walk does not enter what runs on one sample, nor the parts of a partition."""
    if a != b:
        assert ev.leaves((a | b) * 3) == {a | b: 3}
    sample = ev.FixedSizeSampled(rate=0.5, event=a + b)
    assert ev.leaves(sample * 2) == {sample: 2}


def test_a_long_history_is_walked_without_recursion():
    """Ten thousand nested repetitions are one leaf, not a stack overflow."""
    event = STEP
    for _ in range(10_000):
        event = ev.Repeated(event=event, count=1)
    assert ev.leaves(event) == {STEP: 1}


@pytest.mark.parametrize("other", [3, None, "event", 2.5])
def test_only_events_compose(other):
    """Adding a number or text to an event is a mistake."""
    with pytest.raises(TypeError):
        STEP + other
    with pytest.raises(TypeError):
        STEP | other


@pytest.mark.parametrize("count", [1.5, -1, "2", None, True])
def test_only_whole_counts_repeat(count):
    """A repetition is a whole number from zero."""
    with pytest.raises(ValueError, match="count is"):
        STEP * count


@given(strategies.events())
def test_the_walk_yields_positive_counts(event):
    """Counts are whole numbers, above zero."""
    assert all(isinstance(count, int) and count > 0 for count in ev.leaves(event).values())
