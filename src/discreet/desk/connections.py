"""A connection to a desk: who has not sent the head of a request within some seconds is cut off.

The server counts connections, and refuses everybody beyond so many: without an end, five hundred that say nothing would
lock out all the others. A body has an end of its own (``guard``), and so has the pause between two requests.
"""

from __future__ import annotations

import asyncio

from discreet.desk.guard import SLOWEST
from discreet.errors import extra

with extra("desk"):
    from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]


class Connection(H11Protocol):
    """One connection, with a timer that runs as long as the head of a request is awaited."""

    slowest = SLOWEST
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take in what came; go on waiting unless it ended a head."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, error: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(error)
        self._stop()

    def _wait(self) -> None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.slowest, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
