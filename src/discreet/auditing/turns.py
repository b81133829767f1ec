r"""Evidence against what is claimed of sampling: in which steps canaries were drawn, by the sampler of the records.

*How many* are drawn: given the steps before, the claim says how many of the canaries are drawn on average, m. A bet of
a share λ on more multiplies by :math:`1 + \lambda(c/m - 1)`, which is not negative and has expectation 1, whatever the
law of the count c. *The same again*: the draw of a step, or the places of a pass, resemble those of an earlier one.
*Impossible*: a canary is in two steps of a pass, or does not keep the place that it is claimed to keep: one such sight
refutes. Bets are merged as in ``evidence``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.auditing.evidence import Seldom, log_mean

__all__ = ["Turns"]

_BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
_IMPOSSIBLE = 1e9
_COMPARED, _EVERY = 24, 4  # canaries of a draw, and steps, that are compared with all before
_ALIKE = 0.9  # how often a canary that was in an earlier draw is in this one, under the bet that draws come again


class Turns:
    """Watches the draws of a run, told step by step.

    ``rate`` is the chance of a canary to be drawn in a step (of its part); ``period`` says in how many steps it is
    drawn at most once, or belongs to one; ``kept`` whether its place is the same in every period. ``batch`` and
    ``records`` are given where a pass deals out exactly so many records in batches of one size: without independence.
    """

    def __init__(
        self,
        canaries: int,
        planned: int,
        *,
        rate: float = 1.0,
        period: int = 1,
        kept: bool = False,
        independent: bool = True,
        dealt: tuple[int, int] | None = None,
    ) -> None:
        self._count, self._rate, self._period, self._kept, self._independent = canaries, rate, period, kept, independent
        self._dealt = dealt
        self._place = np.full(canaries, -1)  # of each canary in the current period
        self._earlier: list[NDArray[np.int64]] = []
        self._bets = np.zeros(2 * len(_BETS))
        passes = -(-planned // period)
        self._again = Seldom(max(1, planned // _EVERY if period == 1 else passes - 1))
        # of some canaries, of which some tens are in a draw: when each was drawn, and how many were
        some = min(canaries, math.ceil(_COMPARED / rate))
        self._steps_of: list[list[int]] = [[] for _ in range(some)]
        self._sizes, self._step = np.zeros(0), 0
        self.drawn = self.chances = 0  # how often canaries were drawn, and how often they could have been
        self.impossible = False

    def tell(self, step: int, drawn: NDArray[np.int64]) -> None:
        """The canaries of a step."""
        self.drawn += len(drawn)
        if self._rate < 1 or self._period == 1:
            self.chances = self._count * (step // self._period + 1)
        if len(set(drawn.tolist())) < len(drawn):
            self.impossible = True
        if self._period == 1:
            self._bet(len(drawn), self._count * self._rate, math.inf)
            self._compare_draws(drawn)
            return
        place = step % self._period
        if place == 0 and step and not self._kept:
            self._end_pass()
        in_parts = self._rate < 1
        seen = self._place[drawn]
        if np.any((seen >= 0) & ((seen != place) | (not in_parts and not self._kept))):
            self.impossible = True
        if not (self._kept and step >= self._period):
            self._bet_on_place(place, len(drawn))
        self._place[drawn] = place

    def _bet_on_place(self, place: int, count: int) -> None:
        left = int((self._place < 0).sum())
        if self._rate < 1:
            self._bet(count, self._count * self._rate / self._period, math.inf)
        elif self._dealt is None:
            self._bet(count, left / (self._period - place), left)
        else:
            batch, records = self._dealt
            there = records - place * batch
            self._bet(count, left * min(batch, there) / there if there > 0 else 0.0, left)

    def _bet(self, count: int, mean: float, most: float) -> None:
        if mean <= 0:
            self.impossible |= count > 0
            return
        more = 1 + _BETS * (count / mean - 1)
        self.impossible |= count > most
        fewer = 1 - _BETS * (min(count, most) - mean) / (most - mean) if mean < most < math.inf else np.ones(len(_BETS))
        self._bets += np.log(np.concatenate([more, fewer]))

    def _compare_draws(self, drawn: NDArray[np.int64]) -> None:
        """Whether a draw resembles an earlier one, which independent coins do not."""
        if not self._independent or not 0 < self._rate < 0.5:
            return
        q, some = self._rate, len(self._steps_of)
        rare = q * (1 - _ALIKE) / (1 - q)  # of those that were not in it, so that the rate stays q
        own, t = drawn[drawn < some].tolist(), self._step
        if t and t % _EVERY == 0:
            both, lost, came, neither = (
                math.log(x / y) for x, y in ((_ALIKE, q), (1 - _ALIKE, 1 - q), (rare, q), (1 - rare, 1 - q))
            )
            earlier = [step for canary in own for step in self._steps_of[canary]]
            common = np.bincount(earlier, minlength=t) if earlier else np.zeros(t)
            logs = common * (both - lost - came + neither) + self._sizes[:t] * (lost - neither)
            self._again.tell_one(log_mean(logs) + len(own) * (came - neither) + some * neither)
        for canary in own:
            self._steps_of[canary].append(t)
        if t == len(self._sizes):
            self._sizes = np.concatenate([self._sizes, np.zeros(max(64, t))])
        self._sizes[t] = len(own)
        self._step += 1

    def _end_pass(self) -> None:
        """Whether a pass deals canaries as an earlier one did, which fresh bins do not."""
        bins, own = self._period, self._place.copy()
        if self._independent and self._rate == 1 and bins > 1:
            if self._earlier:
                whole = own >= 0
                logs = []
                for earlier in self._earlier:
                    judged = whole & (earlier >= 0)
                    same = int((own[judged] == earlier[judged]).sum())
                    logs.append(
                        same * math.log(_ALIKE * bins)
                        + (int(judged.sum()) - same) * math.log((1 - _ALIKE) * bins / (bins - 1))
                    )
                self._again.tell_one(log_mean(np.array(logs)))
            self._earlier.append(own)
        self._place[:] = -1

    @property
    def log(self) -> float:
        """The logarithm of the process so far."""
        if self.impossible:
            return _IMPOSSIBLE
        return log_mean(np.array([log_mean(self._bets), self._again.log]))
