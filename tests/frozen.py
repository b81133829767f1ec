"""Which classes of a room can be changed after they were made."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

ELSEWHERE = {"discreet.training.integrations.flower"}
"""Modules whose packages need an environment of their own, where they are tested: make test-flower."""


def unfrozen(room: str) -> set[str]:
    """The dataclasses of ``discreet.<room>`` whose fields can be set again: a cost that was stated must stay.

    An estimator's parameters are set again by scikit-learn; its fit, which states the cost, is frozen.
    """
    return {
        kind.__name__
        for kind in _dataclasses(f"discreet.{room}")
        if not kind.__dataclass_params__.frozen and not hasattr(kind, "set_params")  # type: ignore[attr-defined]
    }


def _dataclasses(package: str) -> Iterator[type]:
    found = importlib.import_module(package)
    for item in pkgutil.walk_packages(found.__path__, f"{package}."):
        if item.name in ELSEWHERE:
            continue
        module = importlib.import_module(item.name)
        yield from (
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind.__module__ == item.name
        )
