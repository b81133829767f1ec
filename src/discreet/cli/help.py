"""``discreet --help``: the commands by what one wants to do, each with a whole sentence.

Decision 141.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer
    from typer.core import TyperGroup

__all__ = ["BOOKS", "CLAIMS", "EXAMPLES", "LEARN", "PRICES", "SUMMARY", "Sections", "example", "front_door"]

SUMMARY = "Learn from sensitive data under differential privacy, and know what it cost."

# The headings, in this order; any other comes after them. A command names its own: app.command(rich_help_panel=LEARN).
LEARN, BOOKS, CLAIMS, PRICES = "Ask and learn", "Keep the books (budgets)", "Check a claim", "Price an event"

# \b keeps the lines as they are
EXAMPLES = """\b
Examples:
  discreet ledger open census --epsilon 3 --delta 1e-6
  discreet init people.csv --out people.toml
  discreet fit people.csv --schema people.toml --target income --epsilon 1 \\
    --delta 1e-7 --out income.json --ledger budget.db
  discreet report census
  discreet epsilon --noise-multiplier 4 --rate 0.01 --steps 10000 --delta 1e-5
  discreet COMMAND --help
"""


def example(*lines: str) -> str:
    """The end of a command's help: a command that works, its lines as they are.

    >>> example("discreet ledger show").splitlines()[1:]
    ['Example:', '  discreet ledger show']
    """
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"discreet {version('discreet')}")
        raise typer.Exit


def front_door(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and stop.")
    ] = False,
) -> None:
    """Take what is said before a command."""


class Sections(TyperGroup):
    """Lists commands under the headings that they name; what names none comes last."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists."""
        sections: dict[str, list[Any]] = {heading: [] for heading in (LEARN, BOOKS, CLAIMS, PRICES)}
        rest = "More" if ctx.parent is None else "Commands"
        for command in self.commands.values():
            heading = getattr(command, "rich_help_panel", None)
            sections.setdefault(heading if isinstance(heading, str) else rest, []).append(command)
        width = max(map(len, self.commands))
        for heading, commands in sections.items():
            if commands:
                with formatter.section(heading):
                    formatter.write_dl([(command.name.ljust(width), _sentence(command)) for command in commands])


def _sentence(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())
