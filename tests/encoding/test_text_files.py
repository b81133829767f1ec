"""Text files as people have them: read right, or refused by name before the charge, with what to write instead."""

from __future__ import annotations

import datetime as dt
import gzip

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.encoding import Encoder
from discreet.encoding.sources import open_source
from discreet.encoding.text_files import detect_separator
from discreet.schema import Bounded, Categories, Dates, Declaration, Schema, TextForm, Unlisted, parse_schema

FACTS = Schema(age=Bounded(0, 120), sex=Categories(["f", "m"]), seen=Dates("2024-01-01", "2024-12-31"))
DAY = (dt.date(2024, 12, 31) - dt.date(1970, 1, 1)).days * 86400.0
ROWS = [(31.5, "f", DAY), (7.0, "m", DAY)]
PLAIN = "age,sex,seen\n31.5,f,2024-12-31\n7,m,2024-12-31\n"
FILES = {
    "plain": PLAIN.encode(),
    "an index without a name": b",age,sex,seen\n0,31.5,f,2024-12-31\n1,7,m,2024-12-31\n",
    "names twice": b"age,x,x,sex,seen\n31.5,1,2,f,2024-12-31\n7,1,2,m,2024-12-31\n",
    "names in large letters": b"age,AGE,sex,seen,Seen\n31.5,1,f,2024-12-31,x\n7,1,m,2024-12-31,x\n",
    "commas at the ends of lines": b"age,sex,seen,\n31.5,f,2024-12-31,\n7,m,2024-12-31,\n",
    "commas at the ends of rows": b"age,sex,seen\n31.5,f,2024-12-31,\n7,m,2024-12-31,\n",
    "Excel": b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode(),
    "quoted": b'"age","sex","seen"\n"31.5","f","2024-12-31"\n"7","m","2024-12-31"\n',
}


def rows(path, text=None):
    return open_source(path, FACTS, None, text=text or TextForm()).frame.fetchall()


@pytest.mark.parametrize("name", FILES)
def test_ordinary_files_are_read(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(FILES[name])
    assert rows(tmp_path / "t.csv") == ROWS
    table = dp.table(tmp_path / "t.csv", schema=FACTS)
    assert table.group_by("sex").count().release(epsilon=1e6).value["count"].to_list() == [1, 1]


def test_packed_files_are_read(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(PLAIN.encode()))
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.zst"), "zstd") as file:
        file.write(PLAIN.encode())
    for name in ("t.csv.gz", "t.csv.zst"):
        assert rows(tmp_path / name) == ROWS


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_an_empty_category_of_a_text_file_is_refused(tmp_path, name):
    """No cell is read as one, so its rows would be lost; counted under ``other`` they are not."""
    (tmp_path / name).write_text('sex\nf\n""\n')
    with pytest.raises(ValueError, match="'sex' has a category '', but an empty cell of a text file is missing"):
        dp.table(tmp_path / name, schema=Schema(sex=Categories(["f", ""])))
    table = dp.table(tmp_path / name, schema=Schema(sex=Categories(["f"], other="")))
    assert table.group_by("sex").count().release(epsilon=1e6).value["count"].to_list() == [1, 1]


EUROPEAN = "age;sex;seen\n31,5;f;31/12/2024\n7;m;31/12/2024\n"


def test_a_schema_says_how_text_is_written(tmp_path):
    """The file's own form, and nothing else: a cell in another is missing, and changes no other."""
    (tmp_path / "t.csv").write_text(EUROPEAN + "1.5;f;2024-12-31\n")
    form = TextForm(separator=";", decimal=",", date_format="%d/%m/%Y")
    assert rows(tmp_path / "t.csv", form) == [*ROWS, (None, "f", None)]
    (tmp_path / "schema.toml").write_text(
        'separator = ";"\ndecimal = ","\ndate_format = "%d/%m/%Y"\n'
        "[columns]\nage = { bounds = [0, 120], whole = true }\n"
        'sex = { categories = ["f", "m"] }\nseen = { dates = ["2024-01-01", "2024-12-31"] }\n'
    )
    table = dp.table(tmp_path / "t.csv", schema=tmp_path / "schema.toml")
    answer = table.sql("SELECT SUM(age) AS s, COUNT(seen) AS n FROM t", epsilon=1e6).value
    assert answer.to_dicts() == [{"s": 39, "n": 2}]


GERMAN = ["1.234,5", "-2.000", "12,5", "1.234.567,00"]
WRITTEN = {
    "a point beside a decimal comma": (TextForm(separator=";", decimal=","), GERMAN),
    "said": (TextForm(separator=";", decimal=",", thousands="."), GERMAN),
    "commas": (TextForm(separator=";", thousands=","), ["1,234.5", "-2,000", "12.5", "1,234,567.00"]),
    "spaces": (
        TextForm(separator=";", decimal=",", thousands=" "),
        ["1\u202f234,5", " -2 000 ", "12,5", "1\u00a0234 567,00"],
    ),
    "apostrophes": (TextForm(separator=";", thousands="'"), ["1'234.5", "-2\u2019000", "12.5", "1'234'567.00"]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_thousands_are_read_where_their_sign_is_said_or_can_be_nothing_else(tmp_path, name):
    """Prices from a thousand on were missing beside a decimal comma: their mean was that of the small ones."""
    form, cells = WRITTEN[name]
    point, sign = form.decimal, form.between_thousands
    no_groups = [f"1{sign}23", f"12{sign}3456", f"1{sign}{sign}234", f"1{point}234{sign}567"]
    no_groups += [] if sign == " " else [f"{sign}234", f"1{sign}234{sign}"]
    (tmp_path / "t.csv").write_text("\n".join(["n", *cells, *no_groups, ""]), encoding="utf-8")
    facts = Declaration(Schema(n=Bounded(-1e4, 1e7)), text=form)
    read = Encoder(facts).read(tmp_path / "t.csv").numbers("n")
    assert read[:4].tolist() == [1234.5, -2000.0, 12.5, 1234567.0]
    assert np.isnan(read[4:]).all()
    total = dp.table(tmp_path / "t.csv", schema=facts).sum("n").release(epsilon=1e9).value.item()
    assert total == pytest.approx(1233814, abs=0.1)


def test_a_sign_between_thousands_is_one_that_numbers_have(tmp_path):
    for line in ('thousands = "x"', 'thousands = "."', 'decimal = ","\nthousands = ","', 'thousands = ""'):
        with pytest.raises(ValueError, match="thousands is"):
            parse_schema(f"{line}\n[columns]\nage = {{ bounds = [0, 1] }}\n")
    (tmp_path / "t.csv").write_text('n\n"1,234.5"\n7\n')
    silent = Encoder(Declaration(Schema(n=Bounded(0, 1e4)))).read(tmp_path / "t.csv").numbers("n")
    assert np.isnan(silent[0])  # which may be 1.2345 or 1234.5 to who has said nothing
    assert TextForm(thousands=",").as_facts() == {"thousands": ","}


REFUSED = {
    "semicolons": (EUROPEAN.encode(), r'separated by \';\', so write separator = ";" in the schema'),
    "tabs": (PLAIN.replace(",", "\t").encode(), r'write separator = "\\t" in the schema'),
    "UTF-16": (PLAIN.encode("utf-16"), "is no UTF-8: save the file as UTF-8"),
    "Latin-1": ("âge,age,sex,seen\n".encode("latin-1") + b"1,2,f,2024-12-31\n", "is no UTF-8: save the file as UTF-8"),
    "a declared name twice": (b"age,sex,seen,sex\n1,f,2024-12-31,m\n", "Two columns are called 'sex'"),
    "no names": (b"\n1,2\n", "no first line of column names"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_first_line_tells_is_refused_with_the_remedy(tmp_path, name):
    data, said = REFUSED[name]
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(ValueError, match=said):
        dp.table(tmp_path / "t.csv", schema=FACTS)


def test_a_form_that_is_none_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(EUROPEAN)
    with pytest.raises(ValueError, match="must have known signs only"):
        rows(tmp_path / "t.csv", TextForm(separator=";", date_format="%Q"))
    for line in ('separator = ";;"', 'separator = "\\""', 'decimal = "x"', 'date_format = "dd/mm"', "separator = 1"):
        with pytest.raises(ValueError, match=line.split(" ")[0]):
            parse_schema(f"{line}\n[columns]\nage = {{ bounds = [0, 1] }}\n")


def test_a_model_keeps_the_form_of_its_files(tmp_path):
    """It predicts for files that are written as those it was made of."""
    from discreet.linear.saved import as_schema_facts
    from discreet.schema import Declaration, declaration

    facts = Declaration(Schema(age=Bounded(0, 9, whole=True), k=Unlisted()), text=TextForm(separator=";"))
    assert declaration(as_schema_facts(facts)) == facts


SPACED = {
    "a space after each comma": b"age, sex, seen\n31.5, f, 2024-12-31\n7, m, 2024-12-31\n",
    "spaces in the first line alone": b"age, sex, seen\n31.5,f,2024-12-31\n7,m,2024-12-31\n",
    "spaces on both sides": b"age , sex , seen \n 31.5 , f , 2024-12-31 \n7,m ,2024-12-31\n",
}


@pytest.mark.parametrize("name", SPACED)
def test_spaces_around_entries_do_not_count_where_the_schema_says_so(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(SPACED[name])
    with pytest.raises(ValueError, match=r'separated by \', \', so write separator = ", " in the schema'):
        rows(tmp_path / "t.csv")
    assert detect_separator(str(tmp_path / "t.csv")) == ", "
    assert rows(tmp_path / "t.csv", TextForm(separator=", ")) == ROWS
    (tmp_path / "t.csv").write_bytes(SPACED[name] + b" , , \n")
    assert rows(tmp_path / "t.csv", TextForm(separator=", ")) == [*ROWS, (None, None, None)]


def test_a_column_of_identifiers_is_read_without_spaces_too(tmp_path):
    (tmp_path / "t.csv").write_text("who, n\na, 1\n a ,2\nb, 3\n")
    facts = Declaration(Schema(n=Bounded(0, 9, whole=True)), unit="who", text=TextForm(separator=", "))
    table = dp.table(tmp_path / "t.csv", schema=facts)
    assert table.count().release(epsilon=1e6).value["count"].to_list() == [2]
