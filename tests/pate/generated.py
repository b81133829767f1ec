"""Small tables, pictures and settings for tests of generators."""

import numpy as np

from discreet.pate import GPATE, PATEGAN, Images
from discreet.schema import Bounded, Categories, Schema

RNG = np.random.default_rng(0)
TABLE = {
    "age": RNG.integers(0, 100, 60).tolist(),
    "sex": RNG.choice(["f", "m"], 60).tolist(),
    "sick": RNG.choice(["no", "yes"], 60).tolist(),
}
FACTS = Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]), sick=Categories(["no", "yes"]))
PICTURES = RNG.integers(0, 10, (60, 3, 3))
IMAGES = Images(shape=(3, 3), bounds=(0, 10))
KINDS = (PATEGAN, GPATE)
SMALL = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "n_teachers": 5,
    "steps": 2,
    "batch_size": 4,
    "bins": 4,
    "hidden": 8,
    "latent": 3,
    "teacher_hidden": 4,
}


def fewer(data, at):
    """Without one record."""
    if isinstance(data, dict):
        return {name: [*values[:at], *values[at + 1 :]] for name, values in data.items()}
    return np.delete(data, at, 0)


def made(kind, data=None, **facts):
    """Fitted with a seed."""
    return kind(**SMALL | facts).fit(TABLE if data is None else data, schema=FACTS, rng=5)
