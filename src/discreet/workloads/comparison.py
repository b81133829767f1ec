"""Strategies side by side, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.errors import extra
from discreet.workloads.matrices import all_queries
from discreet.workloads.products import Product
from discreet.workloads.selection import Noise, fourier, hierarchy, identity, optimise, svd_bound, unit_error, wavelet
from discreet.workloads.strategy import Strategy
from discreet.workloads.workload import Workload

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Root-mean-square errors of strategies on one workload, under noise of unit variance per unit of sensitivity.

    That is Gaussian noise with rho = 0.5, or Laplace noise with epsilon = √2. Printing gives a table, ``plot`` bars.
    """

    workload: Workload
    noise: Noise
    rmse: Mapping[str, float]
    bound: float

    def __str__(self) -> str:
        lines = [f"{'strategy':<20} {'rmse':>10} {'/ bound':>9}"]
        lines += [f"{name:<20} {value:>10.3f} {value / self.bound:>9.3f}" for name, value in self]
        return "\n".join([*lines, f"{'SVD lower bound':<20} {self.bound:>10.3f} {1:>9.3f}"])

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(sorted(self.rmse.items(), key=lambda entry: -entry[1]))

    def plot(self, path: str | None = None, *, ax: Any = None) -> Any:
        """Draw the errors as bars with the lower bound as a line; save it if a path is given."""
        with extra("report"):
            from matplotlib.figure import Figure

        if ax is None:
            ax = Figure(figsize=(7, 4), layout="constrained").add_subplot()
        names, values = zip(*self, strict=True)
        ax.barh(names, values)
        ax.axvline(self.bound, linestyle="--", color="black", label="SVD lower bound")
        ax.set_xscale("log")
        ax.set_xlabel(f"root-mean-square error, {self.noise} noise of unit variance per unit of sensitivity")
        ax.legend()
        if path is not None:
            ax.figure.savefig(path)
        return ax


def compare(
    workload: Workload, *, noise: Noise = "gaussian", strategies: Mapping[str, Strategy] | None = None
) -> Comparison:
    """Expected errors of the named strategies on a workload, in closed form; or of those given.

    >>> from discreet.workloads import AllRanges
    >>> print(compare(AllRanges(256)))
    strategy                   rmse   / bound
    all queries             11.336     3.941
    identity                 9.274     3.224
    hierarchy 2              3.835     1.333
    wavelet                  3.505     1.219
    hierarchy, best          3.436     1.195
    fourier                  2.968     1.032
    optimised                2.902     1.009
    SVD lower bound          2.876     1.000
    """
    chosen = strategies if strategies is not None else _strategies_by_name(workload, noise)
    errors = {
        name: math.sqrt(unit_error(workload, strategy, noise) / workload.queries) for name, strategy in chosen.items()
    }
    return Comparison(workload, noise, errors, math.sqrt(svd_bound(workload) / workload.queries))


def _strategies_by_name(workload: Workload, noise: Noise) -> dict[str, Strategy]:
    found = {"identity": identity(workload), "optimised": optimise(workload, noise=noise)}
    if len(workload.shape) == 1 or isinstance(workload, Product):
        found |= {
            "all queries": all_queries(workload),
            "hierarchy 2": hierarchy(workload, 2),
            "wavelet": wavelet(workload),
            "hierarchy, best": hierarchy(workload, None, noise=noise, weighted=True),
            "fourier": fourier(workload),
        }
    return found
