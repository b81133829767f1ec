"""Exposure and extraction, on models that know a secret and on models that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import auditing

SPACE = [f"{i:04d}" for i in range(10_000)]


def test_a_model_that_knows_nothing_exposes_at_random() -> None:
    """The rank is uniform: of 200 canaries about half have an exposure above one bit (a fair coin, 1e-6)."""
    rng = np.random.default_rng(0)
    bits = []
    for _ in range(200):
        losses = dict(zip(SPACE, rng.random(len(SPACE)), strict=True))
        bits.append(
            auditing.exposure(lambda texts, known=losses: [known[t] for t in texts], rng.choice(SPACE), SPACE).bits
        )
    assert 66 < sum(b > 1 for b in bits) < 134
    assert np.mean(bits) == pytest.approx(1 / math.log(2), abs=0.5)


def test_a_remembered_secret_is_exposed_in_full_and_a_constant_model_exposes_nothing() -> None:
    known = auditing.exposure(lambda texts: [float(t != "2817") for t in texts], "2817", SPACE)
    assert known.bits == pytest.approx(math.log2(10_000))
    assert known.chance == pytest.approx(1e-4)
    assert auditing.exposure(lambda texts: [1.0] * len(texts), "2817", SPACE).bits == 0.0


def test_extraction_finds_the_likeliest_continuation_even_where_greed_does_not() -> None:
    chances = {"": {"a": 0.6, "b": 0.4}, "a": {"a": 0.5, "b": 0.5}, "b": {"a": 0.05, "b": 0.95}}

    def following(tokens):
        return {token: math.log(p) for token, p in chances["".join(tokens)].items()}

    assert auditing.extract(following, [], 2) == ["b", "b"]
    assert auditing.extract(lambda tokens: {}, [], 2) is None
    assert auditing.extract(lambda tokens: {"a": -1.0, "b": -1.0}, [], 30, most=5) is None
