"""Audits of steps whose records are in bins: the attacker knows everything but the bin, and takes the best test.

Batches and noise are those of the library's samplers and noises. One record of gradient 1 is there, or is not; the
statistic is the likelihood ratio of all outputs, over all bins (Neyman and Pearson).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import discreet as dp
from discreet import events as ev
from discreet.release import Release
from discreet.training import BallsInBins, KeptBins, noise
from discreet.training.noise import Step

CONFIDENCE = 0.999  # so a false alarm is once in a thousand, and seeds are fixed
BINS, TRIALS, DELTA = 16, 600, 0.1  # a delta at which so many trials can tell


class OneBin(BallsInBins):
    """Broken: every record is in the first bin, at the price of bins that are drawn."""

    def order(self, keys, rng):
        return np.zeros(len(keys), dtype=np.int64)


class KeptOneBin(KeptBins):
    """Broken in the same way."""

    order = OneBin.order


class Run:
    """Steps of a run on one number, and the price that the library states for them."""

    unit = "one record"

    def __init__(self, sampler, given, passes, multiplier):
        self.sampler, self.given, self.multiplier = sampler(batch_size=1, dataset_size=BINS), given, multiplier
        self.taking_part, self.steps = self.sampler.participation, passes * BINS
        self.event = given.event(self.taking_part, [multiplier] * self.steps)
        whitened = np.eye(self.steps)
        if given.correlated:
            whitened = given.strategy(self.taking_part, self.steps).matrix()
        self.whitened = whitened / multiplier
        shifts = [whitened[:, i::BINS].sum(axis=1) / multiplier for i in range(BINS)]
        self.shifts = shifts[:1] if isinstance(self.sampler, OneBin | KeptOneBin) else shifts

    def release(self, data=None, rng=None):
        source = dp.random.as_rng(rng)
        stream, gaussians = self.given.begun(self.taking_part, self.steps), noise.Gaussians(source)
        outputs, order = np.zeros(self.steps), None
        for number in range(self.steps):
            if number % BINS == 0 and (number == 0 or not self.sampler.kept):
                order = self.sampler.order([f"{i}, {number}" for i in range(len(data))], source)
            batch = self.sampler.draw(number, len(data), data, order, source)
            total = [torch.full((1,), float(len(batch)), dtype=torch.float64)]
            stream.release(Step(number=number, multiplier=self.multiplier, sensitivity=1.0, movement=1, divisor=1.0),
                           total, gaussians)  # fmt: skip
            outputs[number] = float(total[0])
        return Release(self.log_ratio(self.whitened @ outputs), self.event)

    def log_ratio(self, seen):
        """Of a record in one of the bins, in every pass the same one or another."""
        if self.sampler.kept:
            return float(np.logaddexp.reduce([seen @ shift - shift @ shift / 2 for shift in self.shifts]))
        each = (seen / self.multiplier - 0.5 / self.multiplier**2).reshape(-1, BINS)
        # seen is over the noise already: outputs / z, and the ratio of one step is exp(output/z² - 1/2z²)
        return float(np.logaddexp.reduce(each[:, : len(self.shifts)], axis=1).sum())

    def audit(self, seed):
        return dp.auditing.audit(self, [1.0], [], trials=TRIALS, delta=DELTA, confidence=CONFIDENCE, rng=seed)


CASES = {
    "drawn anew": (BallsInBins, OneBin, noise.Independent(), 1, 0.6),
    "kept, correlated": (KeptBins, KeptOneBin, noise.Banded(bands=2), 2, 0.85),
}


@pytest.mark.parametrize("name", ["drawn anew", pytest.param("kept, correlated", marks=pytest.mark.slow)])
def test_an_audit_stays_below_the_amplified_claim_and_catches_records_that_are_all_in_one_bin(name):
    sampler, broken, given, passes, multiplier = CASES[name]
    honest = Run(sampler, given, passes, multiplier)
    shift = max(float(np.linalg.norm(s)) for s in honest.shifts)
    known = dp.epsilon(ev.Gaussian(noise_multiplier=1 / shift), DELTA)
    fair, caught = honest.audit(seed=1), Run(broken, given, passes, multiplier).audit(seed=2)
    assert 0 <= fair.lower <= fair.claimed < 0.7 * known, "what known bins cost was too much"
    assert caught.violated
    assert fair.claimed < caught.lower <= known
