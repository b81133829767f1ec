"""The two scores of the quality report beside SDMetrics' own (0.32), on Adult: they must agree to 1e-9.

The donors' training part stands for the real table, their test part for a synthetic one; in a second run every 7th
age and every 11th number of hours is missing. What may differ at all is SDMetrics' weight of 10⁻⁶ for a category that
the real table lacks, which is below 1e-9 for 32,561 rows.
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import peers

CLOSE = 1e-9


def tables(missing: bool) -> tuple[Any, Any]:
    import pandas as pd

    from discreet.datasets import adult

    frames = [pd.DataFrame(dict(part)) for part in (adult().train, adult().test)]
    if missing:
        for frame in frames:
            for name, every in (("age", 7), ("hours_per_week", 11)):
                frame[name] = frame[name].astype("float64").mask(frame.index % every == 0)
    return frames[0], frames[1]


def main() -> None:
    from discreet.datasets import adult
    from discreet.synthesis import quality

    console = Console(width=max(120, Console().width))
    grid = Table(title="Adult: scores of the quality report beside SDMetrics 0.32")
    for header in ("table", "score", "ours", "theirs", "apart", "seconds, ours (all figures)"):
        grid.add_column(header, justify="right")
    for missing in (False, True):
        real, other = tables(missing)
        start = time.perf_counter()
        found = quality(real, other, schema=adult().schema)["sdmetrics"]
        seconds = time.perf_counter() - start
        theirs = _theirs(real, other, list(adult().bounds))
        if isinstance(theirs, peers.Failure):
            console.print(f"SDMetrics gave no answer: {theirs.reason}")
            continue
        for name, value in theirs.items():
            apart = abs(found[name] - value)
            row = ("with missing values" if missing else "as it is", name, f"{found[name]:.12f}", f"{value:.12f}")
            grid.add_row(*row, f"{apart:.1e}", f"{seconds:.1f}")
            if apart > CLOSE:
                console.print(f"MISSES  {name} is {apart:.1e} from SDMetrics', above {CLOSE:g}")
    console.print(grid)


def _theirs(real: Any, other: Any, numbers: list[str]) -> Any:
    peers.BUILD.mkdir(exist_ok=True)
    files = {name: peers.BUILD / f"bench-quality-{name}.csv" for name in ("real", "other")}
    for frame, file in zip((real, other), files.values(), strict=True):
        frame.to_csv(file, index=False)
    question = {name: str(file) for name, file in files.items()} | {"numbers": numbers}
    return peers.ask(peers.python("sdmetrics"), peers.ROOT / "benchmarks" / "peers_sdmetrics.py", question)


if __name__ == "__main__":
    main()
