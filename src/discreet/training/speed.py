"""What concerns the time and memory of a run, and never its guarantee."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import whole

__all__ = ["Speed", "check_speed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How a run is carried out.

    ``max_physical_batch_size``
        Large batches come in pieces of at most so many rows: the loop calls ``step`` for every piece, and the optimiser
        moves when a batch is complete.
    ``secure``
        Noise from the cryptographic generator. Without it a faster one, keyed by the same entropy, whose state could be
        found from enough raw noise, which nobody outside sees (``discreet.random.fast``).

    >>> Speed(max_physical_batch_size=64).secure
    True
    """

    max_physical_batch_size: int | None = None
    secure: bool = True

    def __post_init__(self) -> None:
        if self.max_physical_batch_size is not None:
            whole("max_physical_batch_size", self.max_physical_batch_size, low=1)
        if not isinstance(self.secure, bool):
            raise ValueError(f"secure is {self.secure!r}, but must be True or False.")


def check_speed(speed: object) -> Speed:
    """What a ``speed=`` argument means, or the reason it means nothing."""
    if speed is None or isinstance(speed, Speed):
        return speed or Speed()
    raise ValueError(f"speed is {speed!r}, but must be a Speed, such as training.Speed(max_physical_batch_size=64).")
