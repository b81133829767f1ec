"""Correlated noise as matrices: sensitivities against brute force, errors against tables, streams against matrices."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Workload
from discreet.mechanisms.factorization.participation import matrix_sensitivity, toeplitz_sensitivity
from discreet.mechanisms.factorization.strategy import Strategy

N = 9
RATES = tuple(np.linspace(1, 0.1, N))
PATTERNS = [
    Pattern.single(N),
    *(Pattern.passes(N, b) for b in (1, 2, 3, 4)),
    *(Pattern(N, b, k) for b, k in ((1, 2), (2, 3), (3, 2), (3, 3), (4, 3))),
]


W = Workload(N)
STRATEGIES = {
    "tree": lambda pattern: f.Tree(N),
    "tree, simple": lambda pattern: f.Tree(N, honaker=False),
    "tree, restarts": lambda pattern: f.Tree(N, restart=3),
    "square root": lambda pattern: f.SquareRoot(W),
    "square root, momentum": lambda pattern: f.SquareRoot(Workload(N, momentum=0.9, decay=0.95)),
    "banded": lambda pattern: f.Banded.optimised(W, 3),
    "banded, max": lambda pattern: f.Banded.optimised(W, 2, "max"),
    "banded, odd": lambda pattern: f.Banded([1.0, -0.7, 0.9], N),
    "normalised": lambda pattern: f.NormalisedBanded(f.Banded.optimised(W, 3)),
    "BISR": lambda pattern: f.BandedInverse.square_root(N, 3),
    "BandInvMF": lambda pattern: f.BandedInverse.optimised(W, pattern, 3),
    "banded inverse, odd": lambda pattern: f.BandedInverse([1.0, 0.4, -0.3], N),
    "lambda CGD": lambda pattern: f.LambdaCGD.optimised(W, pattern),
    "BLT": lambda pattern: f.BLT.optimised(W, pattern, 2),
    "dense": lambda pattern: f.Dense(W),
    "dense, schedule": lambda pattern: f.Dense(Workload(N, momentum=0.5, rates=RATES)),
}


def sets(pattern: Pattern) -> list[tuple[int, ...]]:
    """Every set of steps that a record may take part in."""
    if pattern.regular:
        every = [tuple(range(start, N, pattern.separation)) for start in range(min(pattern.separation, N))]
        return (
            [steps[: pattern.participations] for steps in every]
            if pattern.participations > 1
            else [(i,) for i in range(N)]
        )
    found = []
    for k in range(1, pattern.participations + 1):
        for steps in itertools.combinations(range(N), k):
            if all(b - a >= pattern.separation for a, b in itertools.pairwise(steps)):
                found.append(steps)
    return found


def brute(c: np.ndarray, pattern: Pattern) -> float:
    """The largest movement by contributions of +1 and -1 in every set of steps: what some record does attain."""
    worst = 0.0
    for steps in sets(pattern):
        for signs in itertools.product((1.0, -1.0), repeat=len(steps) - 1):
            worst = max(worst, float(np.linalg.norm(c[:, list(steps)] @ np.array([1.0, *signs]))))
    return worst


@pytest.mark.parametrize("name", STRATEGIES)
def test_no_record_moves_more_than_the_sensitivity_and_where_it_is_exact_some_record_does(name):
    exact = 0
    for pattern in PATTERNS:
        strategy = STRATEGIES[name](pattern)
        worst, (value, claimed) = brute(strategy.matrix(), pattern), strategy.sensitivity(pattern)
        assert value >= worst, pattern
        exact += claimed
        if claimed:
            assert value == pytest.approx(worst, rel=2e-9), pattern
        else:
            assert value <= 2.5 * worst, pattern
    assert exact >= 1


@pytest.mark.parametrize("seed", range(3))
def test_a_bound_holds_for_matrices_of_any_sign(seed):
    """Dense and Toeplitz matrices that no theorem is about: never less than brute force."""
    rng = np.random.default_rng(seed)
    lower = np.tril(rng.normal(size=(N, N)))
    c = rng.normal(size=N) * rng.integers(0, 2, N)
    c[0] = 1.0
    for pattern in PATTERNS:
        assert matrix_sensitivity(lower, pattern).value >= brute(lower, pattern)
        assert matrix_sensitivity(np.abs(lower), pattern).value >= brute(np.abs(lower), pattern)
        toeplitz = np.array([[c[i - j] if i >= j else 0.0 for j in range(N)] for i in range(N)])
        assert toeplitz_sensitivity(c, pattern).value >= brute(toeplitz, pattern)


def test_a_falling_series_is_exact_for_every_pattern():
    """Kalinin and Lampert (2024), Theorem 2, by brute force."""
    for c in (0.5 ** np.arange(N), 1 / np.sqrt(1.0 + np.arange(N)), np.ones(N), np.linspace(1, 0, N)):
        matrix = np.array([[c[i - j] if i >= j else 0.0 for j in range(N)] for i in range(N)])
        for pattern in PATTERNS:
            value, exact = toeplitz_sensitivity(c, pattern)
            assert exact
            assert value == pytest.approx(brute(matrix, pattern), rel=2e-9)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_stream_applies_the_inverse_of_its_matrix_and_the_error_is_that_of_the_stream(name):
    strategy = STRATEGIES[name](Pattern.passes(N, 3))
    assert np.allclose(f.noise_matrix(strategy) @ strategy.matrix(), np.eye(N), atol=1e-9)
    for workload in (Workload(N), Workload(N, momentum=0.9, decay=0.9), Workload(N, decay=0.9, rates=RATES)):
        assert np.allclose(strategy.errors(workload), Strategy.errors(strategy, workload))


def test_a_memory_is_as_long_as_is_said():
    for make in STRATEGIES.values():
        strategy = make(Pattern.passes(N, 3))
        memory: list[np.ndarray] = []
        longest = 0
        for step in range(N):
            strategy.advance(step, lambda: np.ones(1), memory)
            longest = max(longest, len(memory))
        assert longest <= strategy.memory


# --- tables ----------------------------------------------------------------------------------------------------------

CLOSE = {"rel": 1e-3}

# square root, its largest, tree simple, Honaker online, Honaker with all nodes, identity, dense
ONE_PARTICIPATION = {
    4: (1.3814, 1.4883, 1.9365, 1.7113, 1.3887, 1.5811, 1.310929),
    16: (1.7968, 1.9439, 3.2113, 2.6627, 1.9382, 2.9155, 1.689404),
    128: (2.4488, 2.6101, 5.2974, 4.1508, 2.8099, 8.0312, 2.311001),
}


@pytest.mark.parametrize("n", ONE_PARTICIPATION)
def test_errors_of_one_participation(n):
    w, once = Workload(n), Pattern.single(n)
    root, tree, best = f.SquareRoot(w), f.Tree(n), f.Dense(w)
    every_node = np.linalg.norm(w.matrix() @ np.linalg.pinv(tree.matrix())) / math.sqrt(n) * tree.column_norm
    found = (
        root.loss(w, once),
        root.loss(w, once, "max"),
        f.Tree(n, honaker=False).loss(w, once),
        tree.loss(w, once),
        every_node,
        f.Banded([1.0], n).loss(w, once),
        best.loss(w, once),
    )
    assert found == pytest.approx(ONE_PARTICIPATION[n], **CLOSE)
    assert f.nuclear_bound(n) <= best.lower <= best.upper <= best.lower * (1 + 1e-6)
    assert best.upper == pytest.approx(ONE_PARTICIPATION[n][-1], rel=1e-6)


@pytest.mark.parametrize(("n", "mean", "largest"), [(2048, 3.3305, 3.4932), (4096, 3.5513, 3.7139)])
def test_errors_of_long_square_roots(n, mean, largest):
    root, once = f.SquareRoot(Workload(n)), Pattern.single(n)
    assert root.loss(Workload(n), once) == pytest.approx(mean, **CLOSE)
    assert root.loss(Workload(n), once, "max") == pytest.approx(largest, **CLOSE)


@pytest.mark.slow(sibling="test_errors_of_one_participation")
@pytest.mark.parametrize(("n", "best"), [(512, 2.739385), (1024, 2.9555)])
def test_the_dense_optimum_of_long_runs(n, best):
    found = f.Dense(Workload(n), gap=1e-5)
    assert found.upper == pytest.approx(best, rel=1e-4)
    assert found.upper <= found.lower * (1 + 1e-5)


BANDED = {
    64: "5.7009/8.0000 4.2018/5.8070 3.2406/4.3503 2.6640/3.4243 2.3501/2.8675 2.2110/2.5565 2.1790/2.3888",
    256: "11.3358/16.0000 8.1463/11.4286 5.9780/8.2761 4.5477/6.1468 3.6376/4.7447 3.0868/3.8495 2.7831/3.3053",
    1024: "22.6385/32.0000 16.1084/22.7160 11.5633/16.2165 8.4443/11.7096 6.3428/8.6259 4.9556/6.5470 4.0659/5.1710",
    4096: "45.2604/64.0000 32.0819/45.3238 22.8217/32.1699 16.3557/22.9435 11.8839/16.5154 8.8253/12.0746",
}


@pytest.mark.parametrize("n", BANDED)
def test_errors_of_optimised_bands(n):
    w, once = Workload(n), Pattern.single(n)
    for power, cell in enumerate(BANDED[n].split()):
        for measure, wanted in zip(("mean", "max"), map(float, cell.split("/")), strict=True):
            found = f.Banded.optimised(w, 1 << power, measure)
            assert found.loss(w, once, measure) == pytest.approx(wanted, **CLOSE)
            if n >= 256 and power < 6:  # k participations, as far apart as there are bands, cost √k
                several = Pattern.passes(n, n // 4)
                assert found.sensitivity(several).value <= 2 * found.column_norm * (1 + 1e-8)


def test_normalised_columns_lower_the_error_at_equal_sensitivity():
    plain = f.Banded.optimised(Workload(256), 16)
    better, pattern = f.NormalisedBanded(plain), Pattern.passes(256, 32)
    assert better.loss(Workload(256), pattern) < plain.loss(Workload(256), pattern)
    assert better.sensitivity(pattern).value == pytest.approx(math.sqrt(8))


SEVERAL = {  # (n, k): DP-SGD, BISR with 2, 4, ..., 64 bands, best lambda, its error, the square root
    (512, 1): (16.02, [9.30, 6.51, 4.87, 3.83, 3.23, 2.93], 0.94, 4.061, 2.889),
    (512, 8): (45.30, [26.31, 18.42, 13.77, 11.01, 9.98, 10.34], 0.93, 11.635, 12.334),
    (1024, 1): (22.64, [13.11, 9.11, 6.69, 5.10, 4.06, 3.45], 0.96, 4.811, 3.110),
    (1024, 4): (45.28, [26.22, 18.22, 13.38, 10.19, 8.13, 6.98], 0.96, 9.623, 7.543),
    (1024, 16): (90.55, [52.43, 36.44, 26.76, 20.72, 17.92, 17.73], 0.95, 20.012, 23.896),
    (2048, 8): (90.53, [52.35, 36.23, 26.36, 19.71, 15.16, 12.34], 0.97, 16.129, 13.707),
}


@pytest.mark.parametrize(("n", "k"), SEVERAL)
def test_errors_of_several_passes(n, k):
    """The table has the best of lambdas with two digits; ours is at least as good, and the same within 0.1 %."""
    w, pattern = Workload(n), Pattern.passes(n, n // k)
    plain, few, back, error, root = SEVERAL[n, k]
    assert f.Banded([1.0], n).loss(w, pattern) == pytest.approx(plain, **CLOSE)
    for power, wanted in enumerate(few, 1):
        found = f.BandedInverse.square_root(n, 1 << power).loss(w, pattern)
        assert found == pytest.approx(wanted, rel=1e-3, abs=0.005)  # the table has two digits
    best = f.LambdaCGD.optimised(w, pattern)
    assert best.back == pytest.approx(back, abs=0.006)
    assert best.loss(w, pattern) == pytest.approx(error, **CLOSE)
    assert f.SquareRoot(w).loss(w, pattern) == pytest.approx(root, **CLOSE)


def test_optimised_bands_of_the_inverse_are_not_worse_than_their_beginnings():
    """And not than the best powers (1 - x)^gamma of the table."""
    w, pattern = Workload(1024), Pattern.passes(1024, 256)
    for bands, table in ((4, 9.265), (16, 7.780), (32, 7.100)):
        found = f.BandedInverse.optimised(w, pattern, bands)
        assert found.loss(w, pattern) <= table * 1.001
        assert found.sensitivity(pattern).exact


def test_golden_buffers():
    """jax_privacy's own golden value: n = 100,000, two buffers, the largest error."""
    n = 100_000
    golden = f.BLT([0.0122853238, 0.1878393665], [0.9999528892, 0.9857068667], n)
    w, once = Workload(n), Pattern.single(n)
    assert golden.loss(w, once, "max") == pytest.approx(5.296747, rel=1e-5)


@pytest.mark.slow(sibling="test_golden_buffers")
def test_golden_buffers_are_found():
    n = 100_000
    found = f.BLT.optimised(Workload(n), Pattern.single(n), 2, "max")
    assert found.scales == pytest.approx([0.0122853238, 0.1878393665], rel=1e-5)
    assert found.decays == pytest.approx([0.9999528892, 0.9857068667], rel=1e-7)


@pytest.mark.parametrize("buffers", [2, 3, 4, 5])
def test_buffers_come_close_to_the_best_toeplitz_matrix(buffers):
    """The largest error of the square root is the least of all Toeplitz matrices."""
    w, once = Workload(256), Pattern.single(256)
    found, least = f.BLT.optimised(w, once, buffers, "max").loss(w, once, "max"), f.SquareRoot(w).loss(w, once, "max")
    assert least <= found <= 1.007 * least


def test_what_is_publicly_wrong_is_refused():
    for wrong, reason in (
        (lambda: Workload(0), "steps"),
        (lambda: Workload(3, momentum=1.0), "momentum"),
        (lambda: Workload(3, rates=(1.0,)), "rates"),
        (lambda: Pattern(4, 0, 1), "separation"),
        (lambda: f.LambdaCGD(1.0, 4), "back"),
        (lambda: f.Dense(Workload(5000)), "at most"),
        (lambda: f.SquareRoot(Workload(3, rates=(1.0, 0.5, 0.1))), "Dense"),
        (lambda: f.Tree(4, restart=0), "restart"),
    ):
        with pytest.raises(ValueError, match=reason):
            wrong()


def test_a_tree_counts_a_record_that_is_in_every_step_once_for_each_step_of_a_node():
    """Eight steps: 8 nodes hold it once, 4 twice, 2 four times, 1 eight times."""
    value, exact = f.Tree(8).sensitivity(Pattern.passes(8, 1))
    assert value == pytest.approx(math.sqrt(8 + 4 * 4 + 2 * 16 + 64), rel=1e-8)
    assert exact


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_pattern_of_other_steps_than_the_matrix_is_refused(name):
    """Its records take part in fewer of them than they may."""
    strategy = STRATEGIES[name](Pattern.passes(N, 3))
    for steps in (N - 3, N + 3):
        with pytest.raises(ValueError, match="but the matrix has 9"):
            strategy.sensitivity(Pattern.passes(steps, 3))
