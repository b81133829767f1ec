"""From events to certified guarantees: one file per view, one front door.

The views: ``basic``, ``advanced``, ``optimal``, ``zcdp``, ``rdp``, ``gdp``, ``pld``; ``guarantees`` is the door.
``gaussian`` has the Gaussian's exact profile, ``tradeoff`` what an attacker can do, ``calibration`` the smallest noise,
``neighbours`` adjacency and groups, ``pairs`` and ``sampling`` the dominating pairs behind the numerical account, whose
engines are the contour (``mixtures``, ``decay``, ``contour``) and the grid (``lattice``, ``grid``).
"""

from discreet.accounting.calibration import calibrate
from discreet.accounting.guarantees import ACCOUNTANTS, Guarantee, delta, epsilon, epsilon_bounds, guarantee

__all__ = ["ACCOUNTANTS", "Guarantee", "calibrate", "delta", "epsilon", "epsilon_bounds", "guarantee"]
