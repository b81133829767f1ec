"""G-PATE on MNIST: digits that a generator draws at epsilon 1 and 10, without having seen one.

A digit is 14 × 14 pixels (means of four). The picture has a class a column; a logistic regression that learns from
generated digits and is tested on the real test file says how much of the classes is in them. Settings were chosen on
the training file. ``--quick`` draws after a tenth of the training and writes nothing.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import discreet as dp
from discreet.pate import GPATE, Images
from experiments import _results
from experiments._data import cache, mnist

DELTA, EPSILONS, ROWS, SCALE = 1e-5, (1.0, 10.0), 5, 2
FACTS = Images(shape=(14, 14), bounds=(0, 255), labels=range(10))
SETTINGS: dict[str, Any] = {
    "n_teachers": 500,
    "batch_size": 20,
    "projections": 32,
    "teacher_hidden": 2,
    "teacher_batch": 16,
    "latent": 8,
    "lr": 3e-3,
}
STEPS = {1.0: 50, 10.0: 70}
Array = NDArray[Any]


def halved(images: Array) -> Array:
    """Means of four pixels, each image by itself."""
    return np.asarray(images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)))


def drawn(epsilon: float, steps: int) -> tuple[Any, dict[str, float]]:
    """A fitted generator, and what a classifier of its digits is worth."""
    digits, start = mnist(), time.process_time()
    made = GPATE(epsilon=epsilon, delta=DELTA, steps=steps, **SETTINGS)
    made.fit((halved(digits.X_train), digits.y_train.astype(int)), schema=FACTS, rng=0)
    seconds = time.process_time() - start
    images, labels = made.sample(5000, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # close enough for a yardstick
        model = LogisticRegression(max_iter=100).fit(images.reshape(len(images), -1) / 255, labels)
    accuracy = model.score(halved(digits.X_test).reshape(-1, 196) / 255, digits.y_test)
    charged = dp.epsilon(made.event_, delta=DELTA)
    return made, {"epsilon": epsilon, "charged": charged, "accuracy": float(accuracy), "seconds": seconds}


def picture(images: Array, labels: Array, path: Path) -> None:
    """A column a class."""
    from matplotlib import image

    columns = [np.concatenate(list(images[labels == label][:ROWS])) for label in range(10)]
    grid = np.kron(np.concatenate(columns, axis=1), np.ones((SCALE, SCALE)))
    image.imsave(path, grid, cmap="gray_r", vmin=0, vmax=255, metadata={"Software": None})


def main(quick: bool = False) -> None:
    import torch

    torch.set_num_threads(1)
    chosen = [float(each) for each in sys.argv[1:] if each.replace(".", "").isdigit()] or EPSILONS
    for epsilon in chosen:
        made, found = drawn(epsilon, STEPS[epsilon] // (10 if quick else 1))
        print(
            f"charged epsilon {found['charged']:.3f}: a classifier of generated digits knows {found['accuracy']:.1%} "
            f"of real ones; {found['seconds']:.0f} CPU-seconds"
        )
        cache(f"pate-digits-{epsilon:g}.json").write_text(json.dumps(found))
        path = _results.place_of("images", f"pate-digits-{epsilon:g}.png")
        picture(*made.sample(400, rng=2), path)
        _results.tell(path)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
