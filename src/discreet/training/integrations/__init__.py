"""Private training inside loops that others own: each engine in a module of its own, with an extra of its own.

>>> from discreet.training.integrations.huggingface import PrivateTrainer  # doctest: +SKIP
>>> from discreet.training.integrations.lightning import PrivateTraining  # doctest: +SKIP
>>> from discreet.training.integrations.flower import PrivateStrategy, clip_update  # doctest: +SKIP
"""

__all__: list[str] = []
