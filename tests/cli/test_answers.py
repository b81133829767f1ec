"""What a person sees of a query's answer: a screenful, an interval with each number, what no interval holds, files, and
that a question is paid for once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from discreet import cli
from discreet.ledger import Ledger

SCHEMA = """
unit = "patient"
max_rows_per_unit = 4
[columns]
patient = { unlisted = true }
ward = { range = [1, 60] }
days = { bounds = [0, 30] }
cost = { bounds = [0, 1000] }
town = { unlisted = true }
"""
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM visits GROUP BY town ORDER BY n DESC LIMIT 10"


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    """Visits, 9,000 of them, to 60 wards; the last is the largest; costs that are no numbers to this schema."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    rng = np.random.default_rng(0)
    ward = np.where(rng.random(9000) < 0.2, 60, rng.integers(1, 61, 9000))
    towns = rng.choice(
        ["Aber", "Brig", *(f"hamlet {k}" for k in range(3000))], 9000, p=[0.3, 0.2, *[0.5 / 3000] * 3000]
    )
    lines = [f"{i // 6},{w},{i % 30},€ {i % 900},{t}" for i, (w, t) in enumerate(zip(ward, towns, strict=True))]
    Path("visits.csv").write_text("patient,ward,days,cost,town\n" + "\n".join(lines) + "\n", encoding="utf-8")
    Path("visits.toml").write_text(SCHEMA)
    with Ledger("budget.db") as ledger:
        ledger.open("visits", epsilon=500.0, delta=1e-3, unit="patient")


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


def ask(sql, *more, epsilon="40", code=0):
    run("query", "visits.csv", "--schema", "visits.toml", "--sql", sql, "--epsilon", epsilon, *more, code=code)


def table(printed):
    """The lines of a printed table, as cells."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in printed.splitlines() if "│" in line]


# --- the screen -------------------------------------------------------------------------------------------------------


def test_a_long_answer_shows_its_largest_groups_and_how_many_more_there_are(capsys):
    ask(BY_WARD, "--no-book")
    printed = capsys.readouterr().out
    rows = table(printed)
    assert len(rows) == 20
    assert rows[0][0] == "60"  # the largest ward, which is the last in the order of keys
    counts = [int(row[1].replace(",", "")) for row in rows]
    assert counts == sorted(counts, reverse=True)
    assert "... and 40 more; shown are the largest by n." in printed
    ask(BY_WARD, "--no-book", "--show", "0")
    assert len(table(capsys.readouterr().out)) == 60


def test_an_order_that_was_asked_for_is_kept(capsys):
    ask(f"{BY_WARD} ORDER BY ward DESC", "--no-book", "--show", "3")
    printed = capsys.readouterr().out
    assert [row[0] for row in table(printed)] == ["60", "59", "58"]
    assert "... and 57 more; shown are the first." in printed


def test_every_number_has_its_interval_or_its_error(capsys):
    ask("SELECT COUNT(*) AS n, AVG(days) AS stay, MEDIAN(days) AS middle FROM visits", "--no-book")
    printed = capsys.readouterr().out
    assert "95 % interval of n" in printed
    ((n, interval, stay, _, _),) = table(printed)
    low, high = (float(end.replace(",", "")) for end in interval.split(" to "))
    assert low <= float(n.replace(",", "")) <= high
    assert 13 < float(stay) < 16
    assert "middle: rank off by at most" in printed
    assert "days: if its numbers are whole, whole = true in the schema" in printed
    ask("SELECT COUNT(*) AS n FROM visits", "--no-book", "--no-errors")
    assert "interval" not in capsys.readouterr().out.split("\n", 4)[1]


def test_large_sums_are_printed_with_all_digits_before_the_point(capsys):
    """Nobody writes money as 1.54561e+06; small numbers keep six digits."""
    Path("bills.csv").write_text("paid\n" + "1234.25\n" * 1001)
    Path("bills.toml").write_text("[columns]\npaid = { bounds = [0, 5000] }\n")
    asked = "SELECT SUM(paid) AS total, AVG(paid) AS mean FROM bills"
    run("query", "bills.csv", "--schema", "bills.toml", "--sql", asked, "--epsilon", "1e9", "--no-book")
    printed = capsys.readouterr().out
    assert ["1,235,484", "1,235,484 to 1,235,484", "1,234.25", "1,234.25 to 1,234.25"] in table(printed)


def test_the_bias_of_the_cap_is_named_under_the_answer(capsys):
    """Six visits each, of which four count: the largest error by far, and no interval has it."""
    ask("SELECT COUNT(*) AS n FROM visits", "--no-book")
    assert "counts at most 4 rows per 'patient': further rows are not counted" in capsys.readouterr().out


def test_what_declarations_leave_out_is_named_under_the_answer(capsys):
    """Rows of an unlisted ward, and what lies outside of bounds: in the JSON too."""
    ask(BY_WARD, "--no-book")
    printed = capsys.readouterr().out
    assert "ward: a row with none of the declared values is in no group" in printed
    assert "days: values outside 0 to 30 count as the nearer end" in printed
    assert printed.count("further rows are not counted, nor in any interval") == 1
    ask(BY_WARD, "--no-book", "--json")
    assert any("in no group" in note for note in json.loads(capsys.readouterr().out)["notes"])


def test_intervals_that_touch_the_bounds_are_a_warning(capsys):
    """A column of "€ 12", which is no number to this schema: all of it is missing, and the mean is of nothing."""
    ask("SELECT ward, AVG(cost) AS cost FROM visits GROUP BY ward", "--no-book")
    assert "all intervals touch the bounds 0 to 1000: check the bounds" in capsys.readouterr().out
    ask(BY_WARD, "--no-book")
    assert "touch the bounds" not in capsys.readouterr().out


def test_fewer_rows_than_asked_for_say_why(capsys):
    ask(BY_TOWN, "--no-book", "--delta", "1e-6", epsilon="2")
    printed = capsys.readouterr().out
    assert [row[0] for row in table(printed)] == ["Aber", "Brig"]
    assert "2 of the 10 rows asked for: values that the schema does not list are shown only" in printed
    assert "rows, 95 of 100 are shown" in printed


def test_a_chart_has_a_bar_for_each_group(capsys):
    ask(BY_WARD, "--no-book", "--chart", "--show", "5")
    lines = capsys.readouterr().out.splitlines()
    bars = lines[lines.index("n:") + 1 :][:5]
    lengths = [line.count("█") for line in bars]
    assert bars[0].startswith("60")
    assert lengths[0] == 40
    assert lengths == sorted(lengths, reverse=True)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "name"),
    [("ward + 2000", "year"), ("ward + 2000", None), ("ward * 1000.0", "code"), ("FLOOR(days / 10) * 1000", "k")],
)
def test_what_groups_are_called_is_no_amount_and_no_measure(key, name, capsys):
    ask(f"SELECT {key} {'AS ' + name if name else ''}, COUNT(*) AS n FROM visits GROUP BY 1", "--chart", "--show", "3")
    printed = capsys.readouterr().out
    assert "shown are the largest by n" in printed or "FLOOR" in key
    assert "\nn:\n" in printed
    called = [row[0] for row in table(printed)]
    assert len(called) == 3
    assert all(cell.isdigit() for cell in called)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "html"])
def test_the_whole_answer_is_written(ending, capsys):
    out = f"answers.{ending}"
    ask(BY_WARD, "--no-book", "--out", out)
    assert f"wrote {out}: 60 rows" in capsys.readouterr().out
    if ending == "html":
        text = Path(out).read_text(encoding="utf-8")
        assert text.count("<tr>") == 61
        assert "counts at most 4 rows" in text
        return
    if ending == "json":
        frame = pl.DataFrame(json.loads(Path(out).read_text(encoding="utf-8"))["rows"])
    else:
        frame = {"csv": pl.read_csv, "parquet": pl.read_parquet}[ending](out)
    assert frame["ward"].to_list() == list(range(1, 61))
    assert frame.columns == ["ward", "n", "n_low", "n_high", "stay", "stay_low", "stay_high"]


def test_a_form_that_is_not_known_is_refused(capsys):
    ask("SELECT COUNT(*) AS n FROM visits", "--no-book", "--out", "n.xlsx", code=2)
    assert "ends in .csv, .parquet, .json, .html" in capsys.readouterr().err


def test_what_cannot_be_written_is_found_before_the_charge(capsys):
    Path("there.csv").write_text("mine")
    ask("SELECT COUNT(*) AS n FROM visits", "--ledger", "budget.db", "--out", "there.csv", code=2)
    assert "it is there already" in capsys.readouterr().err
    assert Path("there.csv").read_text() == "mine"
    with Ledger("budget.db") as ledger:
        assert ledger.book("visits").spent().epsilon == 0


@pytest.mark.filterwarnings("default:A condition is met")
def test_a_misspelt_category_is_said_in_a_line_and_refused_where_nothing_is_left(capsys):
    ask("SELECT COUNT(*) AS n FROM visits WHERE ward = 999 OR days > 1", "--no-book")
    told = capsys.readouterr().err
    assert "A condition is met by no declared value. ward: no declared value meets = 999; the nearest is 60" in told
    assert "UserWarning" not in told
    ask("SELECT COUNT(*) AS n FROM visits WHERE ward = 999", "--ledger", "budget.db", code=2)
    assert "No row can meet the conditions" in capsys.readouterr().err


# --- paid for once ----------------------------------------------------------------------------------------------------


def test_a_question_that_was_answered_is_not_paid_for_twice_by_accident(capsys):
    sql = "SELECT COUNT(*) AS n FROM visits"
    ask(sql, "--ledger", "budget.db", "--json", epsilon="1")
    first = json.loads(capsys.readouterr().out)["rows"]
    ask(" SELECT  COUNT(*) AS n\nFROM visits; ", "--ledger", "budget.db", epsilon="2", code=2)
    told = capsys.readouterr().err
    assert "This was asked before, on" in told
    assert "Nothing was charged" in told
    (kept,) = Path("budget.db.answers").glob("*.json")
    assert str(kept) in told
    assert json.loads(kept.read_text())["rows"] == first
    ask(sql, "--ledger", "budget.db", "--again", epsilon="1")
    with Ledger("budget.db") as ledger:
        assert len([entry for entry in ledger.book("visits").entries() if entry.kind == "charge"]) == 2
    assert len(list(Path("budget.db.answers").glob("*.json"))) == 2


def test_a_question_in_other_words_is_the_same_question(capsys):
    """Keywords in small letters, other aliases, columns and conditions in another order: noise is paid for once."""
    words = "SELECT ward, COUNT(*) AS n, AVG(days) AS d FROM visits WHERE days > 1 AND ward < 9 GROUP BY ward"
    ask(words, "--ledger", "budget.db", epsilon="1")
    capsys.readouterr()
    other = "select avg(DAYS) mean, Ward, count(*) from v where ward<9 and (days > 1) group by 2 order by 1"
    ask(other, "--ledger", "budget.db", epsilon="1", code=2)
    assert "This was asked before, on" in capsys.readouterr().err
    with Ledger("budget.db") as ledger:
        assert len([entry for entry in ledger.book("visits").entries() if entry.kind == "charge"]) == 1


def test_another_question_and_changed_data_are_not_repetitions():
    ask("SELECT COUNT(*) AS n FROM visits", "--ledger", "budget.db", epsilon="1")
    ask("SELECT COUNT(*) AS n FROM visits WHERE days > 1", "--ledger", "budget.db", epsilon="1")
    os.utime("visits.csv", ns=(1, 1))
    ask("SELECT COUNT(*) AS n FROM visits", "--ledger", "budget.db", epsilon="1")


def test_nothing_is_kept_where_nobody_wants_it():
    ask("SELECT COUNT(*) AS n FROM visits", "--ledger", "budget.db", "--no-keep", epsilon="1")
    ask("SELECT COUNT(*) AS n FROM visits", "--no-book", epsilon="1")
    assert not Path("budget.db.answers").exists()
    ask("SELECT COUNT(*) AS n FROM visits", "--ledger", "budget.db", epsilon="1")  # so it is not known, either


def test_how_large_the_data_is_does_not_tell_one_question_from_another(tmp_path):
    """One record more, written at the same moment: the name of a kept answer and the refusal are the same."""
    from discreet.cli.answer_files import KeptQuestion

    data, schema = tmp_path / "visits.csv", tmp_path / "schema.toml"
    schema.write_text("")
    prints = []
    for text, moment in (("age\n1\n", 1), ("age\n1\n2\n", 1), ("age\n1\n", 2)):
        data.write_text(text)
        os.utime(data, ns=(moment, moment))
        prints.append(KeptQuestion("SELECT COUNT(*) FROM visits", str(data), str(schema)).fingerprint("study"))
    assert prints[0] == prints[1] != prints[2]


def test_the_report_shows_kept_answers_where_it_is_asked_to():
    """Of this book, by the number and the question of their entry; the first thirty groups, with their intervals."""
    ask(BY_WARD, "--ledger", "budget.db", epsilon="1")
    ask("SELECT AVG(days) AS stay FROM visits", "--ledger", "budget.db", "--no-keep")
    (folder,) = Path().glob("*.answers")
    kept = json.loads(next(folder.glob("*.json")).read_text())
    (folder / "99-stray.json").write_text(json.dumps(kept | {"entry": "99:f"}))  # of no entry here
    (folder / "1-stray.json").write_text(json.dumps(kept | {"question": "SELECT 1"}))
    (folder / "1-damaged.json").write_bytes(b'{"entry": "\xff')
    (folder / "1-list.json").write_text("[1]")
    run("report", "visits", "--ledger", "budget.db", "--out", "without.json")
    assert json.loads(Path("without.json").read_text())["findings"] == []
    run("report", "visits", "--ledger", "budget.db", "--answers", "--out", "with.json")
    shown = json.loads(Path("with.json").read_text())["findings"]
    assert [finding["title"] for finding in shown] == ["n", "stay"]
    assert shown[0]["values"] == [row["n"] for row in kept["rows"][:30]]
    assert "30 more are in the kept answer" in shown[0]["caption"]
    assert all(error > 0 for error in shown[0]["errors"])


def test_numbers_without_an_interval_are_no_names_of_groups_in_the_report():
    ask("SELECT COUNT(*) AS n, MEDIAN(days) AS usual FROM visits", "--ledger", "budget.db")
    run("report", "--ledger", "budget.db", "--answers", "--out", "with.json")
    (finding,) = json.loads(Path("with.json").read_text())["findings"]
    assert finding["title"] == "n"
    assert finding["labels"] == ["all"]
