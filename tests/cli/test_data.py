"""``discreet data``: what there is, and fetching it from a folder or a mirror; nothing wrong is ever kept."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import json
import threading
from dataclasses import replace

import pytest

from discreet import cli, datasets

CONTENT = b"educ,income\n1,200\n16,5\n"
PATH = "pums/FultonPUMS5full.csv.gz"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """An empty data folder, and a catalogue whose PUMS is small."""
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path / "data"))
    pums = datasets.DATASETS["pums"]
    (file,) = pums.files
    known = replace(file, sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT))
    monkeypatch.setitem(datasets.DATASETS, "pums", replace(pums, files=(known,)))


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert stopped.value.code == code


@pytest.fixture
def mirror(tmp_path):
    """A folder with the file, and its address on a server of this machine."""
    place = tmp_path / "mirror" / PATH
    place.parent.mkdir(parents=True)
    place.write_bytes(gzip.compress(CONTENT))
    (place.parent / "plain.csv").write_bytes(CONTENT)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "mirror"))
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path / "mirror", f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_list_says_what_there_is_and_how_to_come_by_it(capsys):
    run("data", "list")
    printed = capsys.readouterr().out
    for name, dataset in datasets.DATASETS.items():
        assert name in printed
        assert dataset.licence in printed
        assert dataset.source in printed
    assert "not here" in printed
    run("data", "list", "--json")
    every = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert every["pums"]["files"][0]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert every["adult"]["here"] is True


@pytest.mark.parametrize("kind", ["folder", "address", "own address, unpacked"])
def test_what_is_fetched_is_what_the_loader_reads(mirror, kind, capsys, monkeypatch):
    folder, address = mirror
    monkeypatch.setenv("DISCREET_PROGRESS", "1")
    if kind == "own address, unpacked":
        pums = datasets.DATASETS["pums"]
        served = replace(pums.files[0], address=f"{address}/pums/plain.csv")
        monkeypatch.setitem(datasets.DATASETS, "pums", replace(pums, files=(served,)))
        run("data", "fetch", "pums")
    else:
        run("data", "fetch", "pums", "--from", str(folder) if kind == "folder" else address)
    told = capsys.readouterr()
    assert "as it should be" in told.out
    assert "fetching" in told.err
    assert datasets.pums()["income"].tolist() == [200, 5]
    run("data", "list")
    assert "here; https://github.com/privacytoolsproject/cs208" in capsys.readouterr().out


def test_what_is_not_the_file_is_refused_and_not_kept(mirror, tmp_path, capsys):
    folder, address = mirror
    (folder / PATH).write_bytes(gzip.compress(b"other"))
    for source in (str(folder), address):
        run("data", "fetch", "pums", "--from", source, code=2)
        assert "is not the file it should be" in capsys.readouterr().err
    (folder / PATH).write_bytes(gzip.compress(CONTENT)[:-4])
    run("data", "fetch", "pums", "--from", str(folder), code=2)
    assert "cut short" in capsys.readouterr().err
    assert list((tmp_path / "data").rglob("*")) == []


def test_what_cannot_be_fetched_says_what_to_do(tmp_path, capsys):
    run("data", "fetch", "warfarin", code=2)
    assert "has no address of its own: it is described at https://www.pharmgkb.org" in capsys.readouterr().err
    run("data", "fetch", "pums", "--from", "http://127.0.0.1:9", code=2)
    assert "cannot be fetched" in capsys.readouterr().err
    run("data", "fetch", "pums", "--from", str(tmp_path), code=2)
    assert f"has no {PATH}" in capsys.readouterr().err
    run("data", "fetch", "pumps", code=2)
    assert "must be one of adult, dpbench" in capsys.readouterr().err
    run("data", "fetch", "adult")
    assert "ships with discreet" in capsys.readouterr().out
