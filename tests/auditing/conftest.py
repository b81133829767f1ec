"""The replay fixture, imported rather than registered, because the package's own tests import every module first."""

from discreet.auditing.pytest_plugin import replay

__all__ = ["replay"]
