"""Which files are mutated, and which tests must notice."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FRESH", "ROOMS", "ROOT", "files", "tests"]

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "discreet"

# the modules on which guarantees rest; an empty tuple stands for the whole room, which may not be built yet
PLACES: dict[str, tuple[str, ...]] = {
    "accounting": (),
    "ledger": (),
    "mechanisms": (),
    "tables": ("bounding", "binned", "columns", "aggregates"),
    "training": (
        "gradients/clipping",
        "gradients/clipped_sum",
        "gradients/contraction",
        "sampling",
        "participation",
        "noise/independent",
        "noise/gaussians",
    ),
    "linear": ("kernels", "rows", "problem"),
    "encoding": (),
    "synthesis": (),
    "pate": (),
    "tuning": (),
}
FRESH = ("tables", "training")  # their tests start threads (of polars, of torch) while they are collected
ROOMS = [room for room in PLACES if (SOURCE / room).is_dir()]


def files(room: str) -> list[Path]:
    """The modules of a room that are mutated, as paths below the project's root."""
    chosen = [SOURCE / room / f"{name}.py" for name in PLACES[room]] or sorted((SOURCE / room).rglob("*.py"))
    return [path.relative_to(ROOT) for path in chosen if path.name != "__init__.py" and "migrations" not in path.parts]


def tests(room: str) -> list[str]:
    """What must notice: the room's tests, and its examples."""
    return [f"tests/{room}", f"src/discreet/{room}"]
