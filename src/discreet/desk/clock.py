"""When an answer leaves: at ticks of a public clock, counted from the moment its question was taken up.

An answer that is ready within the first tick leaves at its end, whatever it took; one that takes longer leaves after 2,
4, 8 … ticks, and at the deadline at the latest. So whoever watches the clock learns one of a few public numbers, and
one alone where a tick is longer than any question takes. The worker is kept until then, so that the next question does
not learn more.

Reference: Haeberlen, Pierce and Narayan (2011), "Differential privacy under fire".

Decision 571.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import number

__all__ = ["TickClock"]


@dataclass(frozen=True, slots=True)
class TickClock:
    """Waits of ``tick``, twice that, four times … seconds, the last of which is ``deadline``.

    >>> TickClock(tick=1.0, deadline=30.0).leaving_times
    (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
    """

    tick: float = 1.0
    deadline: float = 30.0

    def __post_init__(self) -> None:
        number("tick", self.tick, low=0.001, high=3600)
        number("deadline", self.deadline, low=self.tick, high=86_400)

    @property
    def leaving_times(self) -> tuple[float, ...]:
        """After how many seconds an answer may leave."""
        doublings = math.ceil(math.log2(self.deadline / self.tick))
        return (*(self.tick * 2**power for power in range(doublings)), self.deadline)

    def leaving_time(self, taken: float) -> float:
        """How long after its start what took ``taken`` seconds leaves; what took longer is late.

        >>> clock = TickClock(tick=1.0, deadline=30.0)
        >>> clock.leaving_time(0.01), clock.leaving_time(0.9), clock.leaving_time(3.0)
        (1.0, 1.0, 4.0)
        """
        return next((wait for wait in self.leaving_times if taken <= wait), self.deadline)
