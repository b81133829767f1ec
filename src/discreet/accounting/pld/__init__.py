"""The numerical account: privacy-loss distributions (PLD), composed and certified from both sides.

:mod:`~discreet.accounting.pld.composition` is the account that the front door asks. Below it, from a leaf to a number:

* ``pairs``: two laws that dominate a leaf's neighbours; ``atoms``, ``bounded_range``, ``mixtures``, ``replaced``
  are its kinds, ``sampling`` and ``composite`` make pairs of pairs;
* ``transforms``, ``accurate``: their log-moment-generating functions, with errors relative to themselves;
* ``contour`` (``stopping``, ``decay``): composition by a contour integral;
* ``grid`` (``lattice``, ``convolution``, ``discounting``): composition on a lattice, by tilting and Fourier transforms.
"""

__all__: list[str] = []  # each file is imported by its name
