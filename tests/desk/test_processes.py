"""Real processes: from a file to a colleague's first answer, and a server that is killed at any moment."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet import cli
from discreet.desk import DeskError
from discreet.events import PureDP
from discreet.ledger import Ledger
from tests.desk.desks import COUNT, PATIENCE, free_port, write_desk

COMMAND = [sys.executable, "-c", "from discreet.cli import main; main()"]


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(words))
    assert stopped.value.code == 0


@contextmanager
def process(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """``discreet desk serve``, when it says that it answers; ended with all its workers."""
    server = subprocess.Popen(
        [*COMMAND, "desk", "serve", "--port", str(port)],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert "answers at" in server.stdout.readline()
        yield server
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wait_for_port(port: int) -> None:
    """The server has said that it will answer: each refused connection is tried again until one is taken."""
    with httpx.Client(transport=httpx.HTTPTransport(retries=50)) as client:
        assert client.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


PAGES = Path(__file__).parents[2] / "docs" / "tasks"
_BLOCK = re.compile(r"^```(?:\{ \.)?(python|console)(?: \})?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: str) -> list[tuple[str, str]]:
    """The code of a page of the docs, in its order: what somebody types who has nothing else."""
    return [(kind, text) for kind, text in _BLOCK.findall((PAGES / page).read_text(encoding="utf-8"))]


def follow(blocks: Iterable[tuple[str, str]], names: dict[str, Any], port: int) -> None:
    """Do what the blocks say, at a desk on this machine."""
    for kind, text in blocks:
        here = text.replace("https://desk.example", f"http://127.0.0.1:{port}")
        if kind == "python":
            exec(compile(here, "a page", "exec"), names)
            continue
        for line in re.findall(r"^\$ (.*)$", here.replace("\\\n", " "), re.MULTILINE):
            words = shlex.split(line)
            if words[0] == "discreet":
                run(*words[1:])


def test_from_a_file_to_a_colleagues_first_answer_by_the_docs_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, analyst, port = blocks("run-a-desk.md"), blocks("ask-at-a-desk.md"), free_port()
    serve = next(place for place, (_, text) in enumerate(owner) if text.startswith("$ discreet desk serve"))
    follow(owner[:serve], {}, port)
    token = capsys.readouterr().out.split("shown this once: ")[1].split()[0]
    monkeypatch.setenv("DISCREET_DESK_TOKEN", token)
    names: dict[str, Any] = {}
    with process(folder, port):
        wait_for_port(port)
        follow(analyst, names, port)
        assert names["answer"].value["ward"].to_list() == ["north", "south"]
        assert "of the desk's ledger" in capsys.readouterr().out
        with pytest.raises(SystemExit):  # a second server would take the first one's questions for interrupted ones
            cli.main(["desk", "serve", "--port", str(free_port())])
        assert "Another server runs this desk" in capsys.readouterr().err
        follow(owner[serve + 1 :], {}, port)
        shown = capsys.readouterr().out
        assert "frozen" in shown
        assert "of ada is taken back" in shown
        with pytest.raises(DeskError, match="token"):
            names["desk"].about()
        names["desk"].close()
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        labels = [entry.label for entry in ledger.book("visits/ada").entries() if entry.kind == "charge"]
    assert labels[0] == "stay by ward"
    assert len(labels) == 4


def test_what_a_desk_needs_is_asked_for_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_desk(folder)
    for words, reason in (
        (("query", "visits", "--sql", "SELECT 1"), "--schema is missing"),
        (("query", "visits", "--desk", "https://d.example", "--sql", "SELECT 1"), "DISCREET_DESK_TOKEN is not set"),
        (("query", "visits", "--desk", "https://d.example", "--sql", "x", "--book", "b"), "--book is for a file"),
        (("desk", "init", "visits", "visits.parquet", "--schema", "visits.toml", "--epsilon", "1"), "--force"),
        (("desk", "person", "add", "ada", "--role", "king"), "role"),
        (("desk", "person", "add", "ada", "--dataset", "none", "--epsilon", "1"), "There is no data set"),
        (("desk", "person", "add", "ada", "--dataset", "visits"), "needs --epsilon"),
        (("desk", "approve", "7", "--why", "x"), "nothing at this address"),
        (("desk", "freeze", "--why", " "), "--why is empty"),
        (("desk", "same-population", "none", "--why", "x"), "There is no data set"),
        (("desk", "people", "--config", "none.toml"), "'discreet desk init' writes one"),
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(list(words))
        assert stopped.value.code == 2
        assert reason in " ".join(capsys.readouterr().err.split())


def test_a_desk_that_takes_over_a_book_says_what_is_left_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And refuses other limits at once, not when it is served; a new book is not remarked."""
    write_desk(folder).unlink()
    words = ("desk", "init", "visits", "visits.parquet", "--schema", "visits.toml", "--epsilon")
    run(*words, "3")
    assert "already" not in capsys.readouterr().out
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        ledger.open("visits", epsilon=3.0).charge(PureDP(epsilon=2.25))
    run(*words, "3", "--force")
    assert "2.25 of epsilon 3 is spent, 0.75 is left for the desk" in capsys.readouterr().out
    written = Path("desk.toml").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        cli.main([*words, "5", "--force"])
    assert "visits" in capsys.readouterr().err
    assert Path("desk.toml").read_text(encoding="utf-8") == written


def test_the_owner_decides_at_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from discreet.desk.configuration import read_configuration
    from discreet.desk.state import DeskState
    from tests.desk.desks import LARGE

    state = DeskState(read_configuration(write_desk(folder)).state)
    for key in ("yes", "no"):
        assert state.begin("ada", key, LARGE.digest("ada"), LARGE.to_dict(), "waiting")
    run("desk", "requests")
    assert ".count()" in capsys.readouterr().out
    run("desk", "approve", "1", "--why", "agreed")
    run("desk", "decline", "2", "--why", "too fine")
    found = {asking.key: asking.state for asking in state.questions("ada")}
    state.close()
    assert found == {"yes": "approved", "no": "declined"}
    run("desk", "person", "add", "olga", "--role", "owner")
    run("desk", "people")
    assert "olga" in capsys.readouterr().out
    run("desk", "token", "revoke", "olga")
    assert "1 token of olga is taken back" in capsys.readouterr().out
    run("desk", "freeze", "--why", "a new file")
    run("desk", "thaw")


# --- kill −9 ---------------------------------------------------------------------------------------------------------


@dataclass
class Load:
    """Clients that ask for ever, and note what they were answered."""

    url: str
    tokens: list[str]
    answers: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    replies: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def ask(self, who: int) -> None:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE) as client:
            while True:
                key = f"q{self.asked.get(who, 0)}"
                try:
                    reply = client.post("/v1/releases", json=COUNT.to_dict(), headers={"Idempotency-Key": key})
                except httpx.TransportError:
                    return  # the server is gone: the same key is asked again when there is another
                if reply.status_code == 201:
                    self.answers.setdefault((who, key), set()).add(_value(reply.json()))
                    self.asked[who] = self.asked.get(who, 0) + 1
                    self.replies.release()


def _value(reply: dict[str, Any]) -> str:
    return "withheld" if reply["state"] == "withheld" else str(reply["columns"])


def survive(folder: Path, kills: int, clients: int) -> None:
    """Kill a server under load at random moments; whatever happens, each key has one charge and one answer."""
    draw = random.Random(5)
    file = write_desk(folder, tick=0.01)
    port = free_port()
    tokens = []
    from discreet.desk.charging import open_books
    from discreet.desk.configuration import read_configuration
    from discreet.desk.state import DeskState

    configuration = read_configuration(file)
    state = DeskState(configuration.state)
    with Ledger(configuration.ledger) as ledger:
        book = open_books(ledger, configuration)["visits"]
        for number in range(clients):
            book.sub(f"p{number}", epsilon=900.0)
            tokens.append(state.add_person(f"p{number}", "analyst", ("visits",)))
    load = Load(f"http://127.0.0.1:{port}", tokens)
    for _ in range(kills):
        with process(folder, port) as server:
            wait_for_port(port)
            threads = [threading.Thread(target=load.ask, args=(who,)) for who in range(clients)]
            for thread in threads:
                thread.start()
            for _ in range(draw.randint(1, 20)):  # one client has its answer; the others are somewhere before theirs
                assert load.replies.acquire(timeout=PATIENCE)
            server.kill()
            for thread in threads:
                thread.join()
    with process(folder, port):  # every key once more: it has the answer it had, or says that there is none
        wait_for_port(port)
        for (who, key), values in load.answers.items():
            headers = {"Authorization": f"Bearer {tokens[who]}", "Idempotency-Key": key}
            reply = httpx.post(f"{load.url}/v1/releases", json=COUNT.to_dict(), headers=headers, timeout=PATIENCE)
            values.add(_value(reply.json()))
    assert all(len(values) == 1 for values in load.answers.values())
    stored = state.questions()
    state.close()
    with Ledger(configuration.ledger) as ledger:
        assert ledger.verify().entries > clients
        charged = [(entry.book, entry.unit.key) for entry in ledger.entries() if entry.unit and entry.unit.key]
    assert len(charged) == len(set(charged))
    assert {(f"visits/{asking.person}", asking.key) for asking in stored} == set(charged)


def test_a_server_that_is_killed_comes_back_with_one_answer_for_each_charge(folder: Path) -> None:
    survive(folder, kills=1, clients=2)


@pytest.mark.slow(sibling="test_a_server_that_is_killed_comes_back_with_one_answer_for_each_charge")
def test_a_server_that_is_killed_ten_times_comes_back(folder: Path) -> None:
    survive(folder, kills=10, clients=8)
