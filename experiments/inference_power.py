"""How many records a private test of one mean needs for a power of 0.8 at 5 %, beside the test without privacy and two
rivals.

Records are normal, bounds lie three deviations on either side, and ``effect`` is in deviations. The test of tests has
the best of its own settings (parts, and the level at which a part rejects), which a user would have to guess. The other
rival is a t statistic of a noisy mean and a noisy variance, with ε divided between them (NOISYVAR of Du, Foot, Moniot,
Bray and Groce 2020); it is given the number of records, which ours has to measure, the best of five divisions, and
critical values simulated at the true law, which nobody has.
"""

from __future__ import annotations

import math

import numpy as np
from statsmodels.stats.power import TTestPower

from discreet import inference
from experiments import _results

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


def ours(effect: float, epsilon: float, runs: int) -> int:
    test = inference.OneSample(bounds=(-3, 3), epsilon=epsilon)
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


def mean_and_variance(effect: float, epsilon: float, runs: int = 40_000) -> int:
    """Noise on Σx and Σx² of the places in [-3, 3], whose sensitivities are 3 and 9."""

    def statistics(n: int, mean: float, share: float, rng: np.random.Generator) -> np.ndarray:
        total = n * mean + math.sqrt(n) * rng.standard_normal(runs)
        squares = rng.chisquare(n - 1, runs) + total**2 / n
        noise = 3 / (share * epsilon)
        noisy = (total + rng.laplace(0, noise, runs)) / n
        variance = (squares + rng.laplace(0, 9 / ((1 - share) * epsilon), runs)) / n - noisy**2
        return np.abs(noisy) / np.sqrt(np.maximum(variance, 0.01) / n + 2 * (noise / n) ** 2)

    def power(n: int, share: float) -> float:
        rng = np.random.default_rng(1)
        critical = np.quantile(statistics(n, 0.0, share, rng), 1 - LEVEL)
        return float((statistics(n, effect, share, rng) > critical).mean())

    return least(lambda n: max(power(n, share) for share in (0.5, 0.6, 0.7, 0.8, 0.9)) >= POWER)


def main(quick: bool = False) -> None:
    rows = []
    for effect in EFFECTS[1:2] if quick else EFFECTS:
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            mine, rival = ours(effect, epsilon, 200 if quick else 2_000), mean_and_variance(effect, epsilon)
            figures = (without_privacy(effect), mine, rival, test_of_tests(effect, epsilon))
            rows.append([f"{effect:g}", f"{epsilon:g}", *(f"{n:,}" for n in figures), f"{mine / rival:.2f}"])
    header = [
        "effect",
        "ε",
        "no privacy",
        "OneSample",
        "noisy mean and variance",
        "test of tests",
        "ours over the first rival",
    ]
    _results.show("records for a power of 0.8", header, rows)
    _results.write_table("inference_levels", header, rows, mark="power")


if __name__ == "__main__":
    main(_results.begin(__doc__))
