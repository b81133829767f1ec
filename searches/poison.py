"""One record that is poison, for every layer rule: zeros, ±1e30, endless, not a number, subnormal, terms that cancel.

What other records add up to is what they add up to without it, to 1e-5 of a clip norm a record; the sum is finite; the
record moves it by at most the clip norm, widened by 2⁻¹⁰. A layer that breaks this raises.
"""

from __future__ import annotations

import itertools
import logging
import warnings

from searches._progress import with_progress
from tests.training.poison import cases, check, layers


def main(size: int | None = None) -> None:
    """Try the first ``size`` cases, layer by layer; all of them by default."""
    warnings.simplefilter("ignore")
    logging.getLogger("discreet.training").setLevel(logging.ERROR)
    tried = sum(check(case) for case in with_progress("poison", itertools.islice(cases(), size)))
    print(f"poison: {tried} cases over {len(layers())} layers, others' part as it was in all of them")
