"""The operations of ``discreet.tables``."""

from __future__ import annotations

from discreet.tables.keys import KeySelection
from tests.operations.contract import Case, SpiedMapping

COUNTS = {("a",): 90, ("b",): 1, ("c",): 30}

OPERATIONS = [
    Case("KeySelection", lambda: KeySelection(1.0, 1e-6), COUNTS, {**COUNTS, ("c",): 29}, spy=SpiedMapping),
    Case("KeySelection, a key less", lambda: KeySelection(1.0, 1e-6, 2, 2), COUNTS, {("a",): 89, ("c",): 30}, spy=SpiedMapping),
]
