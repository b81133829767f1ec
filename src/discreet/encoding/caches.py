"""What must be forgotten before Python ends.

DuckDB 2 looks, when it is unloaded, whether any of its objects is still alive, and prints a page about each. narwhals
keeps a namespace of each engine in a cache for the life of the process, which leads to DuckDB's types; where pyarrow is
loaded, Python's own end comes too late for them. So the caches are emptied a moment earlier.
"""

from __future__ import annotations

import atexit
import sys
from functools import _lru_cache_wrapper, cache

__all__ = ["empty_at_exit"]


@cache
def empty_at_exit() -> None:
    """Empty narwhals' caches when Python ends; asked for twice, once is enough."""
    atexit.register(_empty)


def _empty() -> None:
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "narwhals"]
    for value in [value for module in modules for value in list(vars(module).values())]:
        if isinstance(value, _lru_cache_wrapper):
            value.cache_clear()
