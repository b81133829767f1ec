"""What a spreadsheet would run is text in a file of answers."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from discreet.cli.answer_files import write


def test_a_text_that_a_spreadsheet_would_run_is_written_as_text(tmp_path: Path) -> None:
    """Numbers stay numbers, the negative ones too."""
    texts = ["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "plain", None]
    frame = pl.DataFrame({"ward": texts, "n": [-1.0, 2, 3, 4, 5, 6, 7]})
    write(frame, {}, [], tmp_path / "answer.csv")
    read = pl.read_csv(tmp_path / "answer.csv")
    assert read["ward"].to_list() == ["'=HYPERLINK(1)", "'+1", "'-1", "'@SUM(1)", "'\tx", "plain", None]
    assert read["n"].to_list() == frame["n"].to_list()
