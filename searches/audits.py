"""Audits of every operation, with as many runs as one likes: ``python -m searches audits --size 20000``."""

from __future__ import annotations

SIZE = 5000
FAMILY = 1e-3


def main(size: int | None = None) -> None:
    """Audit each operation with so many runs on each neighbour (slow ones a tenth); raise if a claim is refuted."""
    from tests.auditing.audited import audited
    from tests.operations.contract import Worst, every_case

    cases, refuted = every_case(), []
    for case in cases:
        trials = max(100, (size or SIZE) * case.worst.trials // Worst().trials)
        found = audited(case, FAMILY / len(cases), trials=trials)
        share = found.lower / found.claimed if found.claimed else 0.0
        print(f"  {case.name:<56} {trials:7} runs   ε ≥ {found.lower:6.3f} of {found.claimed:7.3f} ({share:4.0%})")
        refuted += [f"{case.name}: {found.verdict}"] * found.violated
    print(f"audits: {len(cases)} operations, {len(refuted)} refuted at a family-wise level of {FAMILY:g}")
    if refuted:
        raise AssertionError("\n".join(refuted))
