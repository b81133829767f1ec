"""The facts of every kind of leaf the library knows, one file a family; importing this package registers them.

``noise`` has mechanisms that add noise, ``choices`` selections and local reports, ``bare`` guarantees of mechanisms the
vocabulary does not know, ``samplers`` what runs on samples,
``selections`` the best of several runs, ``wrappers`` what narrows a proof or spreads over parts.
"""

from discreet.accounting.leaves import bare, choices, noise, samplers, selections, wrappers

__all__ = ["bare", "choices", "noise", "samplers", "selections", "wrappers"]
