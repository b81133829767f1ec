"""``discreet plan``: noises compared before anything is spent."""

from __future__ import annotations

import json

import pytest

from discreet import cli
from discreet.training import comparison, noise

ASKED = ("plan", "--records", "400", "--epochs", "2", "--epsilon", "2", "--delta", "1e-5")


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*ASKED, *arguments])
    return stopped.value.code


def test_noises_and_batch_sizes_are_compared_and_what_needs_more_memory_is_left_out(monkeypatch, capsys):
    pairs = [(given, given.sampler) for given in (noise.LambdaCGD(), noise.BLT(buffers=2), noise.Tree())]
    monkeypatch.setattr(comparison, "candidates", lambda momentum, decay: pairs)
    monkeypatch.setenv("COLUMNS", "120")
    assert run("--batch-size", "20", "--batch-size", "100", "--vectors", "2", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["batch"], row["steps"]) for row in rows} == {(20, 40), (100, 8)}
    assert {row["noise, sampler"].split("(")[0] for row in rows} >= {"LambdaCGD", "BLT"}
    assert all(row["vectors"] <= 2 for row in rows)
    assert [row["noise per step"] for row in rows] == sorted(row["noise per step"] for row in rows)
    assert run("--batch-size", "100") == 0
    assert "LambdaCGD(), KeptBins" in capsys.readouterr().out


def test_a_public_mistake_is_told(capsys):
    assert run("--batch-size", "0") != 0
    assert "batch-size" in capsys.readouterr().err
