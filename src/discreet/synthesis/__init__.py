"""Private data release: synthetic tables that answer many questions at once.

>>> import discreet as dp
>>> sexes, answers = dp.Categories(["f", "m"]), dp.Categories(["no", "yes"])
>>> schema = dp.Schema(sex=sexes, age=dp.Bounded(0, 100, missing=0), sick=answers)
>>> rows = {"sex": ["f", "m"] * 500, "age": [20, 70] * 500, "sick": ["no", "yes"] * 500}
>>> synthetic = dp.synthesis.AIM(epsilon=1.0, delta=1e-9, bins=4).fit(rows, schema=schema, rng=1)
>>> sorted(synthetic.sample(100, rng=2))
['age', 'sex', 'sick']
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synthesis.aim import AIM
    from discreet.synthesis.domain import Domain, PrivateBins
    from discreet.synthesis.model import Model
    from discreet.synthesis.saved import load

_LAZY = {
    "AIM": "aim",
    "Domain": "domain",
    "Model": "model",
    "PrivateBins": "domain",
    "load": "saved",
}

__all__ = ["AIM", "Domain", "Model", "PrivateBins", "load"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.synthesis' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"discreet.synthesis.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
