"""Does each record's gradient depend on that record alone? Asked of the user's own loop, for mistakes, not for malice.

It subscribes to what the gradient engine claims; the engine does not know of it.
"""

__all__: list[str] = []
