"""The operations of ``discreet.linear``."""

from __future__ import annotations

from tests.operations.contract import Case

OPERATIONS: list[Case] = []
