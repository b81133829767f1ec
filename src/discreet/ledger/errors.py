"""What can go wrong with the store of a ledger, as opposed to with a budget.

DiscreetError
└── LedgerError      the store refused or failed; the text says whether anything was written
    └── ChainBroken  an entry was edited, deleted, added or moved, or the totals do not follow from the entries
"""

from __future__ import annotations

from discreet.errors import DiscreetError

__all__ = ["ChainBroken", "LedgerError"]


class LedgerError(DiscreetError):
    """The store of a ledger could not do what was asked."""


class ChainBroken(LedgerError):
    """The ledger is not what was written: verification failed."""
