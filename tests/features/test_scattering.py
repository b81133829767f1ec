"""Public features: the same of an image however it is given and whatever is beside it, and good ones."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from discreet import Ledger
from discreet.features import Scattering
from discreet.features.made_up_images import leaves, strokes
from discreet.linear import LogisticRegression

CHANCE = np.random.default_rng(5)
GREY = CHANCE.integers(0, 256, (40, 8, 8), np.uint8)


@pytest.fixture(scope="module")
def digits_features():
    return Scattering(shape=(8, 8), largest=16).fit()


@pytest.fixture(autouse=True)
def few_made_up_images(monkeypatch):
    monkeypatch.setattr(Scattering, "made_up", 600)


def test_an_image_has_the_same_row_to_the_last_bit_whatever_is_beside_it():
    features = Scattering(shape=(8, 8), n_components=30).fit()
    rows = features.transform(GREY)
    for others in (GREY[:1], GREY[:7], GREY[3:], np.concatenate([GREY[:1]] * 300 + [GREY])):
        together = {bytes(image): row.tobytes() for image, row in zip(others, features.transform(others), strict=True)}
        assert all(
            together[bytes(each)] == row.tobytes()
            for each, row in zip(GREY, rows, strict=True)
            if bytes(each) in together
        )


@pytest.mark.parametrize(
    "given",
    [
        GREY / 255.0,
        (GREY / 255).astype(np.float32),
        GREY.reshape(40, 64),
        GREY[..., None],
        torch.from_numpy(GREY),
        torch.from_numpy(GREY)[:, None],
        GREY.tolist(),
    ],
    ids=["fractions", "single", "rows", "last", "torch", "first", "list"],
)
def test_containers_and_types_of_the_same_images_give_the_same_rows(given):
    features = Scattering(shape=(8, 8), n_components=10).fit()
    np.testing.assert_allclose(features.transform(given), features.transform(GREY), atol=1e-5)


def test_channels_first_and_last_mean_the_same():
    colour = CHANCE.random((3, 16, 16, 3))
    last = Scattering(shape=(16, 16, 3), images="leaves", n_components=100).fit()
    first = Scattering(shape=(3, 16, 16), images="leaves", n_components=100).fit()
    np.testing.assert_allclose(last.transform(colour), first.transform(colour.transpose(0, 3, 1, 2)), atol=1e-6)
    assert np.abs(last.transform(colour) - last.transform(colour[..., ::-1])).max() > 0.1


def test_what_is_no_number_is_black():
    features = Scattering(shape=(8, 8), n_components=10).fit()
    odd, black = GREY / 255.0, GREY / 255.0
    odd[0, :4], black[0, :4] = [[np.nan], [np.inf], [-np.inf], [-5.0]], [[0.0], [1.0], [0.0], [0.0]]
    np.testing.assert_allclose(features.transform(odd), features.transform(black))


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        ({"shape": (8, 9)}, GREY, r"shape \(8, 8\), but shape is \(8, 9\)"),
        ({"shape": (8, 8)}, GREY.astype(str), "must be numbers"),
        ({"shape": (8, 8, 8)}, GREY, "channels first or last"),
        ({"shape": (2, 8)}, GREY, "4 pixels"),
        ({"shape": (8, 8), "n_components": 144}, GREY, "n_components must be a whole number of at most 143"),
        ({"shape": (8, 8), "images": "cats"}, GREY, "'strokes' or 'leaves'"),
        ({"shape": (8, 8), "largest": 0}, GREY, "largest"),
        ({"shape": (3, 8, 8)}, np.zeros((2, 8, 8, 3)), "axes in their order"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(settings, given, words):
    with pytest.raises(ValueError, match=words):
        Scattering(**settings).fit().transform(given)


def test_fitting_looks_at_no_image_and_is_the_same_again():
    looked_at, blind = (Scattering(shape=(8, 8)).fit(X).transform(GREY) for X in (GREY, None))
    assert np.array_equal(looked_at, blind)
    copied = pickle.loads(pickle.dumps(Scattering(shape=(8, 8)).fit()))
    assert np.array_equal(copied.transform(GREY), blind)
    assert clone(copied).get_params() == copied.get_params()


def test_a_pipeline_on_features_beats_one_on_pixels_and_charges_a_book(digits_features):
    """Digits of 8 × 8, epsilon 1: seeds are fixed."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    learn, test = order[:1400], order[1400:]
    settings = {"epsilon": 1.0, "delta": 1e-5, "feature_norm": 1.0, "classes": range(10), "random_state": 0}
    pixels = LogisticRegression(**settings).fit(X[learn] / 64, y[learn]).score(X[test] / 64, y[test])
    book = Ledger("sqlite://").open("digits", epsilon=1.0, delta=1e-5)
    model = make_pipeline(Scattering(shape=(8, 8), largest=16), LogisticRegression(**settings))
    model.fit(X[learn], y[learn], logisticregression__book=book)
    assert model.score(X[test], y[test]) > pixels + 0.02
    assert 0.9 < book.spent().epsilon <= 1.0


def test_made_up_images_are_images():
    for image in (strokes(28, 20, CHANCE), leaves(32, 32, 3, CHANCE)):
        assert image.min() >= 0
        assert image.max() <= 1
        assert image.std() > 0.05
