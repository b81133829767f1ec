"""From events to certified guarantees: one file per view, one front door.

``gaussian`` exact profile of the Gaussian · ``basic`` ``advanced`` ``optimal`` ``zcdp`` ``rdp`` ``gdp`` ``pld`` the views ·
``tradeoff`` what an attacker can do · ``calibration`` the smallest noise · ``neighbours`` adjacency and groups ·
``pairs`` dominating pairs · ``mixtures`` ``decay`` ``contour`` the contour engine · ``lattice`` ``grid`` the grid engine.
"""

from discreet.accounting.calibration import calibrate
from discreet.accounting.guarantee import ACCOUNTANTS, Guarantee, delta, epsilon, epsilon_bounds, guarantee

__all__ = ["ACCOUNTANTS", "Guarantee", "calibrate", "delta", "epsilon", "epsilon_bounds", "guarantee"]
