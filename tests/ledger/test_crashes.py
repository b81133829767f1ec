"""Killed at any point: what was acknowledged is there, and nothing was released without its charge."""

from __future__ import annotations

import os
import random
import select
import signal
from pathlib import Path

import pytest

from discreet import events
from discreet.ledger import Ledger
from tests.ledger.children import forked, rest

STEP = events.PureDP(epsilon=0.0001)


def charge_until_killed(url: str, life: int, pipe: int) -> None:
    """In the child: charge, acknowledge, release, for ever. Lines are short, so each write is all or nothing."""
    book = Ledger(url, create=False).book("fragile")
    for turn in range(1_000_000):
        book.charge(STEP, label=f"{life}/{turn}")
        os.write(pipe, f"charged {life}/{turn}\n".encode())
        os.write(pipe, f"released {life}/{turn}\n".encode())


def live_and_die(url: str, life: int, patience: float) -> list[str]:
    """Fork, let the child charge, kill it after ``patience`` seconds beyond its first words; return what it said."""
    child, reader = forked(lambda pipe: charge_until_killed(url, life, pipe))
    said = os.read(reader, 65536)
    select.select([], [], [], patience)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child must die by the signal, not by an error"
    return (said + rest(reader)).decode().splitlines()


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_nothing(tmp_path: Path, kills: int) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url) as ledger:
        ledger.open("fragile", epsilon=1_000.0)
    chance = random.Random(4)
    charged: set[str] = set()
    released: set[str] = set()
    for life in range(kills):
        for line in live_and_die(url, life, chance.uniform(0, 0.006)):
            verb, label = line.split()
            (charged if verb == "charged" else released).add(label)
        if life % 20 == 19:  # reopening after a kill rolls the torn transaction back
            with Ledger(url, create=False) as ledger:
                ledger.verify()
    with Ledger(url, create=False) as ledger:
        found = ledger.verify()
        labels = [entry.label for entry in ledger.book("fragile").entries() if entry.kind == "charge"]
    assert len(labels) == len(set(labels)) == found.entries - 1
    assert released <= charged <= set(labels)
    assert len(set(labels) - charged) <= kills  # at most one a life was committed but not yet acknowledged
    assert len(charged) >= kills
