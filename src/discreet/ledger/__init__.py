"""Budgets that hold under adaptive use, crashes and races.

A ledger holds books; a book has a limit and is charged before data is read. ``filters`` states and proves when it
refuses and what it has proved so far; ``store`` says why no acknowledged charge is lost; ``chain`` how tampering shows.
"""

from __future__ import annotations

from discreet.errors import extra as _extra

with _extra("ledger"):
    import alembic as _alembic  # noqa: F401
    import sqlalchemy as _sqlalchemy  # noqa: F401

from discreet.ledger.book import Book
from discreet.ledger.chain import Entry
from discreet.ledger.errors import AlreadyCharged, ChainBroken, LedgerError
from discreet.ledger.ledger import Ledger
from discreet.ledger.reservation import Reservation
from discreet.ledger.snapshot import Overview, Remaining, Snapshot, Spent, Standing
from discreet.ledger.verification import Verification

__all__ = [
    "AlreadyCharged",
    "Book",
    "ChainBroken",
    "Entry",
    "Ledger",
    "LedgerError",
    "Overview",
    "Remaining",
    "Reservation",
    "Snapshot",
    "Spent",
    "Standing",
    "Verification",
]
