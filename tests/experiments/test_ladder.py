"""The experiment prints the ladder the theorems give, beside the slide's, and leaves a picture."""

from __future__ import annotations

import pytest

from experiments import ladder


def test_the_ladder_has_the_figures_its_theorems_give():
    """From adding epsilons to composing distributions; each rung is below the one before."""
    rungs = ladder.ladder()
    known = [12_000, 7_020.4, 13.636, 1.0356, 0.94687]
    assert [rung.epsilon for rung in rungs] == [pytest.approx(value, rel=1e-4) for value in known]
    assert [rung.slide for rung in rungs] == ["12 000", "360", "10", "1.25", "-"]


def test_one_step_is_beyond_the_classic_calibration():
    """The slide's 1.2 is above 1, where the classic theorem ends; the exact value is 0.926."""
    assert ladder.classic_epsilon(4.0, 1e-5) == pytest.approx(1.2, abs=0.02)
    assert ladder.gaussian_epsilon(noise_multiplier=4.0, delta=1e-5) == pytest.approx(0.926, abs=1e-3)


def test_the_experiment_prints_a_table_and_leaves_a_page(tmp_path, monkeypatch, capsys):
    """What `python -m experiments ladder` runs: table, result and figure go to the documentation."""
    monkeypatch.setattr(ladder._results, "DOCS", tmp_path)
    monkeypatch.setitem(ladder._results._asked, "write", True)
    for folder in ("experiments", "images"):
        (tmp_path / folder).mkdir()
    page = tmp_path / "experiments" / "ladder.md"
    page.write_text("<!-- table -->\n<!-- end -->\n")
    ladder.main()
    printed = capsys.readouterr().out
    assert all(rung.name in printed and rung.name in page.read_text() for rung in ladder.ladder())
    assert ladder._results.load("ladder")["rungs"][-1][2] == ladder.ladder()[-1].epsilon
    assert (tmp_path / "images" / "ladder.png").read_bytes().startswith(b"\x89PNG")
