"""The journeys of a new user, by the guide alone, in a browser; each counts what somebody has to do.

A step is one command, one page opened, one field filled in or one button pressed.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.desk.desks import PATIENCE, free_port
from tests.desk.pages.conftest import Hospital
from tests.desk.pages.visitor import Visitor

DISCREET = [sys.executable, "-c", "from discreet.cli import main; main()"]
GUIDE = Path(__file__).parents[3] / "docs" / "tasks" / "run-a-desk.md"


def test_an_analyst_comes_from_a_token_to_a_figure_in_six_steps(visitor: Visitor, hospital: Hospital) -> None:
    _, token = hospital.person()
    visitor.sign_in(token)  # opens the address, pastes the token, presses the button
    visitor.click("a.primary")  # "Ask a question": a first one is written already
    visitor.click("#panel .primary")  # "Go on"
    visitor.click(".middle .primary")  # "Spend ε and ask"
    assert visitor.evaluate("document.querySelectorAll('.plot svg .whisker').length") == 5
    assert visitor.steps == 6


def test_an_officer_comes_from_a_link_to_the_verdict_in_three_steps(visitor: Visitor, hospital: Hospital) -> None:
    kept = hospital.desk.service.ledger.head()
    visitor.sign_in(hospital.person("officer")[1])
    assert "May this go on?" in visitor.text().replace("MAY THIS GO ON", "May this go on")
    assert "Yes, this may go on" in visitor.text()
    assert visitor.steps == 3
    visitor.click("nav a[href='/verify']")  # and, against a head that was kept, three more
    visitor.write("#kept", kept)
    visitor.click("main form button")
    assert "the head that you kept is among them" in visitor.text()
    assert visitor.steps == 6


@pytest.mark.slow(sibling="test_an_analyst_comes_from_a_token_to_a_figure_in_six_steps")
def test_an_owner_comes_from_a_file_to_a_running_desk_in_nine_steps(chromium: str, tmp_path: Path) -> None:
    """The guide's own commands, in its order; then the first page, and the colleague is answered."""
    text = GUIDE.read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1].replace('Path("', f'Path("{tmp_path}/'))  # type: ignore[index]
    steps = 2  # the file is there; its schema is written
    commands = re.findall(r"^\$ discreet (desk .*)$", text, re.MULTILINE)
    before = commands[: commands.index("desk serve")]
    tokens = []
    for words in before:
        command = [*DISCREET, *shlex.split(words)]
        said = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE
        ).stdout
        tokens += re.findall(r"desk_\S+", said)
        steps += 1
    theirs, mine = tokens
    port = free_port()
    server = subprocess.Popen(
        [*DISCREET, "desk", "serve", "--port", str(port)], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert "the desk answers" in server.stdout.readline()
        steps += 1
        with httpx.Client(transport=httpx.HTTPTransport(retries=50)) as client:  # it says so a moment before it does
            assert client.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        visitor = Visitor(chromium, tmp_path / "browser", f"http://127.0.0.1:{port}")
        try:
            visitor.sign_in(mine)
            assert "Yes, this may go on" in visitor.text()
            assert steps + visitor.steps == 9
            visitor.forget()
            visitor.sign_in(theirs, "/data/visits/ask")
            visitor.click("#panel .primary")
            visitor.click(".middle .primary")
            assert "To quote" in visitor.text()
            visitor.check()
        finally:
            visitor.close()
    finally:
        server.terminate()
        server.wait(PATIENCE)
        server.stdout.close()
