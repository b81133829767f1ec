"""Files that commands write: claimed before anything is charged, put in place when they are complete.

A folder that is not there, a file that may not be written, one that exists: all of it is public, and all of it is found
before a budget is spent. A ledger, or a file that the command reads, is never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from discreet.errors import extra

with extra("cli"):
    import typer

__all__ = ["FileIsThere", "ForceOption", "claim_path"]

ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there; a ledger never is.")]

_LEDGER = b"SQLite format 3\0"
_BESIDE_A_LEDGER = ("-journal", "-wal", "-shm")


class FileIsThere(ValueError):
    """A file that ``--force`` would overwrite; the command line adds the command that does."""


@contextmanager
def claim_path(
    path: str | os.PathLike[str], *, force: bool, inputs: Sequence[str | os.PathLike[str]] = ()
) -> Iterator[Path]:
    """A new file beside ``path``, to be written in the block;
    it takes the place of ``path`` when the block ends well.
    """
    target = Path(path)
    part = target.parent / f".{target.stem}.{os.getpid()}.part{target.suffix}"  # the ending may decide what is written
    try:
        _check(target, force, inputs)
        part.touch(exist_ok=False)
    except OSError as error:
        raise ValueError(f"{str(target)!r} cannot be written: {error.strerror}.") from None
    try:
        yield part
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _check(target: Path, force: bool, inputs: Sequence[str | os.PathLike[str]]) -> None:
    where = f"{str(target)!r} cannot be written"
    if not target.parent.is_dir():
        raise ValueError(f"{where}: there is no folder {str(target.parent)!r}.")
    if target.is_dir():
        raise ValueError(f"{where}: it is a folder.")
    if any(target.name.endswith(end) and _is_ledger(Path(str(target).removesuffix(end))) for end in _BESIDE_A_LEDGER):
        raise ValueError(f"{where}: it belongs to a ledger, which is never overwritten.")
    if not target.exists():
        return
    if _is_ledger(target):
        raise ValueError(f"{where}: it is a database, perhaps a ledger, which is never overwritten.")
    if any(Path(given).exists() and target.samefile(given) for given in inputs):
        raise ValueError(f"{where}: the command reads it.")
    if not force:
        raise FileIsThere(f"{where}: it is there already. Choose another name, or overwrite it:")
    if not (target.is_file() and os.access(target, os.W_OK)):
        raise ValueError(f"{where}: it is read-only, or no ordinary file.")


def _is_ledger(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_LEDGER)) == _LEDGER
    except OSError:
        return path.is_file()  # one that cannot be read may be a ledger
