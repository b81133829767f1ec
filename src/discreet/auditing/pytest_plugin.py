"""The ``replay`` fixture. In a conftest: ``from discreet.auditing.pytest_plugin import replay``.

def test_my_pipeline(replay):
    replay(my_pipeline, data, neighbour)      # both orders are tried; options as for ``auditing.replay``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from discreet.auditing import replay as module_replay

__all__ = ["replay"]


@pytest.fixture
def replay() -> Callable[..., None]:
    """A function that replays an operation on two neighbours, in both orders."""

    def both_ways(operation: Callable[[Any], Any], data: Any, neighbour: Any, **options: Any) -> None:
        module_replay(operation, data, neighbour, **options)
        module_replay(operation, neighbour, data, **options)

    return both_ways
