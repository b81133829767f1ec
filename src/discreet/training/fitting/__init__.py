"""Our own loop: a training run as one operation."""
