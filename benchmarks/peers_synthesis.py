"""Runs in a peer's environment: AIM or MST of smartnoise-synth or dpmm on the binned Adult, its error, time and memory.

The question names the peer ("smartnoise-aim", "dpmm-mst", ...), epsilon, delta and the seed. Both libraries are told
the public domain and get whole-number codes, so that none of them spends budget on bins; all else is their default
(workload of pairs, models of at most 80 MB). A table of the size of the real one is drawn and measured by the code
that measures ours.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from benchmarks.adult_table import Codes, codes, frame, marginal_error, sizes

MOST_MEMORY = 10 << 30  # bytes of data: a model that grows beyond fails, and is reported so
MOST_CPU = 7200  # seconds, however busy the machine is


def smartnoise(kind: str, epsilon: float, delta: float, seed: int) -> Any:
    import pandas as pd
    from snsynth import Synthesizer
    from snsynth.transform import LabelTransformer, TableTransformer

    np.random.seed(seed)  # noqa: NPY002  the peer draws from numpy's global generator
    longest = max(sizes().values())
    every = pd.DataFrame({name: np.arange(longest) % size for name, size in sizes().items()})
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes()])
    transformer.fit(every)  # the public domain, not the records
    data = frame()
    model = Synthesizer.create(kind, epsilon=epsilon, delta=delta)
    model.fit(data, transformer=transformer)
    return model.sample(len(data))


def dpmm(kind: str, epsilon: float, delta: float, seed: int) -> Any:
    from dpmm.pipelines import AIMPipeline, MSTPipeline

    data = frame()
    pipeline = {"aim": AIMPipeline, "mst": MSTPipeline}[kind](
        epsilon=epsilon, delta=delta, disable_processing=True, max_model_size=80, n_jobs=1
    )
    pipeline.fit(data, domain=sizes(), random_state=seed)
    return pipeline.generate(n_records=len(data), random_state=seed)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU + 60))
    library, kind = question["peer"].split("-")
    start, before = time.perf_counter(), time.process_time()
    found = {"smartnoise": smartnoise, "dpmm": dpmm}[library](
        kind, question["epsilon"], question["delta"], question["seed"]
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - before
    synthetic: Codes = {name: np.asarray(found[name]).astype(np.int64) for name in sizes()}
    real = codes()
    return {
        "error": marginal_error(real, synthetic),
        "pairs": marginal_error(real, synthetic, 2),
        "seconds": seconds,
        "cpu": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
