"""``discreet desk``: set a desk up, serve it, say who may ask, decide what waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from discreet.errors import extra

with extra("cli"):
    import typer

from discreet.cli.help import BOOKS, Sections, example
from discreet.cli.options import SchemaFile, delta_option, epsilon_option
from discreet.cli.outputs import ForceOption, claim_path
from discreet.cli.show import note, say, table

if TYPE_CHECKING:  # an extra of its own, loaded by the commands
    from discreet.desk.configuration import Configuration, Dataset
    from discreet.desk.state import DeskState

__all__ = ["app", "register"]

EXAMPLES = {
    "init": "discreet desk init visits visits.csv --schema visits.toml --epsilon 3",
    "serve": "discreet desk serve",
    "people": "discreet desk people",
    "requests": "discreet desk requests",
    "approve": 'discreet desk approve 7 --why "agreed with the ward"',
    "decline": 'discreet desk decline 7 --why "too fine"',
    "freeze": 'discreet desk freeze --why "a new file comes in"',
    "thaw": "discreet desk thaw",
    "same-population": 'discreet desk same-population visits --why "a column was renamed"',
    "add": "discreet desk person add ada --dataset visits --epsilon 1 --delta 1e-7",
    "raise": 'discreet desk raise visits --person ada --epsilon 0.5 --why "a second year"',
    "new": "discreet desk token new ada",
    "revoke": "discreet desk token revoke ada",
}
_TEMPLATE = """\
# A desk: which data it answers about, from which book, under which limits. Paths are relative to this file.
[desk]
ledger = "sqlite:///budget.db"
state = "sqlite:///desk.db"
root = "."                     # no source lies outside of this folder
hosts = ["127.0.0.1", "localhost"]
workers = 2
memory = 4.0                   # gigabytes a worker
tick = 1.0                     # answers leave after 1, 2, 4 ... ticks
deadline = 30.0                # what takes longer is charged and withheld

[datasets.{name}]
source = "{source}"
schema = "{schema}"
book = "{name}"
epsilon = {epsilon}
delta = {delta}
largest_epsilon = {largest}    # of one question
approval_above = {largest}     # epsilon above which the owner is asked first
rate = 60                      # questions a minute and person
"""

app = typer.Typer(
    cls=Sections,
    help="A server where analysts ask without seeing the data: set up, serve, people.",
    no_args_is_help=True,
)
person_app = typer.Typer(cls=Sections, help="Add people who may ask.", no_args_is_help=True)
token_app = typer.Typer(cls=Sections, help="Make or revoke the tokens by which people are known.", no_args_is_help=True)
app.add_typer(person_app, name="person")
app.add_typer(token_app, name="token")
_Command = TypeVar("_Command", bound=Callable[..., Any])

File = Annotated[Path, typer.Option("--config", metavar="FILE", help="The desk's configuration.", show_default=True)]
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The question, as 'discreet desk requests' numbers it.")]
Why = Annotated[str, typer.Option("--why", help="The reason, which is kept.", show_default=False)]
Days = Annotated[float, typer.Option("--days", help="How many days the token is valid.")]
Who = Annotated[str, typer.Argument(metavar="PERSON", help="The person's name.")]
DEFAULT = Path("desk.toml")


def register(commands: typer.Typer) -> None:
    """Add the group of commands."""
    commands.add_typer(app, name="desk", rich_help_panel=BOOKS)


def command(name: str, group: typer.Typer = app) -> Callable[[_Command], _Command]:
    """The command of a name, with its example."""
    return group.command(name, epilog=example(EXAMPLES[name]))


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Configuration, DeskState]]:
    """A desk's configuration, and its state."""
    from discreet.desk.configuration import read_configuration
    from discreet.desk.errors import Refusal
    from discreet.desk.state import DeskState

    configuration = read_configuration(file)
    state = DeskState(configuration.state)
    try:
        yield configuration, state
    except Refusal as refusal:
        raise ValueError(refusal.message) from None
    finally:
        state.close()


@command("init")
def init(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="What analysts call the data set.")],
    source: Annotated[
        str, typer.Argument(metavar="DATA", help="The file, in the folder of the configuration or below it.")
    ],
    schema: SchemaFile,
    epsilon: Annotated[float, epsilon_option("Limit on epsilon of the data set's book (its budget).")],
    delta: Annotated[float, delta_option("Limit on delta of the same book.")] = 0.0,
    config: File = DEFAULT,
    force: ForceOption = False,
) -> None:
    """Write the configuration of a desk with one data set; nothing is read but its schema."""
    from discreet.desk.configuration import read_configuration
    from discreet.ledger.terms import check_name

    values = {"source": source, "schema": schema, "epsilon": epsilon, "delta": delta, "largest": epsilon}
    for text in (source, schema, check_name(name)):
        if not text.isprintable() or set(text) & set('"\\'):
            raise ValueError(f"{text!r} has a sign that this file cannot hold: rename it.")
    with claim_path(config, force=force, inputs=[source, schema]) as part:
        part.write_text(_TEMPLATE.format(name=name, **values), encoding="utf-8")
        known = _spent_already(read_configuration(part), name)
    note(known)
    say(f"wrote {config}: read it through, then 'discreet desk person add' and 'discreet desk serve'")


def _spent_already(configuration: Configuration, name: str) -> str:
    """What an existing book of that name has spent, which the desk goes on with; one of other terms is refused."""
    from discreet.desk.charging import open_books
    from discreet.ledger import Ledger
    from discreet.ledger.address import Address
    from discreet.reporting import words

    file = Address.parse(configuration.ledger).file
    if file is None or not file.exists():
        return ""
    with Ledger(configuration.ledger) as ledger:
        if name not in [book.name for book in ledger.books()]:
            return ""
        book = open_books(ledger, configuration)[name]
        spent, limit, left = words.balance(book.spent().epsilon, book.limit[0])
    return f"Book {name!r} is in the ledger already: {spent} of epsilon {limit} is spent, {left} is left for the desk."


@command("serve")
def serve(
    config: File = DEFAULT,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=1, max=65535, help="The port, on this machine only: put a proxy with TLS in front of it."
        ),
    ] = 8765,
) -> None:
    """Serve the desk until it is stopped."""
    from discreet.desk.server import serve as serve_desk

    serve_desk(config, port, say=say)


@command("people")
def people(config: File = DEFAULT) -> None:
    """List the people and what they may do."""
    with _opened(config) as (_, state):
        rows = [(each.name, each.role, ", ".join(each.datasets), str(state.token_count(each.name)))
                for each in state.people()]  # fmt: skip
    table("", ("person", "role", "data sets", "tokens"), rows)


@command("requests")
def requests(config: File = DEFAULT) -> None:
    """List the questions that wait for an approval: who asks what, for how much."""
    from discreet.desk.questions import DeskQuestion

    with _opened(config) as (_, state):
        waiting = state.questions(state="waiting")
    rows = []
    for asking in waiting:
        question = DeskQuestion.from_dict(asking.question)
        cost = {name: value for name, value in question.budget.to_dict().items() if value is not None}
        rows.append((str(asking.number), asking.person, question.dataset, str(cost), question.label, str(question)))
    table("", ("number", "person", "data set", "budget", "label", "question"), rows, prose=True)


@command("approve")
def approve(number: Number, why: Why, config: File = DEFAULT) -> None:
    """Approve a question that waits. The approval holds for this question, person and budget, and for some days."""
    _decide(config, number, "approve", why)


@command("decline")
def decline(number: Number, why: Why, config: File = DEFAULT) -> None:
    """Decline a question that waits: nothing is charged."""
    _decide(config, number, "decline", why)


def _decide(config: Path, number: int, decision: str, why: str) -> None:
    from discreet.desk.approvals import decide
    from discreet.ledger.ledger import user_name

    with _opened(config) as (configuration, state):
        asking = decide(state, configuration, number, decision, by=user_name(), why=why)
    say(f"{asking.state}: question {number} of {asking.person}")


@command("freeze")
def freeze(why: Why, config: File = DEFAULT) -> None:
    """Stop all questions at once, until 'discreet desk thaw'."""
    if not why.strip():
        raise ValueError("--why is empty, but analysts are told the reason.")
    with _opened(config) as (_, state):
        state.note("frozen", why)
    say("frozen: no question is charged")


@command("thaw")
def thaw(config: File = DEFAULT) -> None:
    """Allow questions again after a freeze."""
    with _opened(config) as (_, state):
        state.note("frozen", None)
    say("questions may be asked")


@command("same-population")
def same_population(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The data set whose source has changed.")],
    why: Why,
    config: File = DEFAULT,
) -> None:
    """Say that a changed source holds the same people, so that its book stays in use."""
    from discreet.desk.sources import same_population as keep_counting
    from discreet.ledger.ledger import user_name

    with _opened(config) as (configuration, state):
        keep_counting(state, _known(configuration, dataset).book, user_name(), why)
    say(f"{dataset}: from the next start the same book stays in use")


@command("add", person_app)
def add(
    name: Who,
    role: Annotated[str, typer.Option("--role", help="analyst, owner or officer.")] = "analyst",
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", help="What an analyst may ask about; repeatable.", show_default=False),
    ] = None,
    epsilon: Annotated[float | None, epsilon_option("How much epsilon they may spend on each data set.")] = None,
    delta: Annotated[float, delta_option("How much delta they may spend on each data set.")] = 0.0,
    days: Days = 90.0,
    config: File = DEFAULT,
) -> None:
    """Add a person: they get a sub-book (a part of the budget) for each data set, and a token that is shown once."""
    from discreet.desk.people import add_person
    from discreet.ledger import Ledger

    if dataset and epsilon is None:
        raise ValueError("--dataset needs --epsilon: what the person may spend on it.")
    with _opened(config) as (configuration, state), Ledger(configuration.ledger) as ledger:
        shares = dict.fromkeys(dataset or (), (epsilon or 0.0, delta))
        token = add_person(ledger, state, configuration, name, role, shares, days=days)
    _show(name, token)


def _show(name: str, token: str) -> None:
    say(f"token of {name}, shown this once: {token}")
    note("Hand it over in private; only its hash is kept.")


@command("new", token_app)
def new(
    name: Who,
    days: Days = 90.0,
    config: File = DEFAULT,
) -> None:
    """Print a new token for a person, if the old one was lost or expires."""
    from discreet.desk.people import new_token

    with _opened(config) as (_, state):
        token = new_token(state, name, days=days)
    _show(name, token)


@command("revoke", token_app)
def revoke(name: Who, config: File = DEFAULT) -> None:
    """Revoke every token of a person; their questions that are not charged yet are dropped."""
    with _opened(config) as (_, state):
        count = state.revoke(name)
    say(f"{count} token of {name} is taken back" if count == 1 else f"{count} tokens of {name} are taken back")


@command("raise")
def raise_(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="The data set.")],
    why: Why,
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            help="The person whose part is raised; without it, the limit for all together.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[float, epsilon_option("How much epsilon is added.")] = 0.0,
    delta: Annotated[float, delta_option("How much delta is added; 0 allows only questions without a delta.")] = 0.0,
    config: File = DEFAULT,
) -> None:
    """Raise what a person, or everybody together, may spend on a data set. The ledger records it."""
    from discreet.desk.people import raise_limit
    from discreet.ledger import Ledger
    from discreet.ledger.ledger import user_name

    with _opened(config) as (configuration, _), Ledger(configuration.ledger) as ledger:
        known = _known(configuration, dataset)
        entry = raise_limit(ledger, known, person, epsilon=epsilon, delta=delta, why=why, by=user_name())
    say(f"raised: entry {entry.seq}")


def _known(configuration: Configuration, name: str) -> Dataset:
    if name not in configuration.datasets:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(configuration.datasets)}.")
    return configuration.datasets[name]
