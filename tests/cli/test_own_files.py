"""Files as people have them go the whole way: init, check, query, fit, predict, report."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet import cli
from tests.cli.person import Terminal

ROWS = 3000
FILES = {
    "semicolons": (";", ",", "%d/%m/%Y", "", "\n"),
    "tabs": ("\t", ".", None, "", "\n"),
    "Excel": (";", ",", "%d.%m.%Y", "\ufeff", "\r\n"),
}
DECLARED = {
    "# age = { ... }": "age = { bounds = [0, 100] }",
    "# wage = { ... }": "wage = { bounds = [0, 50] }",
    "# sick = { ... }": 'sick = { categories = ["no", "yes"] }',
    "# seen = { ... }": 'seen = { dates = ["2024-01-01", "2024-12-31"] }',
}


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(words))
    assert stopped.value.code == 0


def write(sign: str, decimal: str, date_format: str | None, mark: str, end: str) -> float:
    """The file, and the mean of its wages."""
    age = np.random.default_rng(0).integers(0, 100, ROWS)
    wage = [f"{a / 4 + 5:.2f}" for a in age]
    day = {None: "2024-12-31", "%d/%m/%Y": "31/12/2024", "%d.%m.%Y": "31.12.2024"}[date_format]
    lines = [sign.join(("age", "wage", "sick", "seen"))] + [
        sign.join((str(a), w.replace(".", decimal), "yes" if a > 50 else "no", day))
        for a, w in zip(age, wage, strict=True)
    ]
    Path("t.csv").write_bytes((mark + end.join(lines) + end).encode())
    return float(np.mean([float(w) for w in wage]))


@pytest.mark.parametrize("name", FILES)
def test_a_file_goes_from_its_first_line_to_the_report(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sign, decimal, date_format, mark, end = FILES[name]
    mean = write(sign, decimal, date_format, mark, end)
    spelled = ("--decimal", decimal) + (("--date-format", date_format) if date_format else ())
    run("init", "t.csv", "--no-ask", *spelled)
    text = Path("schema.toml").read_text()
    for line, declared in DECLARED.items():
        assert line in text
        text = text.replace(line, declared)
    Path("schema.toml").write_text(text)

    screen = Terminal()
    with monkeypatch.context() as at_terminal:
        at_terminal.setattr(sys, "stdout", screen)
        at_terminal.setenv("COLUMNS", "120")
        run("check", "t.csv", "--schema", "schema.toml")
    rows = [[cell.strip() for cell in line.split("│")[1:6]] for line in screen.getvalue().splitlines() if "│" in line]
    assert rows == [[column, "3,000", "0", "0", "0"] for column in ("age", "wage", "sick", "seen")]

    run("ledger", "open", "people", "--epsilon", "100", "--delta", "1e-5", "--ledger", "budget.db")
    asked = "SELECT COUNT(*) AS n, COUNT(seen) AS days, AVG(wage) AS wage FROM t"
    paid = ("--schema", "schema.toml", "--ledger", "budget.db")
    run("query", "t.csv", "--sql", asked, "--epsilon", "50", "--out", "answers.csv", *paid)
    with open("answers.csv", encoding="utf-8", newline="") as file:
        [answer] = csv.DictReader(file)
    assert [round(float(answer[column])) for column in ("n", "days")] == pytest.approx([ROWS, ROWS], abs=3)
    assert float(answer["wage"]) == pytest.approx(mean, abs=0.1)

    run("fit", "t.csv", "--target", "sick", "--epsilon", "10", "--delta", "1e-7", "--out", "m.json", *paid)
    run("predict", "m.json", "t.csv", "--out", "predictions.csv")
    truth = [line.split(sign)[2] for line in Path("t.csv").read_text("utf-8-sig").splitlines()]
    predictions = Path("predictions.csv").read_text().split()
    assert np.mean([a == b for a, b in zip(predictions, truth, strict=True)]) > 0.8
    assert "cannot be read" not in capsys.readouterr().err
    run("report", "people", "--ledger", "budget.db")
    assert "model of sick" in Path("people.html").read_text()
