"""Private data release: a whole data set that may be published, on which many queries are nearly right."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synthesis.linear_queries import SyntheticCounts
    from discreet.synthesis.mwem import MWEM
    from discreet.synthesis.quality_check import QualityCheck
    from discreet.synthesis.quality_facts import quality
    from discreet.synthesis.small_db import SmallDB

__all__ = ["MWEM", "QualityCheck", "SmallDB", "SyntheticCounts", "quality"]

_LAZY = {
    "MWEM": "mwem",
    "QualityCheck": "quality_check",
    "SmallDB": "small_db",
    "SyntheticCounts": "linear_queries",
    "quality": "quality_facts",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.synthesis' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"discreet.synthesis.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
