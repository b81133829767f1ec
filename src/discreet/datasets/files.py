"""Where data that does not ship is found, and the proof that it is the data it should be.

Files are looked for in the folder that the environment variable ``DISCREET_DATA`` names, otherwise in
``../shared/data`` beside the checkout. Each has a known checksum; a file that does not match is refused.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["FILES", "check_digest", "data_folder", "path"]

# sha256 of each file as it is stored.
FILES = {
    "dpbench/ADULTFRANK.n4096.npy": "d85d9b9fe1ff128820cd103f710200affee71859f721ccb9ecc6e020325e4705",
    "dpbench/HEPTH.n4096.npy": "a39f1283608ac1eae6d1d5bc289e6eb7a42687b765f5f80af1b40566ff853884",
    "dpbench/INCOME.n4096.npy": "2bdb4bb9625d836ad923b280d303860dd12034ef3ae0cf9658e834cb95d8a0c5",
    "dpbench/MEDCOST.n4096.npy": "98ac6a1fb0ccdb0e249a7df49a238145eb971fdbebe1ee805174f99d28ef0dd3",
    "iwpc-warfarin/metadata.xls": "612b7f0b5b76e0823e2fdc0c87c18fcc70318b7b8f4777c7176910d90c1db78d",
    "iwpc-warfarin/warfarin.csv.gz": "b4f7b979c9f2c0d101b14e0c59b4a400d5dbdcd3a708306526ce676af8a88253",
    "mnist/t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "mnist/t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    "mnist/train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "mnist/train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "pums/FultonPUMS5full.csv.gz": "a28e068e41031c0faeefe5cc5ad6ce6c429beca67a2d6304c77a2862337e0ed3",
    "tinyshakespeare/input.txt.gz": "bed00f18e91cda6838950656f0a95e07e0f4dbe8649a4b959f7602a7e53fbc6e",
}


def data_folder() -> Path:
    """The folder in which data that does not ship is looked for; it need not exist."""
    named = os.environ.get("DISCREET_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[3].parent / "shared" / "data"


def path(name: str) -> Path:
    """The checked file of that name.

    >>> path("pums/other.csv")
    Traceback (most recent call last):
    ...
    ValueError: name is 'pums/other.csv', but must be one of dpbench/ADULTFRANK.n4096.npy, ...
    """
    if name not in FILES:
        raise ValueError(f"name is {name!r}, but must be one of {', '.join(FILES)}.")
    found = data_folder() / name
    if not found.is_file():
        raise FileNotFoundError(
            f"{name} does not ship with discreet and is not in {data_folder()}. Put it into a folder "
            "and name that folder in the environment variable DISCREET_DATA."
        )
    check_digest(name, found.read_bytes(), FILES[name])
    return found


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
