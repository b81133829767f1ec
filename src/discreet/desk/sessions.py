"""Who is signed in at the pages: a session stands for a token, for some hours, and ends with it.

A browser holds the session's identifier in a cookie, never the token; the desk keeps the hashes of both. So a token
that is taken back, or expires, ends every session that was begun with it.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from discreet.desk import state as desk_state
from discreet.desk.state import DeskState, Person
from discreet.errors import extra

with extra("ledger"):
    import sqlalchemy as sa

__all__ = ["HOURS", "Sessions"]

HOURS = 12.0  # of a session: a working day
_sessions = sa.Table(
    "discreet_desk_sessions",
    desk_state._metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("token", sa.String(64), nullable=False),
    sa.Column("expires", sa.Text, nullable=False),
)
_tokens, _people = desk_state._tokens, desk_state._people


class Sessions:
    """The sessions of a desk, in its own state."""

    hours = HOURS

    def __init__(self, state: DeskState) -> None:
        self._state = state

    def begin(self, token: str) -> str | None:
        """A session for a token that is somebody's; nothing for another."""
        if self._state.person_of(token) is None:
            return None
        session, now = secrets.token_urlsafe(32), self._state._clock()
        row = {
            "hash": desk_state._hash(session),
            "token": desk_state._hash(token),
            "expires": (now + timedelta(hours=self.hours)).isoformat(),
        }
        with self._state._write() as connection:
            connection.execute(sa.delete(_sessions).where(_sessions.c.expires <= now.isoformat()))
            connection.execute(sa.insert(_sessions), row)
        return session

    def person_of(self, session: str) -> Person | None:
        """Who is signed in with a session, if neither it nor its token has expired."""
        query = (
            sa.select(_people, _sessions.c.expires, _tokens.c.expires.label("token_expires"))
            .join(_tokens, _tokens.c.person == _people.c.name)
            .join(_sessions, _sessions.c.token == _tokens.c.hash)
            .where(_sessions.c.hash == desk_state._hash(session))
        )
        with self._state._transaction(write=False) as connection:
            row = connection.execute(query).one_or_none()
        if row is None or min(map(datetime.fromisoformat, (row.expires, row.token_expires))) <= self._state._clock():
            return None
        return desk_state.person_from(row)

    def end(self, session: str) -> None:
        """Sign out."""
        with self._state._write() as connection:
            connection.execute(sa.delete(_sessions).where(_sessions.c.hash == desk_state._hash(session)))
