"""The array types of this room. Precision is always double; numpy's stubs cannot say so without a cast a line."""

from typing import Any, TypeAlias

from numpy.typing import NDArray

__all__ = ["Array", "Interval"]

Array: TypeAlias = NDArray[Any]
Interval: TypeAlias = tuple[float, float]
