"""The index of the decisions, by room: made from the pages themselves, so that nobody keeps a list.

Each line has the page's number and title, the source files that cite it (a comment or a docstring with its number or
its page), and whether it was replaced, as a whole or in part: the page says ``Replaced by [230](…)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
RANGES = re.compile(r"^\| (\d{4}) \| (\d{4}) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(r"decisions?[ /]+((?:\d{1,4}(?:, | and )?)+)", re.IGNORECASE)
REPLACED = re.compile(r"replaced\*{0,2}(?:, as to [\w ]+,)? by \[?(?:decision )?\[?(\d{2,4})", re.IGNORECASE)
ELSEWHERE = {
    3: "constraints.txt",
    4: "benchmarks",
    93: "searches",
    144: "mutants",
    211: "tests",
    212: "checks",
}  # no line of the package
EARLIER = {  # pages below 200 have the numbers they came with: the last number of each run, and its room
    4: "the house",
    7: "accounting",
    12: "mechanisms",
    13: "auditing",
    24: "ledger",
    32: "workloads",
    52: "statistics",
    62: "tables",
    69: "linear",
    76: "training",
    83: "accounting",
    93: "ledger",
    95: "mechanisms",
    96: "auditing",
    97: "linear",
    98: "the house",
    101: "tables",
    103: "statistics",
    104: "workloads",
    109: "linear",
    121: "accounting",
    127: "training",
    130: "ledger",
    132: "mechanisms",
    133: "the house",
    134: "workloads",
    137: "encoding",
    199: "the house",
}


@dataclass(frozen=True)
class Decision:
    """A page: what it decides, in which room, what replaced it, and which files of the package cite it."""

    number: int
    title: str
    page: str
    room: str
    replaced_by: int | None
    cited: tuple[str, ...]


def decisions(root: Path = ROOT) -> list[Decision]:
    """All pages, in order."""
    folder, cited = root / "docs" / "decisions", citations(root)
    ranges = [
        (int(low), int(high), room) for low, high, room in RANGES.findall((folder / "index.md").read_text("utf-8"))
    ]
    made = []
    for page in sorted(folder.glob("[0-9]*.md")):
        text = page.read_text("utf-8")
        number, title = re.match(r"# (\d+)\. (.+)", text).groups()  # type: ignore[union-attr]
        replaced = REPLACED.search(text)
        made.append(
            Decision(
                number=int(number),
                title=title,
                page=page.name,
                room=room_of(int(number), ranges),
                replaced_by=int(replaced[1]) if replaced else None,
                cited=tuple(sorted(cited.get(int(number), ()))),
            )
        )
    return made


def room_of(number: int, ranges: list[tuple[int, int, str]]) -> str:
    """The room whose range has the number; refused where none has."""
    if number < 200:
        return next(room for last, room in EARLIER.items() if number <= last)
    for low, high, room in ranges:
        if low <= number <= high:
            return re.split("[:;,]", room)[0]
    raise ValueError(f"Decision {number} is in no room's range: see docs/decisions/index.md.")


def citations(root: Path = ROOT) -> dict[int, set[str]]:
    """By number: the files of the package that name a decision."""
    package = root / "src" / "discreet"
    found: dict[int, set[str]] = {number: {place} for number, place in ELSEWHERE.items()}
    for file in package.rglob("*.py"):
        for listed in CITED.findall(file.read_text("utf-8")):
            for number in re.findall(r"\d+", listed):
                found.setdefault(int(number), set()).add(str(file.relative_to(package)))
    return found


def index(pages: list[Decision]) -> str:
    """The index as a page shows it."""
    rooms: dict[str, list[str]] = {}
    for each in pages:
        line = f"- [{each.number}. {each.title}]({each.page})"
        line += f" (replaced, at least in part, by {each.replaced_by})" if each.replaced_by else ""
        line += f": {', '.join(f'`{file}`' for file in each.cited)}" if each.cited else ""
        rooms.setdefault(each.room, []).append(line)
    parts = [f"### {room[:1].upper()}{room[1:]}\n\n" + "\n".join(lines) for room, lines in sorted(rooms.items())]
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page: the index gets its list."""
    if page.file.src_uri != "decisions/index.md":
        return markdown
    return f"{markdown}\n\n## By room\n\n{index(decisions())}\n"
