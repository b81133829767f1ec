"""``discreet --help``: the commands by what one wants to do, each with a whole sentence."""

from __future__ import annotations

from typing import Any

from discreet.errors import extra

with extra("cli"):
    from typer.core import TyperGroup

__all__ = ["EXAMPLES", "SUMMARY", "Sections"]

SUMMARY = "Learn from sensitive data under differential privacy, and know what it cost."

SECTIONS = {
    "Ask and learn": ("query", "fit", "predict", "train"),
    "Keep the books": ("ledger", "report"),
    "Price an event": ("epsilon", "delta", "calibrate", "compare", "tradeoff"),
}

# \b keeps the lines as they are
EXAMPLES = """\b
Examples:
  discreet ledger open census --epsilon 3 --delta 1e-6
  discreet fit people.csv --schema people.toml --target income --epsilon 1
  discreet report census
  discreet epsilon --noise-multiplier 4 --rate 0.01 --steps 10000 --delta 1e-5
  discreet COMMAND --help
"""


class Sections(TyperGroup):
    """Lists commands under headings; what has none comes last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists."""
        listed = {name for names in SECTIONS.values() for name in names}
        others = tuple(name for name in self.list_commands(ctx) if name not in listed)
        for title, names in {**SECTIONS, "More": others}.items():
            found = [(name, self.get_command(ctx, name)) for name in names if name in self.commands]
            if found:
                width = max(map(len, listed))
                with formatter.section(title):
                    formatter.write_dl([(name.ljust(width), _sentence(command)) for name, command in found])


def _sentence(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())
