"""Passes in random bins: both bounds of epsilon, their relative width, seconds of one core; then a peer's answer.

Prints the tables of ``docs/allocation.md``, as Markdown. The peer is jax_privacy's Monte Carlo, in an environment of
its own; of dp-accounting, the version that packages have (0.6) prices no random allocation.
"""

from __future__ import annotations

import sys
import time

import discreet as dp
from benchmarks import peers
from discreet import events as ev

__all__ = ["main"]

NOISES, BINS, PASSES, DELTA = (0.3, 0.4, 0.5, 1.0, 4.0), (100, 1_000, 100_000), 10, 1e-5
KEPT = {"bins": 100, "passes": 10, "noise": 3.0, "column": [1.0], "delta": 1e-3}  # what few samples can report on
SAMPLES = (20_000, 100_000)
WARM = {**KEPT, "bins": 4, "passes": 2, "delta": 0.01, "samples": 10_000}


def row(noise: float, bins: int) -> str:
    """One line of the table."""
    event = ev.BallsInBins(bins=bins, event=ev.Gaussian(noise_multiplier=noise)) * PASSES
    start = time.process_time()
    low, high = dp.epsilon_bounds(event, DELTA)
    seconds = time.process_time() - start
    return f"| {noise} | {bins:,} | {low:.6g} | {high:.6g} | {(high - low) / high:.0e} | {seconds:.1f} |"


def beside() -> list[str]:
    """The lines of the second table: kept bins with independent noise, by bounds and by samples."""
    noise = ev.Gaussian(noise_multiplier=KEPT["noise"])
    start = time.process_time()
    low, high = dp.epsilon_bounds(ev.BallsInBins(bins=KEPT["bins"], event=noise * KEPT["passes"]), KEPT["delta"])
    lines = [f"| discreet, both bounds | {low:.6f} | {high:.6f} | {time.process_time() - start:.2f} |"]
    for samples in SAMPLES:
        asked = {"load": "jax_privacy.experimental.monte_carlo", "warm": WARM, "question": {**KEPT, "samples": samples}}
        done = peers.ask(peers.python("allocation"), peers.ROOT / "benchmarks" / "peers_allocation.py", asked)
        if isinstance(done, peers.Failure):
            print(f"jax_privacy: {done.reason}", file=sys.stderr)
            continue
        value = done["value"]
        lines.append(
            f"| jax_privacy, {samples:,} samples | about {value['estimate']:.4f} | {value['reported']:.4f} "
            f"| {done['seconds']:.0f} |"
        )
    return lines


def main() -> None:
    """Print the tables."""
    dp.epsilon_bounds(ev.BallsInBins(bins=7, event=ev.Gaussian(noise_multiplier=2.0)) * 2, DELTA)  # imports
    print("| noise multiplier | bins | epsilon, at least | at most | relative width | seconds |")
    print("|---|---|---|---|---|---|")
    for noise in NOISES:
        for bins in BINS:
            print(row(noise, bins), flush=True)
    print("\n| kept bins | epsilon, at least | reported | seconds |")
    print("|---|---|---|---|")
    for line in beside():
        print(line, flush=True)
