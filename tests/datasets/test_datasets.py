"""Adult ships and is what it should be; the rest is found, checked, or refused with the remedy."""

import gzip
import hashlib
from dataclasses import replace

import numpy as np
import pytest

from discreet import datasets
from discreet.datasets import adult, adult_features, files
from discreet.datasets.catalogue import stored_file
from discreet.datasets.census import BOUNDS, CATEGORIES


def test_adult_has_its_records_and_columns():
    people = adult()
    assert {len(column) for column in people.train.values()} == {32_561}
    assert {len(column) for column in people.test.values()} == {16_281}
    assert set(people.train) == set(people.test) == {*people.bounds, *people.categories}
    assert (people.train["income"] == ">50K").sum() == 7841
    assert (people.test["income"] == ">50K").sum() == 3846
    assert (people.train["workclass"] == "?").sum() == 1836


@pytest.mark.parametrize("part", ["train", "test"])
def test_the_public_facts_hold(part):
    """They come from the description; the records agree with them."""
    columns = getattr(adult(), part)
    for name, (low, high) in BOUNDS.items():
        assert columns[name].dtype == np.int64
        assert low <= columns[name].min()
        assert columns[name].max() <= high
    for name, categories in CATEGORIES.items():
        assert set(columns[name].tolist()) <= set(categories)


def test_a_caller_cannot_change_what_others_see():
    with pytest.raises(ValueError, match="read-only"):
        adult().train["age"][0] = 1
    with pytest.raises(TypeError):
        adult().bounds["age"] = (0, 1)


def test_the_features_are_bounded_and_made_record_by_record():
    found = adult_features()
    assert found.X_train.shape == (32_561, 93)
    for x in (found.X_train, found.X_test):
        lengths = np.linalg.norm(x, axis=1)
        assert lengths.max() <= 1.0
        assert lengths.min() > 1 - 1e-9
    assert set(np.unique(found.y_train)) == set(np.unique(found.y_test)) == {0, 1}
    assert found.y_test.mean() == pytest.approx(3846 / 16_281)


def test_features_teach():
    """A least-squares classifier on the recipe beats always saying no (76.4 %) by far."""
    x, y, x_test, y_test = adult_features()
    weights = np.linalg.lstsq(np.c_[x, np.ones(len(x))], 2.0 * y - 1, rcond=None)[0]
    assert ((np.c_[x_test, np.ones(len(x_test))] @ weights > 0) == y_test).mean() > 0.84


def know(monkeypatch, path, content):
    """Let the catalogue know a file by this content."""
    dataset, file = stored_file(path)
    known = replace(file, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    every = tuple(known if each.path == path else each for each in dataset.files)
    monkeypatch.setitem(datasets.DATASETS, dataset.name, replace(dataset, files=every))


def test_a_folder_is_named_by_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Run: discreet data fetch pums\. .*DISCREET_DATA"):
        datasets.pums()
    content = gzip.compress(b'"educ","income"\n1,200\n16,5\n')
    (tmp_path / "pums").mkdir()
    (tmp_path / "pums" / "FultonPUMS5full.csv.gz").write_bytes(content)
    with pytest.raises(ValueError, match="is not the file it should be"):
        datasets.pums()
    know(monkeypatch, "pums/FultonPUMS5full.csv.gz", gzip.decompress(content))
    assert datasets.pums()["income"].tolist() == [200, 5]


def test_without_the_variable_data_is_kept_in_the_users_own_folder(tmp_path, monkeypatch):
    """Not beside the package, and in no folder of a developer's."""
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert tmp_path in files.data_folder().parents
    assert files.data_folder().name == "discreet"


def test_images_are_read_as_they_are_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    (tmp_path / "mnist").mkdir()
    images, labels = (
        bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, *range(6)]),
        bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]),
    )
    for name in [file.path for file in datasets.DATASETS["mnist"].files]:
        content = images if "images" in name else labels
        (tmp_path / name).write_bytes(gzip.compress(content))
        know(monkeypatch, name, content)
    found = datasets.mnist()
    assert found.X_train.tolist() == [[[0, 1, 2]], [[3, 4, 5]]]
    assert found.y_test.tolist() == [7, 9]


def test_what_is_in_the_folder_is_what_it_should_be():
    """The real files, where they are at hand."""
    try:
        people, digits, words = datasets.pums(), datasets.mnist(), datasets.shakespeare()
        patients, incomes = datasets.warfarin(), datasets.dpbench("INCOME")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert len(people["income"]) == 25_766
    assert set(people["educ"].tolist()) == set(range(1, 17))
    assert digits.X_train.shape == (60_000, 28, 28)
    assert len(words) == 1_115_394
    assert len(next(iter(patients.values()))) == 5_700
    assert incomes.shape == (4096,)
