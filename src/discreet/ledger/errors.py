"""What can go wrong with the store of a ledger, as opposed to with a budget.

DiscreetError
└── LedgerError      the store refused or failed; the text says whether anything was written
    ├── AlreadyCharged  the book was charged under this key before; nothing was charged again
    └── ChainBroken  an entry was edited, deleted, added or moved, or the totals do not follow from the entries
"""

from __future__ import annotations

from discreet.errors import DiscreetError

__all__ = ["AlreadyCharged", "ChainBroken", "LedgerError"]


class LedgerError(DiscreetError):
    """The store of a ledger could not do what was asked."""


class AlreadyCharged(LedgerError):
    """A charge has a key under which the book was charged before, by the entry of number ``seq``."""

    def __init__(self, message: str, seq: int) -> None:
        super().__init__(message)
        self.seq = seq


class ChainBroken(LedgerError):
    """The ledger's history was altered: verification failed."""
