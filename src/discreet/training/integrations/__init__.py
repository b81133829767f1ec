"""Private training inside loops that others own: Hugging Face's Trainer and Lightning, each in a module of its own.

>>> from discreet.training.integrations.huggingface import PrivateTrainer  # doctest: +SKIP
>>> from discreet.training.integrations.lightning import PrivateTraining  # doctest: +SKIP
"""
