"""Fetching data that does not ship: from its public address, a mirror or a folder, checked before it is kept."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from discreet.datasets.catalogue import DATASETS, DataSet, StoredFile
from discreet.datasets.files import check_digest, data_folder, unpacked

__all__ = ["fetch", "is_here"]

_BLOCK, _SECONDS = 1 << 18, 60
_SLACK = 1 << 20  # what a compressed file may be longer than what it holds
Progress = Callable[[float, str], object]


def fetch(
    name: str, *, mirror: str | None = None, folder: str | Path | None = None, progress: Progress | None = None
) -> list[Path]:
    """Fetch a data set's files into the data folder, or another, and return where they are; those that are there
    already, and right, are left alone.

    ``mirror`` is a folder, or an address, that holds the files by their paths ("pums/FultonPUMS5full.csv.gz").
    """
    if name not in DATASETS:
        raise ValueError(f"name is {name!r}, but must be one of {', '.join(DATASETS)}.")
    dataset, target = DATASETS[name], data_folder() if folder is None else Path(folder)
    return [_kept(dataset, file, target / file.path, mirror, progress) for file in dataset.files]


def is_here(dataset: DataSet, folder: Path | None = None) -> bool:
    """Whether all files of a set are in the data folder; their checksums are looked at when they are read."""
    return all(((folder or data_folder()) / file.path).is_file() for file in dataset.files)


def _kept(dataset: DataSet, file: StoredFile, place: Path, mirror: str | None, progress: Progress | None) -> Path:
    if place.is_file():
        check_digest(str(place), unpacked(file.path, place.read_bytes()), file.sha256)
        return place
    content = _content(dataset, file, mirror, progress)
    check_digest(file.path, unpacked(file.path, content), file.sha256)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")  # what is cut short never bears the file's name
    try:
        part.write_bytes(content)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    return place


def _content(dataset: DataSet, file: StoredFile, mirror: str | None, progress: Progress | None) -> bytes:
    """The file as it is stored; one that is served unpacked is compressed."""
    if mirror is not None and "://" not in mirror:
        return _local(Path(mirror), file)
    address = file.address if mirror is None else f"{mirror.rstrip('/')}/{file.path}"
    if address is None:
        raise ValueError(
            f"{file.path} has no address of its own: it is described at {dataset.source} ({dataset.licence}). Name a "
            f"folder or a mirror that has it: discreet data fetch {dataset.name} --from FOLDER."
        )
    content = _download(address, file, progress)
    packed = file.path.endswith(".gz") and not address.endswith(".gz")
    return gzip.compress(content, mtime=0) if packed else content


def _local(folder: Path, file: StoredFile) -> bytes:
    place = folder / file.path
    if not place.is_file():
        raise ValueError(f"The folder {str(folder)!r} has no {file.path}.")
    return place.read_bytes()


def _download(address: str, file: StoredFile, progress: Progress | None) -> bytes:
    if not address.startswith(("https://", "http://")):
        raise ValueError(f"The address {address!r} must begin with https:// or http://.")
    blocks, length = [], 0
    try:
        with urlopen(Request(address, headers={"User-Agent": "discreet"}), timeout=_SECONDS) as answer:
            expected = int(answer.headers.get("Content-Length") or file.size)
            while block := answer.read(_BLOCK):
                blocks.append(block)
                length += len(block)
                if length > file.size + _SLACK:
                    raise ValueError(f"{address} answers with more than the {file.size:,} bytes of {file.path}.")
                if progress is not None:
                    doing = f"fetching {file.path} ({file.size / 1e6:.1f} MB unpacked)"
                    progress(min(length / max(expected, 1), 1.0), doing)
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise ValueError(
            f"{address} cannot be fetched: {reason}. Name a mirror or a folder that has {file.path} with --from."
        ) from None
    return b"".join(blocks)
