"""``discreet check``: exact counts for the owner of a file, in a terminal and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import cli

SCHEMA = """
unit = "who"
max_rows_per_unit = 2
[columns]
age = { bounds = [0, 100] }
sex = { categories = ["f", "m"] }
day = { dates = ["2024-01-01", "2024-12-31"] }
"""
ROWS = """who,age,sex,day
1,30,f,2024-05-01
1,,m,2024-05-02
1,old,x,2023-05-02
2,130,,31/12/2024
"""


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)
    Path("rows.toml").write_text(SCHEMA)


COMMAND = ["check", "rows.csv", "--schema", "rows.toml"]


def at_a_terminal():
    """What the command prints there."""
    ours, theirs = pty.openpty()
    code = f"from discreet.cli import main; main({COMMAND!r})"
    environment = os.environ | {"COLUMNS": "120", "NO_COLOR": "1"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        try:
            while part := os.read(ours, 4096):
                printed += part
        except OSError:  # the other end is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    return printed.decode()


def test_an_owner_sees_lines_that_are_no_rows_and_times_that_are_none():
    """A file of another encoding loses each line with an umlaut: the counts of what is left would not tell."""
    Path("rows.csv").write_bytes("who,age,sex,day\n1,30,f,2024-05-01 12:30\n2,30,ü,now\n3,31,m,now\n".encode("latin-1"))
    Path("rows.toml").write_text(SCHEMA.replace("dates", "times"))
    printed = at_a_terminal()
    assert "lines that hold no row, and count nowhere: 1 (the first is line 3)" in " ".join(printed.split())
    assert "UTF-8" in " ".join(printed.split())
    (times,) = [line for line in printed.splitlines() if line.startswith("│ day")]
    assert [cell.strip() for cell in times.split("│")][1:6] == ["day", "2", "0", "1", "0"]


def test_an_owner_sees_what_the_schema_does_not_meet():
    printed = at_a_terminal()
    rows = [[cell.strip() for cell in line.split("│")[1:6]] for line in printed.splitlines() if line.startswith("│")]
    assert rows == [["age", "4", "1", "1", "1"], ["sex", "4", "1", "0", "1"], ["day", "4", "0", "1", "1"]]
    assert printed.count("NOT PRIVATE") == 2
    assert "look at" in printed
    flat = " ".join(printed.split())
    assert "2 different 'who'; the most rows of one: 3. max_rows_per_unit = 2 leaves out 1 row, of 1 of them" in flat


def test_a_file_that_is_read_as_meant_needs_no_advice():
    """No column of the table is left empty."""
    Path("rows.csv").write_text("who,age,sex,day\n1,30,f,2024-05-01\n2,31,m,2024-05-02\n")
    printed = at_a_terminal()
    assert "look at" not in printed
    assert "│ age    │ 2" in printed
    assert all(line.count("│") == 6 for line in printed.splitlines() if line.startswith("│"))


def test_exact_counts_never_go_into_a_file_or_a_pipe(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(COMMAND)
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "in a terminal only" in told.err
