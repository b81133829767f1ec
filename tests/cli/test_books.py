"""One rule for every command: --ledger and DISCREET_LEDGER mean the same, and what is charged to no book says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import discreet as dp
from discreet import cli
from discreet.cli.books import book_to_charge
from discreet.ledger import Book, LedgerError


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_LEDGER", raising=False)
    Path("d.csv").write_text("x\n1\n2\n")
    Path("s.toml").write_text("[columns]\nx = { bounds = [0, 9] }\n")
    with dp.Ledger("mine.db") as ledger:
        ledger.open("census", epsilon=5.0)


QUERY = ("query", "d.csv", "--schema", "s.toml", "--sql", "SELECT COUNT(*) FROM d", "--epsilon", "1")


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    return stopped.value.code


def spent():
    with dp.Ledger("mine.db") as ledger:
        return ledger.book("census").spent().epsilon


def test_a_ledger_is_a_path_or_a_url_in_python_and_on_the_command_line(tmp_path, capsys):
    """Text, a Path, an absolute one, a URL: the same file."""
    for number, address in enumerate(["mine.db", Path("mine.db"), tmp_path / "mine.db", "sqlite:///mine.db"], start=1):
        with dp.Ledger(address, create=False) as ledger:
            ledger.book("census").charge(dp.events.PureDP(epsilon=0.25))
        assert spent() == 0.25 * number
    for address in ("mine.db", "sqlite:///mine.db"):
        assert run("ledger", "show", "--ledger", address) == 0
        assert "census" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["sqlite:mine.db", "postgresql:/host/db", "", "mine.db?mode=ro", "mysql://host/db"])
def test_what_is_neither_path_nor_url_makes_no_file(address):
    """A mistyped URL is not taken for the name of a file."""
    before = sorted(Path().iterdir())
    with pytest.raises(ValueError, match="url"):
        dp.Ledger(address)
    assert sorted(Path().iterdir()) == before


def test_the_variable_is_as_good_as_the_option(monkeypatch, capsys):
    """For commands that charge and for those that look."""
    monkeypatch.setenv("DISCREET_LEDGER", "mine.db")
    assert run(*QUERY) == 0
    assert "NOT CHARGED" not in capsys.readouterr().err
    assert spent() == pytest.approx(1.0)
    assert run("ledger", "show", "census") == 0
    assert run("ledger", "history", "census") == 0
    assert run(*QUERY, "--ledger", "other.db") == 2, "the option wins"
    assert spent() == pytest.approx(1.0)


def test_what_is_charged_to_no_book_says_so_unless_told_not_to(monkeypatch, capsys):
    """On standard error, where no pipe swallows it; the answer is on standard output alone."""
    assert run(*QUERY) == 0
    loud = capsys.readouterr()
    assert loud.err.startswith("NOT CHARGED: no book")
    assert "NOT CHARGED" not in loud.out
    assert run(*QUERY, "--no-book") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("DISCREET_LEDGER", "mine.db")
    assert run(*QUERY, "--no-book") == 0
    assert capsys.readouterr().err == ""
    assert spent() == 0.0


def test_every_command_that_charges_takes_the_same_options():
    """query, fit and train: --ledger with the variable, --book, --no-book."""
    import typer

    commands = typer.main.get_command(cli.app()).commands
    for name in ("query", "fit", "train"):
        options = {option: parameter for parameter in commands[name].params for option in parameter.opts}
        assert {"--ledger", "-l", "--book", "--no-book"} <= set(options), name
        assert options["--ledger"].envvar == "DISCREET_LEDGER"
    looking = [*commands["ledger"].commands.values(), commands["report"]]
    assert all(p.envvar == "DISCREET_LEDGER" for command in looking for p in command.params if p.name == "ledger")


def test_a_failure_says_nothing_of_charges(capsys):
    """One sentence, about the failure."""

    def fail():
        with book_to_charge(None, None):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert capsys.readouterr().err == ""


def test_half_a_character_is_refused_in_a_sentence_and_charged_nowhere():
    """In a label; in the user's name, which the system gave, it is written as an escape."""
    with dp.Ledger("mine.db", who="eve\udcff") as ledger:
        book = ledger.book("census")
        with pytest.raises(ValueError, match="of whole characters"):
            book.charge(dp.events.PureDP(epsilon=0.1), label="a\ud800")
        assert book.charge(dp.events.PureDP(epsilon=0.1)).who == "eve\\udcff"


def test_a_release_says_what_it_added_and_what_is_left_beside_the_answer(capsys):
    for number, left in enumerate(["4", "3"]):
        assert run(*QUERY, "--ledger", "mine.db", "--json", "--no-keep") == 0
        said = capsys.readouterr()
        assert f"census: this added epsilon = 1; {number + 1} of 5 is spent, {left} is left" in said.err
        assert "spent" not in said.out


def test_what_releases_nothing_says_nothing_of_costs(capsys):
    assert run(*QUERY, "--ledger", "mine.db", "--explain") == 0
    assert "spent" not in capsys.readouterr().err


def test_an_answer_that_was_paid_for_is_shown_where_the_book_can_no_longer_be_read(monkeypatch, capsys):
    before = Book.spent
    seen = []

    def spent(book):
        seen.append(book)
        if len(seen) > 1:
            raise LedgerError("the disk is gone.")
        return before(book)

    monkeypatch.setattr(Book, "spent", spent)
    assert run(*QUERY, "--ledger", "mine.db", "--no-keep") == 0
    said = capsys.readouterr()
    assert "count" in said.out
    assert "What book 'census' has left cannot be read: the disk is gone." in said.err


@pytest.mark.parametrize(("delta", "told"), [("1e-6", True), ("5e-7", False), ("0", False)])
def test_a_release_that_takes_most_of_a_books_delta_is_told_so(delta, told, capsys):
    """Beyond half of it the plain sum of what was asked is no limit any more; a release may then add more than that."""
    with dp.Ledger("mine.db") as ledger:
        ledger.open("models", epsilon=5.0, delta=1e-6)
    assert run(*QUERY, "--delta", delta, "--ledger", "mine.db", "--book", "models") == 0
    assert ("more than half of what book 'models' has for all" in " ".join(capsys.readouterr().err.split())) == told
