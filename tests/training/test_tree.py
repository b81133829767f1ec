"""The shape of the room: folders that can be taken in at a glance, and state with one owner."""

from __future__ import annotations

from pathlib import Path

import pytest

import discreet.training
from checks.writes import writes

ROOM = Path(discreet.training.__file__).parent


def test_no_folder_has_more_than_thirteen_files():
    folders = [ROOM, *(path for path in ROOM.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    assert len(folders) > 8
    assert {str(folder): n for folder in folders if (n := len(list(folder.glob("*.py")))) > 13} == {}


def test_no_object_writes_the_fields_of_another():
    assert [(path.name, *where) for path in ROOM.rglob("*.py") for where in writes(path.read_text())] == []


@pytest.mark.parametrize("line", ["run.batch = None", "self.run.batch = None", "a, run.batch = 1, 2", "run.steps += 1"])
def test_such_a_write_is_seen(line):
    assert [text for _, text in writes(line)]
    assert not list(writes(line.replace("self.run", "self").replace("run", "self")))
