"""Per-record gradients by kind of call: norms without forming a gradient (ghost clipping) where that is cheaper.

``layers`` and ``products`` register the handlers of torch's own functions; ``calls`` knows who answers for a call.
"""

__all__: list[str] = []
