"""The facts of every kind of leaf the library knows, one file a family; importing this package registers them.

``noise`` has mechanisms that add noise, ``choices`` selections and local reports, ``bare`` guarantees of mechanisms the
vocabulary does not know, ``samplers`` what runs on samples, ``bins`` passes in which every record is in one batch,
``kept_bins`` runs in which it is always the same one,
``selections`` the best of several runs, ``wrappers`` what narrows a proof or spreads over parts.
"""

from discreet.accounting.leaves import bare, bins, choices, kept_bins, noise, samplers, selections, wrappers

__all__ = ["bare", "bins", "choices", "kept_bins", "noise", "samplers", "selections", "wrappers"]
