"""Passes in random bins at small noise: both bounds of epsilon, their relative width, and seconds of one core.

Prints the table of ``docs/allocation.md``, as Markdown.
"""

from __future__ import annotations

import time

import discreet as dp
from discreet import events as ev

__all__ = ["main"]

NOISES, BINS, PASSES, DELTA = (0.3, 0.4, 0.5, 1.0), (100, 1_000, 100_000), 10, 1e-5


def row(noise: float, bins: int) -> str:
    """One line of the table."""
    event = ev.BallsInBins(bins=bins, event=ev.Gaussian(noise_multiplier=noise)) * PASSES
    start = time.process_time()
    low, high = dp.epsilon_bounds(event, DELTA)
    seconds = time.process_time() - start
    return f"| {noise} | {bins:,} | {low:.6g} | {high:.6g} | {(high - low) / high:.0e} | {seconds:.1f} |"


def main() -> None:
    """Print the table."""
    dp.epsilon_bounds(ev.BallsInBins(bins=7, event=ev.Gaussian(noise_multiplier=2.0)) * 2, DELTA)  # imports
    print("| noise multiplier | bins | epsilon, at least | at most | relative width | seconds |")
    print("|---|---|---|---|---|---|")
    for noise in NOISES:
        for bins in BINS:
            print(row(noise, bins))
