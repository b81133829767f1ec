"""From events to certified guarantees: one file per view, one front door.

The views: ``basic``, ``advanced``, ``optimal``, ``zcdp``, ``rdp``, ``gdp``, ``pld``; ``guarantees`` is the door.
They fold over what is proved of each leaf: ``facts`` says what can be stated, ``leaves`` states it, one file a family,
and a new kind of event is registered there once. ``neighbours`` restates leaves for an adjacency or a group; ``parts``
is the result.

``gaussian`` has the Gaussian's exact profile, ``tradeoff`` what an attacker can do, ``calibration`` the smallest noise.
``pairs``, ``atoms``, ``bounded_range``, ``sampling`` and ``replaced`` have the dominating pairs behind the numerical
account, whose engines are the contour (``mixtures``, ``decay``, ``stopping``, ``contour``) and the grid (``lattice``,
``convolution``, ``grid``).
"""

from discreet.accounting import leaves  # noqa: F401 - states the facts that everything below asks for
from discreet.accounting.calibration import calibrate
from discreet.accounting.guarantees import ACCOUNTANTS, Guarantee, delta, epsilon, epsilon_bounds, guarantee

__all__ = ["ACCOUNTANTS", "Guarantee", "calibrate", "delta", "epsilon", "epsilon_bounds", "guarantee"]
