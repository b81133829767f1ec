"""Private data release: a whole data set that may be published, on which many questions are answered nearly right.

>>> import discreet as dp
>>> sexes, answers = dp.Categories(["f", "m"]), dp.Categories(["no", "yes"])
>>> schema = dp.Schema(sex=sexes, age=dp.Bounded(0, 100, missing=0), sick=answers)
>>> rows = {"sex": ["f", "m"] * 500, "age": [20, 70] * 500, "sick": ["no", "yes"] * 500}
>>> synthetic = dp.synthesis.TableSynthesizer(epsilon=1.0, delta=1e-9, bins=4).fit(rows, schema=schema, rng=1)
>>> sorted(synthetic.sample(100, rng=2))
['age', 'sex', 'sick']
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synthesis.domain import Domain, PrivateBins
    from discreet.synthesis.evolve import Evolve
    from discreet.synthesis.layouts import Images
    from discreet.synthesis.linear_queries import SyntheticCounts
    from discreet.synthesis.linked_model import LinkedModel
    from discreet.synthesis.linked_synthesizer import LinkedSynthesizer
    from discreet.synthesis.model import Model
    from discreet.synthesis.mwem import MWEM
    from discreet.synthesis.quality_check import QualityCheck
    from discreet.synthesis.quality_facts import quality
    from discreet.synthesis.saved import load
    from discreet.synthesis.small_db import SmallDB
    from discreet.synthesis.table_synthesizer import TableSynthesizer
    from discreet.synthesis.variations import LayoutVariations, Variations
    from discreet.synthesis.variations_images import ImageVariations
    from discreet.synthesis.variations_strokes import StrokeVariations
    from discreet.synthesis.variations_table import CellVariations
    from discreet.synthesis.variations_text import TextVariations

_LAZY = {
    "CellVariations": "variations_table",
    "Domain": "domain",
    "Evolve": "evolve",
    "Images": "layouts",
    "ImageVariations": "variations_images",
    "LayoutVariations": "variations",
    "LinkedModel": "linked_model",
    "LinkedSynthesizer": "linked_synthesizer",
    "Model": "model",
    "MWEM": "mwem",
    "PrivateBins": "domain",
    "QualityCheck": "quality_check",
    "SmallDB": "small_db",
    "StrokeVariations": "variations_strokes",
    "SyntheticCounts": "linear_queries",
    "TableSynthesizer": "table_synthesizer",
    "TextVariations": "variations_text",
    "Variations": "variations",
    "load": "saved",
    "quality": "quality_facts",
}

__all__ = [
    "MWEM",
    "CellVariations",
    "Domain",
    "Evolve",
    "ImageVariations",
    "Images",
    "LayoutVariations",
    "LinkedModel",
    "LinkedSynthesizer",
    "Model",
    "PrivateBins",
    "QualityCheck",
    "SmallDB",
    "StrokeVariations",
    "SyntheticCounts",
    "TableSynthesizer",
    "TextVariations",
    "Variations",
    "load",
    "quality",
]


def __getattr__(name: str) -> Any:
    if name == "AIM":  # the name of another algorithm, which ours had
        warnings.warn("AIM is McKenna et al.'s algorithm; ours is TableSynthesizer.", FutureWarning, stacklevel=2)
        name = "TableSynthesizer"
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.synthesis' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"discreet.synthesis.{_LAZY[name]}"), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
