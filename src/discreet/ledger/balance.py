"""What is spent, what may be, and what is left: figures that a reader can subtract. Decision 87."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal

__all__ = ["balance"]


def balance(spent: float, limit: float) -> tuple[str, str, str]:
    """What is proved, what may be, and what is left, as figures that subtract: the first rounded up to four digits, as
    in a history, the last down; to more where nothing would seem left.

    >>> balance(3.2009, 10.0), balance(0.1, 0.1), balance(float("inf"), 1.0)
    (('3.201', '10', '6.799'), ('0.1', '0.1', '0'), ('∞', '1', '0'))
    """
    whole = Decimal(repr(float(limit)))
    if math.isinf(spent):
        return "∞", _plain(whole), "0"
    exact = Decimal(repr(float(spent)))
    least = whole.adjusted() - 12  # below it a difference of doubles is rounding
    places = [value.adjusted() - more for value, more in ((exact, 3), (whole - exact, 0)) if value > 0]
    unit = Decimal(1).scaleb(max(least, min(places, default=least)))
    used = (exact / unit).to_integral_value(ROUND_CEILING) * unit
    used = min(used, whole) if spent <= limit else used
    return _plain(used), _plain(whole), _plain(max(Decimal(0), whole - used))


def _plain(value: Decimal) -> str:
    if value and not -5 < value.adjusted() < 9:
        mantissa, exponent = f"{value.normalize():e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value.normalize():f}"
