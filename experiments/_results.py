"""How experiments are started, and where they leave what they find: a small JSON file and a figure each, under
``build/``. Only with ``--write`` they go where the documentation shows them, and the page gets its table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers import BUILD
from experiments import _data

__all__ = [
    "DOCS",
    "asked",
    "begin",
    "figure",
    "kept",
    "load",
    "place_of",
    "resumed",
    "save",
    "show",
    "tell",
    "write_table",
]

DOCS = Path(__file__).resolve().parent.parent / "docs"
OPTIONS = """
--quick   less of everything, in seconds or a few minutes; data that is not here is made up
--write   put results, figures and tables where the documentation shows them, instead of under build/
--help    this text
Pictures and results are printed with their paths. Data that does not ship: discreet data list."""
_asked = {"quick": False, "write": False}


def begin(about: str | None, words: Sequence[str] | None = None) -> bool:
    """Take the options of an experiment's command line, or print its help and stop; whether it is to be quick."""
    words = sys.argv[1:] if words is None else words
    if "--help" in words or "-h" in words:
        print(f"{about or ''}{OPTIONS}")
        raise SystemExit(0)
    _asked.update(quick="--quick" in words, write="--write" in words)
    if _asked["quick"] and _asked["write"]:
        raise SystemExit("--quick and --write contradict each other: the documentation shows whole runs.")
    _data.use_stand_ins(_asked["quick"])
    return _asked["quick"]


def place_of(kind: str, name: str) -> Path:
    """Where a result or a figure goes."""
    folder = DOCS / kind if _asked["write"] else BUILD / ("quick" if _asked["quick"] else "results")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def tell(path: Path) -> None:
    """Print where something was written."""
    here = Path.cwd()
    print(f"wrote {path.relative_to(here) if path.is_relative_to(here) else path}", flush=True)


def resumed(name: str, run: Callable[[], Any]) -> Any:
    """What the run of that name found, which is kept in ``build/``: a study that was stopped goes on where it was."""
    path = _data.cache(f"experiments/{name}.json")
    if not path.exists():
        path.write_text(json.dumps(run()), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, found: Any) -> None:
    """Keep results, with ``--write`` beside the page that shows them."""
    path = place_of("experiments", f"{name}.json")
    path.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    tell(path)


def load(name: str) -> Any:
    """What was kept."""
    return json.loads(place_of("experiments", f"{name}.json").read_text(encoding="utf-8"))


def asked(name: str, seeds: int, quick: bool) -> tuple[list[str], int]:
    """The words after ``python -m experiments.name`` (none, where several experiments are run), and the number of
    ``--seeds``: one where it is quick, and ``seeds`` otherwise, unless it is given.
    """
    words = sys.argv[1:] if sys.argv[0].endswith(f"{name}.py") else []
    return words, int(words[words.index("--seeds") + 1]) if "--seeds" in words else 1 if quick else seeds


def kept(name: str) -> dict[str, Any]:
    """What was kept so far, by name; nothing before the first run."""
    try:
        return dict(load(name))
    except FileNotFoundError:
        return {}


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], width: int = 110) -> None:
    """Print a table as wide as the terminal, or as ``width`` where that is more."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=max(width, Console().width)).print(table)


def write_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, mark: str = "table") -> None:
    """With ``--write``, put a table between the two marks that its page has for it, in place of the one before."""
    if not _asked["write"]:
        return
    path = DOCS / "experiments" / f"{name}.md"
    before, found, rest = path.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")
    if not found:
        raise ValueError(f"{path.name} has no mark <!-- {mark} --> for a table.")
    _, _, after = rest.partition("<!-- end -->")
    lines = [header, ["---:" if n else "---" for n in range(len(header))], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    path.write_text(f"{before}<!-- {mark} -->\n\n{table}\n\n<!-- end -->{after}", encoding="utf-8")


@contextmanager
def figure(name: str, panels: int, width: float = 8.0, rows: int = 1) -> Iterator[list[Any]]:
    """Axes to draw on, side by side, or in so many rows; with ``--write`` the picture goes to the documentation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = -(-panels // rows)
    drawn, axes = pyplot.subplots(rows, columns, figsize=(width, 3.4 * rows), constrained_layout=True, squeeze=False)
    for spare in axes.ravel()[panels:]:
        spare.set_axis_off()
    yield list(axes.ravel()[:panels])
    path = place_of("images", f"{name}.png")
    drawn.savefig(path, dpi=90, metadata={"Software": None})
    pyplot.close(drawn)
    tell(path)
