"""Private training of torch models."""
__all__: list[str] = []
