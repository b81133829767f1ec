"""The command line: a thin skin over the library. Parse, call, print.

``app`` gathers the commands; ``main`` runs them and turns every expected error into one sentence and exit code 2. A
module of this package with a function ``register(app)`` brings commands: nothing else lists it. All of them are
imported for ``--help``, so what is heavy (numpy, torch, a database) is imported inside the functions that use it. Typer
and rich load only here, when a command is run.

Decision 140.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from discreet.errors import DiscreetError, MissingExtra, extra, is_whole_text

if TYPE_CHECKING:
    import typer

__all__ = ["app", "main"]

BAD_INPUT, STOPPED = 2, 130


def app() -> typer.Typer:
    """The commands of every module of this package."""
    with extra("cli"):
        import typer

        from discreet.cli.help import EXAMPLES, SUMMARY, Sections, front_door
    commands = typer.Typer(
        name="discreet",
        cls=Sections,
        callback=front_door,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=SUMMARY,
        epilog=EXAMPLES,
    )
    for name in sorted(module.name for module in iter_modules(__path__)):
        _add(commands, name)
    return commands


def _add(commands: typer.Typer, name: str) -> None:
    """Add a module's commands. One whose extra is not installed keeps its name and answers with the line that
    installs it.
    """
    try:
        register = getattr(import_module(f"discreet.cli.{name}"), "register", None)
    except MissingExtra as missing:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        commands.command(name, context_settings=anything, help=str(missing))(_absent(missing))
        return
    if register is not None:
        register(commands)


def _absent(missing: MissingExtra) -> Callable[[], Any]:
    def answer() -> None:
        raise missing

    return answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input gives one sentence on standard error and exit code 2, never a traceback."""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
        if not all(map(is_whole_text, words)):
            raise ValueError("An argument is not text in the encoding of this system.")
        sys.exit(_run(words))
    except (DiscreetError, MissingExtra, ValueError, OSError) as error:
        _refuse(str(error))
    except (ArithmeticError, MemoryError, RecursionError) as error:
        _refuse(
            f"The numbers given are too large or small, or too deeply nested, to compute with ({type(error).__name__})."
        )
    except KeyboardInterrupt:
        _refuse("Stopped. What was charged before stays charged.", STOPPED)
    except Exception as error:
        kind = type(error).__name__
        _refuse(
            f"Something unexpected failed ({kind}). Its message is withheld because it may quote private values. The "
            "same call in Python shows it; please report it."
        )


def _run(words: Sequence[str]) -> int:
    commands = app()
    import typer

    from discreet.cli.outputs import FileIsThere

    # Typer carries a copy of click of its own; this is the base of its usage errors, whatever that copy is called.
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]
    try:
        return int(typer.main.get_command(commands).main(list(words), prog_name="discreet", standalone_mode=False) or 0)
    except usage_error as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group of commands without a command
            print(error.ctx.get_help(), file=sys.stderr)  # type: ignore[attr-defined]
            return BAD_INPUT
        _refuse(_misread_number(error, words) or error.format_message())  # type: ignore[attr-defined]
    except FileIsThere as error:
        _refuse(f"{error} {shlex.join(['discreet', *words, '--force'])}")
    except typer.Abort:
        raise KeyboardInterrupt from None
    return BAD_INPUT


_NUMBERS = {
    "valid number": "a number, with a point for decimals, as 0.5",
    "valid integer": "a whole number, of digits alone, as 1000",
}


def _misread_number(error: Any, words: Sequence[str]) -> str:
    """What to write instead of 0,5 or 1,000; nothing, if something else is wrong."""
    form = next((form for said, form in _NUMBERS.items() if said in error.format_message()), "")
    for option in getattr(getattr(error, "param", None), "opts", []) if form else []:
        for place, word in enumerate(words):
            name, sign, value = word.partition("=")
            if name == option and (sign or place + 1 < len(words)):
                return f"{option} is {(value if sign else words[place + 1])!r}, but must be {form}."
    return ""


def _refuse(message: str, code: int = BAD_INPUT) -> None:
    from discreet.cli import colours
    from discreet.cli.show import warn

    warn(" ".join(message.split()), colours.BAD)
    raise SystemExit(code)
