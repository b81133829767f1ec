"""Runs described by a TOML file: its sections, with the keys that a command knows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["read_sections"]


def read_sections(file: Path, known: Mapping[str, set[str]]) -> dict[str, dict[str, Any]]:
    """Every known section of the file, empty where it is missing; another section, or another key, is refused."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"There is no file {str(file)!r}, which should say what to run, as TOML.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file.name} is not TOML: {error}.") from None
    for section, values in found.items():
        if section not in known or not isinstance(values, dict):
            raise ValueError(f"{file.name} has a section {section!r}, but there are {', '.join(known)}.")
        if unknown := sorted(set(values) - known[section]):
            places = [f"{other}.{unknown[0]}" for other in known if unknown[0] in known[other]]
            meant = f"did you mean {' or '.join(places)}? There" if places else "there"
            raise ValueError(
                f"{section}.{unknown[0]} is not known; {meant} are {', '.join(sorted(known[section]))} in {section}."
            )
    return {section: dict(found.get(section, {})) for section in known}
