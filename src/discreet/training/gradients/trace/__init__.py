"""Who used which parameter for which record: hooks on modules, a function mode, the records' dimension, a probe."""

__all__: list[str] = []
