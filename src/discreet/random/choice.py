"""Exact weighted choices: weights that are exponentials of rationals, never rounded.

Float weights would be rounded, summed in some order, and compared with a float uniform; each step moves
probabilities by amounts that depend on private scores. Here an index is proposed uniformly and accepted with
probability exp(-gap/scale), decided by certified comparison (see ``exact``); no weight or sum is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.errors import whole
from discreet.random._kernel import exp_table, pick, walk
from discreet.random.bounds import Interval, exp_bounds, uniform_below
from discreet.random.exact import Integers
from discreet.random.source import Rng, RngLike, as_rng

__all__ = ["accepts", "bernoulli", "permuted_index", "weighted_index"]


def accepts(gap: int, scale: int, rng: Rng, word: int | None = None) -> bool:
    """True with probability exp(-gap/scale), exactly; ``word`` holds the uniform's first 64 bits if already drawn."""
    exponent = Fraction(-gap, scale)
    return uniform_below(lambda digits, _: exp_bounds(exponent, digits), rng, word=word)


def bernoulli(bounds: Callable[[int], Interval], size: int, rng: Rng) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """``size`` coins of one probability, given as bounds that sharpen with the number of digits asked for."""
    low, high = bounds(40)
    words = rng.words(size)
    heads = words < np.uint64(int(low * 2**64))  # every value of the uniform with this first word lies below p
    for i in np.flatnonzero(~heads & (words <= np.uint64(min(int(high * 2**64), 2**64 - 1)))):
        heads[i] = uniform_below(lambda digits, _: bounds(digits), rng, word=int(words[i]))
    return heads


def weighted_index(gaps: Integers, scale: int, rng: RngLike = None) -> int:
    """An index with probability proportional to exp(-gaps[i]/scale), exactly; the least gap must be zero.

    >>> weighted_index(np.array([0, 10**9]), scale=1000, rng=1)
    0
    """
    source, pending = as_rng(rng), np.zeros(2, np.uint64)
    _check(gaps, scale)
    while True:
        with source.lock:
            index = pick(gaps, float(scale), *source.address, exp_table(), pending)
        if index >= 0:
            return int(index)
        if accepts(int(gaps[pending[0]]), scale, source, word=int(pending[1])):
            return int(pending[0])


def permuted_index(gaps: Integers, scale: int, rng: RngLike = None) -> int:
    """Walk the indices in random order; stop at each with probability exp(-gaps[i]/scale), exactly.

    The least gap must be zero, so the walk ends.

    >>> permuted_index(np.array([0, 10**9]), scale=1000, rng=1)
    0
    """
    source, pending = as_rng(rng), np.zeros(2, np.uint64)
    _check(gaps, scale)
    order, start = np.arange(len(gaps)), 0
    while True:
        with source.lock:
            stop = walk(gaps, order, start, float(scale), *source.address, exp_table(), pending)
        if stop >= 0:
            return int(order[stop])
        start = int(pending[0]) + 1
        if accepts(int(gaps[order[start - 1]]), scale, source, word=int(pending[1])):
            return int(order[start - 1])


def _check(gaps: Integers, scale: int) -> None:
    if whole("scale", scale, low=1).bit_length() > 53:
        raise ValueError(f"scale is {scale}, but must be a whole number of at most 53 bits.")
    if not len(gaps) or int(np.min(gaps)) != 0:
        raise ValueError("gaps is empty or has a minimum other than 0, but needs an entry of 0.")
