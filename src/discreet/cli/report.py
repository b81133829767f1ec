"""``discreet report``: the privacy report of a book, as a page or as JSON."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli.answer_files import folder_beside
from discreet.cli.books import DEFAULT, Address, Anyway, OneName, only_name, open_ledger, vouch
from discreet.cli.help import BOOKS, example
from discreet.cli.options import out_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.show import say
from discreet.cli.waiting import waiting

__all__ = ["register", "report"]

EXAMPLE = example('discreet report census --dataset "survey 2025" --to "the city council"')


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel=BOOKS, epilog=EXAMPLE)(report)


def report(
    name: OneName = None,
    out: Annotated[Path | None, out_option("The file: .html, .json or .pdf. Default: the book's name, .html.")] = None,
    entries: Annotated[int, typer.Option("--entries", min=1, help="How many of the newest entries to list.")] = 500,
    dataset: Annotated[str, typer.Option("--dataset", help="What the releases were made from, in your words.")] = "",
    purpose: Annotated[str, typer.Option("--purpose", help="What the releases were made for.")] = "",
    to: Annotated[
        list[str] | None, typer.Option("--to", help="Who gets the releases; repeatable.", show_default=False)
    ] = None,
    by: Annotated[str, typer.Option("--by", help="Who answers for this report, by name.", show_default=False)] = "",
    answers: Annotated[
        bool,
        typer.Option("--answers", help="Also show the answers of discreet query that were kept beside the ledger."),
    ] = False,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write JSON in the format of the public registry of deployments.")
    ] = False,
    force: ForceOption = False,
    anyway: Anyway = False,
    ledger: Address = DEFAULT,
) -> None:
    """Write the privacy report of a book: what was released, at what cost, and what an attacker could learn.

    If the ledger's history was altered, there is no report; --anyway writes one with a red banner.
    """
    from discreet.cli.kept_findings import kept_findings
    from discreet.reporting import report as make

    if registry and out is not None and out.suffix != ".json":
        raise typer.BadParameter("an entry for the registry is JSON: name a .json file.", param_hint="'--out'")
    with open_ledger(ledger, anyway=anyway) as books, ExitStack() as files:
        name = only_name(books) if name is None else name
        book = books.book(name)
        target = out or Path(f"{name.replace('/', '-')}.{'json' if registry else 'html'}")
        page = files.enter_context(claim_path(target, force=force))
        files.enter_context(waiting("writing the report"))
        shown = kept_findings(folder_beside(ledger), _releases(book)) if answers else []
        made = make(
            book,
            entries=entries,
            findings=shown,
            dataset=dataset,
            purpose=purpose,
            recipients=", ".join(to or ()),
            author=by,
        )
        if registry:
            page.write_text(json.dumps(made.registry(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            made.save(page)
    vouch(made.facts["ledger"]["head"], made.facts["ledger"]["problem"] or "")
    say(str(target))


def _releases(book: Any) -> dict[int, str]:
    """The label of each release of a book and of the books inside it, by its number in the ledger."""
    return {entry.seq: entry.label for entry in book.entries() if entry.event}
