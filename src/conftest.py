"""Doctests of modules whose packages are not here are run where they are: make test-flower."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("flwr") else ["discreet/training/integrations/flower.py"]
