"""How many records a private test of one mean needs for a power of 0.8 at 5 %, beside the test without privacy and its
rivals.

Records are normal, bounds lie three deviations on either side, and ``effect`` is in deviations. The test of tests has
the best of its own settings (parts, and the level at which a part rejects), which a user would have to guess. The other
rival is a t statistic of a noisy sum and a noisy sum of squares, with ε divided between them (NOISYVAR of Du, Foot,
Moniot, Bray and Groce 2020), where the number of records is public and records are replaced, as theirs; where it is
private, with a noisy number beside them. It has the best of five divisions, and critical values simulated at the true
law, which nobody has. A third rival is told the number of records although it is private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.power import TTestPower

from discreet import inference
from experiments import _results

Array = NDArray[np.float64]
EFFECTS, EPSILONS, POWER, LEVEL = (0.2, 0.5, 0.8), (0.1, 1.0, 10.0), 0.8, 0.05


def least(reaches: object, high: int = 8) -> int:
    """The smallest n, to 1 in 50, from which a power is reached that grows with n."""
    while not reaches(high):  # type: ignore[operator]
        high *= 2
    low = high // 2
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)  # type: ignore[operator]
    return high


def without_privacy(effect: float) -> int:
    return math.ceil(TTestPower().solve_power(effect_size=effect, power=POWER, alpha=LEVEL))


def ours(effect: float, epsilon: float, runs: int, n: int | None = None) -> int:
    """Of a private number of records, unless ``n`` is any public one, in place of which the one needed is found."""
    facts: dict[str, object] = {} if n is None else {"n": n, "adjacency": "replace"}
    test = inference.OneSample(bounds=(-3, 3), epsilon=epsilon, **facts)  # type: ignore[arg-type]
    return inference.sample_size(test, effect=effect, sd=1.0, power=POWER, alpha=LEVEL, runs=runs)


def test_of_tests(effect: float, epsilon: float) -> int:
    """Parts of equal size, which random ones do not beat; both tests' powers are exact."""

    def power(n: int, parts: int, rejects_at: float) -> float:
        if n // parts < 3:
            return 0.0
        seen = TTestPower().power(effect_size=effect, nobs=n // parts, alpha=rejects_at)
        binomial = inference.Proportion(
            n=parts, null=rejects_at, alternative="greater", adjacency="replace", epsilon=epsilon
        )
        return binomial.power(effect=min(1.0, float(seen)) - rejects_at, alpha=LEVEL)

    settings = [(parts, at) for parts in (5, 10, 20, 40, 80, 160) for at in (0.05, 0.1, 0.2, 0.4)]
    return least(lambda n: max(power(n, *each) for each in settings) >= POWER)


def noisy_sums(
    effect: float, epsilon: float, shares: Sequence[tuple[float, float, float]], moved: float, runs: int = 40_000
) -> int:
    """Noise on n, Σx and Σx² of the places in [-3, 3], with these shares of ε; a record moves the sum by ``moved``."""

    def statistics(n: int, mean: float, share: tuple[float, float, float], rng: np.random.Generator) -> Array:
        total = n * mean + math.sqrt(n) * rng.standard_normal(runs)
        squares = rng.chisquare(n - 1, runs) + total**2 / n
        on_size, on_sum, on_squares = (each / (part * epsilon) for each, part in zip((1, moved, 9), share, strict=True))
        size = np.maximum(n + rng.laplace(0, on_size, runs), 1.0)
        noisy = total + rng.laplace(0, on_sum, runs)
        variance = (squares + rng.laplace(0, on_squares, runs)) / size - (noisy / size) ** 2
        return np.abs(noisy) / np.sqrt(np.maximum(variance, 0.01) * size + 2 * on_sum**2)

    def power(n: int, share: tuple[float, float, float]) -> float:
        rng = np.random.default_rng(1)
        critical = np.quantile(statistics(n, 0.0, share, rng), 1 - LEVEL)
        return float((statistics(n, effect, share, rng) > critical).mean())

    return least(lambda n: max(power(n, share) for share in shares) >= POWER)


PUBLIC_SIZE = [(math.inf, share, 1 - share) for share in (0.5, 0.6, 0.7, 0.8, 0.9)]
PRIVATE_SIZE = [(0.2, 0.6, 0.2), (0.1, 0.7, 0.2), (0.1, 0.8, 0.1), (0.05, 0.85, 0.1), (0.05, 0.9, 0.05)]


def main(quick: bool = False) -> None:
    rows, runs = [], 200 if quick else 2_000
    for effect in EFFECTS[1:2] if quick else EFFECTS:
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            private, public = ours(effect, epsilon, runs), ours(effect, epsilon, runs, n=1)
            rivals = (
                noisy_sums(effect, epsilon, PRIVATE_SIZE, moved=3),
                noisy_sums(effect, epsilon, PUBLIC_SIZE, moved=3),
                noisy_sums(effect, epsilon, PUBLIC_SIZE, moved=6),
            )
            cells = [f"{without_privacy(effect):,}", f"{private:,}"]
            cells += [f"{rival:,} ({private / rival:.2f})" for rival in rivals[:2]]
            cells += [f"{public:,}", f"{rivals[2]:,} ({public / rivals[2]:.2f})"]
            rows.append([f"{effect:g}", f"{epsilon:g}", *cells, f"{test_of_tests(effect, epsilon):,}"])
            print(*rows[-1], sep="  ", flush=True)
    header = [
        "effect",
        "ε",
        "no privacy",
        "OneSample, n private",
        "noisy n, sum, squares (ours over it)",
        "told n",
        "OneSample, n public",
        "noisy sum, squares (ours over it)",
        "test of tests",
    ]
    _results.show("records for a power of 0.8", header, rows)
    _results.write_table("inference_levels", header, rows, mark="power")


if __name__ == "__main__":
    main(_results.begin(__doc__))
