"""Events as text: the small language means what it says, and nothing in it is ever evaluated."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import events as ev
from discreet.cli.parse import NAMES, mentions, parse

GAUSSIAN = ev.Gaussian(noise_multiplier=4.0)
STEP = ev.PoissonSampled(rate=0.01, event=GAUSSIAN)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("gaussian(4)", GAUSSIAN),
        ("gaussian(noise_multiplier=4)", GAUSSIAN),
        ("gaussian(4, adjacency='replace')", ev.Gaussian(noise_multiplier=4.0, adjacency="replace")),
        ("poisson(0.01, gaussian(4)) * 10000", STEP * 10_000),
        ("1e4 * poisson(1/100, gaussian(8/2))", STEP * 10_000),
        ("poisson(rate=0.01, event=gaussian(4))", STEP),
        ("gaussian(4) + laplace(2) + gaussian(4)", GAUSSIAN + ev.Laplace(noise_multiplier=2.0) + GAUSSIAN),
        ("gaussian(4) | laplace(2)", GAUSSIAN | ev.Laplace(noise_multiplier=2.0)),
        ("  pure(0.5)\n", ev.PureDP(epsilon=0.5)),
        ("approx(1, 1e-6)", ev.ApproxDP(epsilon=1.0, delta=1e-6)),
        ("rdp([2, 3], (0.1, 0.2))", ev.RDP(orders=(2.0, 3.0), epsilons=(0.1, 0.2))),
        ("discrete_laplace(3, sensitivity=2)", ev.DiscreteLaplace(scale=3.0, sensitivity=2)),
        (
            "truncated_poisson(0.1, 20, 100, gaussian(4))",
            ev.TruncatedPoissonSampled(rate=0.1, max_batch_size=20, dataset_size=100, event=GAUSSIAN),
        ),
        ("balls_in_bins(10, gaussian(4))", ev.BallsInBins(bins=10, event=GAUSSIAN)),
        ("kept_bins(4, [1, 0.5], 2)", ev.KeptBins(bins=4, products=(1.0, 0.5), noise_multiplier=2.0)),
        ("nonprivate()", ev.NonPrivate()),
    ],
)
def test_an_expression_is_the_event_it_describes(text, event):
    """Positional parameters follow the event's fields; numbers may be small sums."""
    assert parse(text) == event


def test_every_mechanism_and_sampler_has_a_name():
    """Composition has operators; everything else has a name."""
    operators = {ev.Composed, ev.Repeated, ev.Parallel}
    kinds = {getattr(ev, name) for name in ev.__all__ if name not in ("Event", "leaves")}
    assert set(NAMES.values()) == kinds - operators


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("gaussian(4) * (", "cannot be read"),
        ("gaussian(4); laplace(2)", "cannot be read"),
        ("3", "is not an event"),
        ("gaussian", "needs its parameters"),
        ("gaussian()", "missing a parameter"),
        ("gaussian(1, 'replace', 3)", "gaussian takes"),
        ("gaussian(4, noise_multiplier=4)", "gaussian takes"),
        ("gaussian(sigma=4)", "gaussian takes"),
        ("gaussian(**{'noise_multiplier': 4})", "not part of the language"),
        ("gaussian(*[4])", "not part of the language"),
        ("gaussian(-1)", "noise_multiplier is -1"),
        ("gaussian(1/0)", "has no value"),
        ("gaussian(True)", "not part of the language"),
        ("gaussian('4')", "noise_multiplier is '4'"),
        ("gaussian(4) * 1.5", "count is 1.5"),
        ("gaussian(4) * -2", "count is -2"),
        ("gaussian(4) * gaussian(4)", "count is"),
        ("gaussian(4) - gaussian(4)", "has no meaning"),
        ("gaussian(4) / 2", "has no meaning"),
        ("gaussian(3 | 4)", "has no meaning"),
        ("gaussian(4) + 3", "has no value"),
        ("gaussian(9**9**9)", "not part of the language"),
        ("gaussian(1e308 * 1e308)", "noise_multiplier is inf"),
        ("gaussian(x)", "'x' is neither a number nor an event"),
        ("laplace(two)", "write a number, as the 2.5 of"),
        ("gausian(1)", "did you mean 'gaussian'"),
        ("Laplace(1)", "did you mean 'laplace'"),
        ("gaussian(4) if 1 else laplace(2)", "not part of the language"),
        ("[gaussian(4)]", "is not an event"),
        ("gaussian(4).to_json()", "not part of the language"),
        ("__import__('os').system('true')", "not part of the language"),
        ("open('/etc/passwd')", "'open' is not an event"),
        ("(lambda: gaussian(4))()", "not part of the language"),
        ("'gaussian(4)'", "is not an event"),
        ("poisson(0.1, gaussian(1, adjacency='replace'))", "under 'replace'"),
        ("gaussian(4, adjacency='swap')", "adjacency is 'swap'"),
        ("+" * 5_000 + "1", "not part of the language|nested too deeply|cannot be read"),
        ("(" * 9_000, "cannot be read|nested too deeply"),
        ("gaussian(4)+" * 2_000, "characters"),
        ("'a' * 4000000000", "has no meaning"),
        ("[1] * 4000000000", "has no meaning"),
        ("(1, 2) + (3,)", "has no meaning"),
        ("gaussian('\\d')", "noise_multiplier is"),
        ("gaussian(4)(2)", "not part of the language"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(text, reason):
    """Always a ValueError, never another error, never a call."""
    with pytest.raises(ValueError, match=reason):
        parse(text)


@given(st.text(max_size=60))
def test_any_text_gives_an_event_or_a_value_error(text):
    """No text makes the parser fail in another way."""
    with contextlib.suppress(ValueError):
        assert isinstance(parse(text), ev.Event)


@given(
    st.lists(
        st.sampled_from([*NAMES, "(", ")", "4", "0.5", "x", " * ", " + ", " | ", ",", "'replace'", "-"]), max_size=12
    )
)
def test_any_string_of_known_words_gives_an_event_or_a_value_error(words):
    """The same, for texts that look like the language."""
    with contextlib.suppress(ValueError):
        assert isinstance(parse("".join(words), {"x": 2.0}), ev.Event)


def test_a_free_name_takes_the_value_given():
    """calibrate's x."""
    assert parse("poisson(0.01, gaussian(x)) * 3", {"x": 4.0}) == STEP * 3
    assert mentions("gaussian(2 * x)", "x")
    assert not mentions("gaussian(2)", "x")
