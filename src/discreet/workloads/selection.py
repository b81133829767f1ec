"""Choosing a strategy for a matrix mechanism (as HDMM does): the named ones, and the best one for a workload."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from discreet.errors import choice, whole
from discreet.workloads.filters import optimal_filters
from discreet.workloads.fourier import optimal_fourier
from discreet.workloads.marginals import Marginals
from discreet.workloads.matrices import optimal_matrix
from discreet.workloads.p_identity import optimal_p_identity
from discreet.workloads.products import Product, ProductStrategy
from discreet.workloads.ranges import AllRanges, Prefix
from discreet.workloads.residuals import optimal_marginals, optimal_residuals
from discreet.workloads.strategy import MOST_ROWS, Strategy
from discreet.workloads.trees import Hierarchy, Wavelet, tree_widths
from discreet.workloads.workload import Floats, Identity, Norm, Workload, power_of

__all__ = ["Noise", "fourier", "hierarchy", "identity", "optimise", "svd_bound", "unit_error", "wavelet"]

Noise = Literal["gaussian", "laplace"]
_DENSE = 2048  # cells up to which the dense optimum is computed
_MOST_CELLS = 1 << 30  # of a histogram that some memory holds
_FREE = 1024  # cells up to which p-Identity is searched; beyond, weighted hierarchies are as good as it is slow
_PLACES = 20


def _norm(noise: Noise) -> Norm:
    return choice("noise", noise, {"gaussian": "l2", "laplace": "l1"})


def unit_error(workload: Workload, strategy: Strategy, noise: Noise = "gaussian") -> float:
    """The expected total squared error under noise of unit variance per unit of sensitivity (add-remove).

    >>> from discreet.workloads.ranges import AllRanges
    >>> round(math.sqrt(unit_error(AllRanges(256), wavelet(256)) / AllRanges(256).queries), 3)
    3.505
    """
    return strategy.trace(workload) * strategy.column_norm(_norm(noise)) ** 2


def svd_bound(workload: Workload) -> float:
    r"""What no strategy's expected total squared error can go below, under unit noise per unit of sensitivity.

    .. math:: \frac{1}{n} \Bigl(\sum_i \sigma_i(W)\Bigr)^2

    Proved for L2 sensitivity; L1 norms are larger, so it holds for Laplace noise too.
    Reference: Li and Miklau (2013).

    >>> from discreet.workloads.ranges import AllRanges
    >>> round(math.sqrt(svd_bound(AllRanges(1024)) / AllRanges(1024).queries), 3)
    3.492
    """
    return workload.nuclear_norm() ** 2 / workload.size


def _sizes(domain: Workload | int | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(domain, Workload):
        return domain.shape
    return tuple(whole("domain", n, low=1) for n in (domain if isinstance(domain, tuple) else (domain,)))


def _per_axis(factors: list[Strategy], name: str) -> Strategy:
    return factors[0] if len(factors) == 1 else ProductStrategy(tuple(factors), name=name)


def identity(domain: Workload | int | tuple[int, ...]) -> Strategy:
    """Measure every cell.

    >>> identity(4).rows, identity((2, 3)).rows
    (4, 6)
    """
    return _per_axis([Hierarchy(n, (1,), (1,), name="identity") for n in _sizes(domain)], "identity")


def hierarchy(
    domain: Workload | int | tuple[int, ...],
    branching: int | None = 2,
    *,
    noise: Noise | None = None,
    weighted: bool = False,
) -> Strategy:
    """Measure the counts of a tree of blocks over each attribute.

    ``branching=None`` takes the number of children that suits the workload and the noise; ``weighted=True`` also
    divides the budget between the levels as they deserve. Both need a workload as ``domain``. Where ``noise`` is not
    said, the tree is that for Gaussian noise, and a query with Laplace noise takes the one for that (``suited``).

    >>> from discreet.workloads.ranges import AllRanges
    >>> hierarchy(8).rows, hierarchy(AllRanges(4096), branching=None, noise="laplace").widths
    (15, (1, 8, 64, 512, 4096))
    """
    if branching is not None:
        branching = whole("branching", branching, low=2)
    if branching is None or weighted:
        if not isinstance(domain, Workload):
            raise ValueError("branching=None and weighted=True need a workload, but domain is only a size.")
        if isinstance(domain, Product):
            return ProductStrategy(
                tuple(hierarchy(f, branching, noise=noise, weighted=weighted) for f in domain.factors), name="hierarchy"
            )
        if noise is not None:
            return _best_tree(domain, branching, noise, weighted)
        return replace(
            _best_tree(domain, branching, "gaussian", weighted),
            for_laplace=_best_tree(domain, branching, "laplace", weighted),
        )
    return _per_axis([_uniform(n, branching) for n in _sizes(domain)], "hierarchy")


def _best_tree(workload: Workload, branching: int | None, noise: Noise, weighted: bool) -> Hierarchy:
    choices = range(2, 33) if branching is None else [branching]
    trees = [_tree(workload, b, noise, weighted) for b in choices if b == 2 or b <= workload.size]
    return min(trees, key=lambda tree: unit_error(workload, tree, noise))


def _uniform(n: int, branching: int) -> Strategy:
    widths = tree_widths(n, branching)
    return Hierarchy(n, widths, (1,) * len(widths))


def _tree(workload: Workload, branching: int, noise: Noise, weighted: bool) -> Hierarchy:
    widths = tree_widths(workload.size, branching)
    if not weighted:
        return Hierarchy(workload.size, widths, (1,) * len(widths))
    energies = -np.diff([workload.block_energy(width) / width for width in widths] + [0.0])
    weights = _level_weights(np.array(widths, float), energies, power_of(_norm(noise)))
    return Hierarchy(workload.size, widths, tuple(max(1, round(w * 2**_PLACES)) for w in weights), _PLACES, "hierarchy")


def _level_weights(widths: Floats, energies: Floats, power: int) -> Floats:
    """Weights that minimise Σ energyₗ/μₗ × (Σ weight^p)^(2/p), μ the spectrum of a hierarchy; in the logarithm."""

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = np.exp(logs)
        spectrum = np.cumsum(w * w * widths)
        error, norm = float((energies / spectrum).sum()), float((w**power).sum())
        tails = np.cumsum((energies / spectrum**2)[::-1])[::-1]
        return math.log(error) + 2 / power * math.log(norm), -2 * w * w * widths * tails / error + 2 * w**power / norm

    found = minimize(objective, np.zeros(len(widths)), jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(widths))
    w = np.exp(np.asarray(found.x))
    return np.asarray(w / w.max())


def wavelet(domain: Workload | int | tuple[int, ...]) -> Strategy:
    """Measure the Haar wavelet coefficients of each attribute.

    >>> wavelet(8).rows
    8
    """
    widths = [tree_widths(n, 2) for n in _sizes(domain)]
    return _per_axis([Wavelet(n, w, (1,) * len(w)) for n, w in zip(_sizes(domain), widths, strict=True)], "wavelet")


def fourier(workload: Workload) -> Strategy:
    """Measure Fourier coefficients of each attribute, weighted for the workload.

    >>> from discreet.workloads.ranges import Prefix
    >>> fourier(Prefix(8)).rows
    8
    """
    if isinstance(workload, Product):
        return ProductStrategy(tuple(fourier(f) for f in workload.factors), name="fourier")
    if len(workload.shape) != 1:
        raise ValueError(
            f"{type(workload).__name__} is over cells of shape {workload.shape}; fourier() needs cells in a row "
            "or a Product."
        )
    return optimal_fourier(workload)


def optimise(workload: Workload, *, noise: Noise = "gaussian") -> Strategy:
    """The strategy of least expected error that is known for a workload and a kind of noise.

    Gaussian: the optimum, to 0.05 %, for prefixes, ranges, marginals, cells, products of these and any
    workload up to 2,048 cells. Laplace, where no optimum is known: the best of p-Identity, weighted hierarchies of
    any branching, and the cells themselves. Above these sizes the best of the structured ones.

    >>> from discreet.workloads.ranges import AllRanges
    >>> w = AllRanges(256)
    >>> round(math.sqrt(unit_error(w, optimise(w)) / w.queries), 3)  # the bound is 2.876
    2.902
    """
    _norm(noise)
    most = MOST_ROWS if isinstance(workload, (Prefix, AllRanges)) else _MOST_CELLS  # these measure as many values
    if workload.size > most:
        raise ValueError(f"The workload has more cells than the {most:,} for which a strategy is found: merge some.")
    return _optimise(workload, noise)


@lru_cache(maxsize=64)
def _optimise(workload: Workload, noise: Noise) -> Strategy:
    if isinstance(workload, Product):
        return ProductStrategy(tuple(_optimise(f, noise) for f in workload.factors), name="optimised")
    if isinstance(workload, Identity) or workload.size == 1:
        return identity(workload)
    if isinstance(workload, Marginals):
        return choice("noise", noise, {"gaussian": optimal_residuals, "laplace": optimal_marginals})(workload)
    return min(_candidates(workload, noise), key=lambda strategy: unit_error(workload, strategy, noise))


def _candidates(workload: Workload, noise: Noise) -> list[Strategy]:
    if noise == "gaussian" and workload.inverse_gram() is not None:
        return [optimal_filters(workload)]
    if noise == "gaussian" and workload.size <= _DENSE:
        return [optimal_matrix(workload)]
    trees = [identity(workload), hierarchy(workload, branching=None, noise=noise, weighted=True)]
    if noise == "laplace" and workload.size <= _FREE:
        trees.append(optimal_p_identity(workload))
    return trees
