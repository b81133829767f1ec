"""A line that says how far a private run is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from discreet.errors import extra
from discreet.training.privacy import Privacy

with extra("torch"):
    from torch import Tensor

__all__ = ["Progress"]


class Progress:
    """One line on a stream, or for ``tell``, with the share that is done: steps, epsilon so far, steps a second.

    What depends on the data without noise, the loss and the share of clipped gradients, is shown only if ``update`` is
    given it and ``privacy.local`` is set, and is marked as not private.
    """

    def __init__(
        self,
        privacy: Privacy,
        delta: float | None,
        stream: TextIO | None = None,
        tell: Callable[[float, str], object] | None = None,
    ) -> None:
        self.privacy, self.delta, self.stream = privacy, delta, sys.stderr if stream is None else stream
        self._tell = tell
        self._start, self._epsilon = time.monotonic(), ""

    def update(self, loss: Tensor | None = None) -> None:
        """Write the line; epsilon is computed again twenty times in a run."""
        done, total = self.privacy.steps, self.privacy.plan.steps
        if self.delta is not None and (done == total or done % max(1, total // 20) == 0):
            self._epsilon = f", ε {self.privacy.epsilon(self.delta, executed=True):.3f} at δ {self.delta:g}"
        rate = done / max(1e-9, time.monotonic() - self._start)
        local = ""
        if self.privacy.local and loss is not None:
            local = f" [local, not private: loss {float(loss.mean()):.3f}, {self.privacy.clip_rate:.0%} clipped]"
        text = f"step {done}/{total}{self._epsilon}, {rate:.1f} steps/s{local}"
        if self._tell is not None:
            self._tell(done / max(1, total), text)
            return
        filled = "█" * (20 * done // max(1, total))
        self.stream.write(f"\r{filled:░<20} {text} ")
        self.stream.write("\n" if done == total else "")
        self.stream.flush()
