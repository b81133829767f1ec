r"""Mass and mean of a law on a lattice, put right at two neighbouring points.

Errors of masses go to one side: a law from above has a little too much mass, one from below too little. Sums of t
terms would have t times that, though mass and mean of each are known exactly. Let ν ≥ 0 be what a law has too much, M
its mass and b its mean. For convex f, Jensen's inequality says ∫f dν ≥ M·f(b), and f(b) is at least what the line
through f at two neighbouring points of the lattice is at b, where b is not between them. So taking away that multiple
of f at the two, of mass M and mean b, leaves a law that is still above the exact one, for all convex f; and adding it
to one from below leaves it below. What remains of the error is of second order: ν was spread around b.

Where only calls E(X - k)₊ above the two points and puts E(k - X)₊ below them are known to be ordered, equal masses and
means give all other calls and puts: the two points change neither.

Decision 232.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.arrays import Array

__all__ = ["SLIP", "balance", "moments"]

SLIP = 64 * float(np.finfo(np.longdouble).eps)  # relative: of a sum of a law's masses, which is taken pairwise


def moments(numbers: Array, masses: Array) -> tuple[np.longdouble, np.longdouble]:
    """Mass and first moment, known to ``SLIP``."""
    some = masses > 0
    kept = masses[some].astype(np.longdouble)
    return kept.sum(), (kept * numbers[some]).sum()


def balance(numbers: Array, masses: Array, mass: np.longdouble, moment: np.longdouble) -> Array:
    """The masses with that mass and first moment, or as they are where too little lies at the two points.

    Rows of ``numbers`` are as in :class:`~discreet.accounting.allocation_lattice.Blocks`: of those that reach as far as
    the mean the finest has no other point between two of its own.
    """
    has_mass, has_moment = moments(numbers, masses)
    missing, missing_moment = mass - has_mass, moment - has_moment
    centre, widths = float(moment / mass), numbers[:, 1] - numbers[:, 0]
    reach = np.flatnonzero(numbers[:, -1] > centre + 4 * widths)
    if not len(reach):
        return masses
    row = int(reach[0])
    width = np.longdouble(widths[row])
    column = int((centre - numbers[row, 0]) // widths[row]) + (row > 0)  # what is before may be the last row's
    second = (missing_moment - missing * numbers[row, column]) / width
    if missing and 0 < second / missing < 1:
        column, second = column + 1, second - missing
    changed = masses.copy()
    changed[row, column] = float(masses[row, column] + (missing - second))
    changed[row, column + 1] = float(masses[row, column + 1] + second)
    return masses if min(changed[row, column], changed[row, column + 1]) < 0 else changed
