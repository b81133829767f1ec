"""How far a worst-case record moves what is released: every model of the tests' zoo with every sampler.

Whole runs, verified as any run is, with a record more (or another one in its place): the sum that noise is put on moves
by at most the clip norm, widened by 2⁻¹⁰ (twice that, where neighbours differ by replacing a record). A model that is
moved further, or whose run fails, raises.
"""

from __future__ import annotations

import itertools
import logging
import warnings

from tests.training.sensitivity import SAMPLERS, OfZoo, movement
from tests.training.zoo import ZOO


def main(size: int | None = None) -> None:
    """Try the first ``size`` of the pairs, sampler by sampler; all of them by default."""
    warnings.simplefilter("ignore")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    pairs = list(itertools.islice(itertools.product(SAMPLERS, ZOO), size))
    most = dict.fromkeys(SAMPLERS, 0.0)
    for sampler, name in pairs:
        found, allowed = movement(OfZoo(name), sampler)
        if not found <= allowed:
            raise AssertionError(f"{name} with {sampler}: moved by {found:.6g} clip norms, allowed are {allowed:.6g}")
        most[sampler] = max(most[sampler], found / allowed)
    shares = ", ".join(f"{sampler} {share:.4f}" for sampler, share in most.items() if share)
    print(
        f"zoo: {len(pairs)} pairs of a model and a sampler, none moved further than allowed; the most, as a share: "
        f"{shares}"
    )
