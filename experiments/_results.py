"""Where experiments leave what the documentation shows: a small JSON file and a figure each, and the page that has the
table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peers import BUILD

__all__ = ["DOCS", "asked", "figure", "kept", "load", "resumed", "save", "write_table"]

DOCS = Path(__file__).resolve().parent.parent / "docs"


def resumed(name: str, run: Callable[[], Any]) -> Any:
    """What the run of that name found, which is kept in ``build/``: a study that was stopped goes on where it was."""
    path = BUILD / "experiments" / f"{name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(run()), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def save(name: str, found: Any) -> None:
    """Keep results beside the page that shows them."""
    path = DOCS / "experiments" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def load(name: str) -> Any:
    """What was kept."""
    return json.loads((DOCS / "experiments" / f"{name}.json").read_text(encoding="utf-8"))


def asked(name: str, seeds: int) -> tuple[list[str], bool, int]:
    """The words after ``python -m experiments.name`` (none, where all experiments are run), whether they say
    ``--quick``, and the number of ``--seeds``: one where it is quick, and ``seeds`` otherwise, unless it is given.
    """
    words = sys.argv[1:] if sys.argv[0].endswith(f"{name}.py") else []
    quick = "--quick" in words
    return words, quick, int(words[words.index("--seeds") + 1]) if "--seeds" in words else 1 if quick else seeds


def kept(name: str) -> dict[str, Any]:
    """What was kept so far, by name; nothing before the first run."""
    try:
        return dict(load(name))
    except FileNotFoundError:
        return {}


def write_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Put a table between the two marks that its page has for it, in place of the one before."""
    path = DOCS / "experiments" / f"{name}.md"
    before, _, rest = path.read_text(encoding="utf-8").partition("<!-- table -->\n")
    _, _, after = rest.partition("<!-- end -->")
    lines = [header, ["---:" if n else "---" for n in range(len(header))], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    path.write_text(f"{before}<!-- table -->\n\n{table}\n\n<!-- end -->{after}", encoding="utf-8")


@contextmanager
def figure(name: str, panels: int, width: float = 8.0) -> Iterator[list[Any]]:
    """Axes to draw on, side by side; the picture goes to the documentation."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(1, panels, figsize=(width, 3.4), constrained_layout=True, squeeze=False)
    yield list(axes[0])
    drawn.savefig(DOCS / "images" / f"{name}.png", dpi=90, metadata={"Software": None})
    pyplot.close(drawn)
