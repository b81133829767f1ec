"""Model inversion: a model that uses a hidden attribute gives it away; one that does not gives the likeliest value."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import auditing


def population(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.choice([0, 1, 2], n, p=[0.5, 0.3, 0.2])


def test_a_model_that_uses_the_attribute_tells_it_and_one_that_does_not_tells_nothing() -> None:
    x, hidden = population()
    outcome = x + 2.0 * hidden + np.random.default_rng(1).normal(0, 0.3, len(x))
    shares = {0: 0.5, 1: 0.3, 2: 0.2}
    people = lambda v: np.stack([x, np.full_like(x, v)], axis=1)  # noqa: E731
    using = auditing.invert(lambda X: X @ [1.0, 2.0], people, outcome, shares, auditing.normal_errors(0.3))
    with_model, without = using.accuracy(hidden)
    assert with_model > 0.98
    assert without == pytest.approx(0.5, abs=0.05)
    blind = auditing.invert(lambda X: X[:, 0], people, outcome, shares, auditing.normal_errors(0.3))
    assert set(blind.guesses) == {0}


def test_a_rare_value_is_not_guessed_for_nothing_and_bad_shares_are_refused() -> None:
    flat = auditing.invert(
        lambda X: X[:, 0], lambda v: np.ones((3, 1)), [1.0] * 3, {"a": 0.0, "b": 1.0}, auditing.normal_errors(1)
    )
    assert set(flat.guesses) == {"b"}
    with pytest.raises(ValueError, match="shares must hold"):
        auditing.invert(lambda X: X, lambda v: np.ones(1), [1.0], {}, auditing.normal_errors(1))
