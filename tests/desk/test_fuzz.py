"""A small part of the search for requests that make a desk fail, or tell; and that the search would see it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from discreet.desk import service
from searches import desk as searching
from searches.desk_defences import check_lines


def test_changed_requests_neither_fail_nor_tell() -> None:
    assert searching.search(list(range(150))) > 0


def test_the_search_sees_a_desk_that_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public mistake whose words hold a record."""
    monkeypatch.setattr(searching, "saving", lambda *_: nullcontext())
    tell = service.Refusal

    def refuse(status: int, code: str, message: str, **facts: object) -> service.Refusal:
        return tell(status, code, f"{message} {searching.MARK}", **facts)

    monkeypatch.setattr(service, "Refusal", refuse)
    with pytest.raises(AssertionError, match=searching.MARK):
        searching.search(list(range(150)))


def test_the_search_for_watched_defences_finds_their_lines() -> None:
    """A line that was rewritten stops the whole search, which nobody runs every day."""
    check_lines()
