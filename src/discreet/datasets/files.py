"""Where data that does not ship is kept, and the proof that it is the data it should be.

Files are kept in the folder that the environment variable ``DISCREET_DATA`` names, otherwise in the user's own folder
for data of programs. Each has a known checksum; a file that does not match is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
from pathlib import Path

from discreet.datasets.catalogue import stored_file

__all__ = ["check_digest", "data_folder", "path", "unpacked"]

VARIABLE = "DISCREET_DATA"


def data_folder() -> Path:
    """The folder in which data that does not ship is kept; it need not exist."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "discreet"


def path(name: str) -> Path:
    """The checked file of that name."""
    dataset, file = stored_file(name)
    place = data_folder() / name
    if not place.is_file():
        how = f"discreet data fetch {dataset.name}" + ("" if dataset.has_addresses else " --from FOLDER")
        raise FileNotFoundError(
            f"{name} ({dataset.about}) does not ship with discreet and is not in {data_folder()}. Run: {how}. Or name "
            f"a folder that has it in the environment variable {VARIABLE}."
        )
    check_digest(name, unpacked(name, place.read_bytes()), file.sha256)
    return place


def unpacked(name: str, content: bytes) -> bytes:
    """What a file holds; one whose name ends in .gz is unpacked."""
    if not name.endswith(".gz"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        raise ValueError(f"{name} is not the file it should be: it is no gzip file, or cut short. Get it again.") from (
            None
        )


def check_digest(name: str, content: bytes, sha256: str) -> bytes:
    """The content, if it is what it should be.

    >>> check_digest("a file", b"other", "0" * 64)
    Traceback (most recent call last):
    ...
    ValueError: a file is not the file it should be: its sha256 begins with d9298a10, not 00000000. Get it again.
    """
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise ValueError(
            f"{name} is not the file it should be: its sha256 begins with {digest[:8]}, not {sha256[:8]}. Get it again."
        )
    return content
