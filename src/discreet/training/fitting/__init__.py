"""Our own loop: a training run as one operation."""

__all__: list[str] = []
