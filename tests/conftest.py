"""What every test shares: nothing is drawn by luck, slow examples are not failures, counter-examples are printed in
full, slow tests have siblings.

Hypothesis draws the same examples in every run, and each test has entropy of its own, made from its name: a suite that
passed once passes on every machine. ``make search`` draws at random, and saves what it finds for the suite to replay.
"""

import os
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from discreet.random import source

PROFILE = "DISCREET_TEST_PROFILE"
told = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow], "database": None}
settings.register_profile("fixed", derandomize=True, **told)
examples = int(os.environ.get("DISCREET_TEST_EXAMPLES", "100"))  # where a test does not say how many it needs
settings.register_profile("random", derandomize=False, max_examples=examples, **told)  # of make search
settings.load_profile(os.environ.get(PROFILE, "fixed"))
for variable in ("FORCE_COLOR", "DISCREET_PROGRESS"):  # of whoever runs the tests, or of a machine that does
    os.environ.pop(variable, None)


@pytest.fixture(autouse=True)
def fixed_entropy(request, monkeypatch):
    """What a test draws without a seed is made from its name; a forked child has entropy of its own, as it must."""
    if os.environ.get(PROFILE, "fixed") != "fixed":
        return
    keys, home = random.Random(request.node.nodeid), os.getpid()

    def randbits(bits):
        own = 0 if os.getpid() == home else random.Random(os.getpid()).getrandbits(bits)
        return keys.getrandbits(bits) ^ own

    monkeypatch.setattr(source, "secrets", SimpleNamespace(randbits=randbits))
    source.system()._rekey()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what others draw from it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def chromium():
    """The browser's program, where there is one."""
    if not (program := os.environ.get("DISCREET_TEST_CHROMIUM", "")):
        pytest.skip("DISCREET_TEST_CHROMIUM names no browser; .ci/run installs one")
    return program


@pytest.fixture
def browser(chromium, tmp_path):
    """A real browser with one page."""
    from tests.reporting.browser import Browser

    opened = Browser(chromium, tmp_path / "profile")
    yield opened
    opened.close()


@pytest.hookimpl(tryfirst=True)  # before -m and -k take tests away
def pytest_collection_modifyitems(config, items):
    """Refuse a slow test without a small sibling in the default tests, whenever whole files are collected."""
    if not any("::" in argument for argument in config.args) and (alone := without_siblings(items)):
        raise pytest.UsageError(
            "Slow tests without a small sibling: " + ", ".join(alone) + ". Give the same test a smaller "
            "parameter that is not slow, or name one: @pytest.mark.slow(sibling='test_small')."
        )


def without_siblings(items):
    """Slow tests of which no smaller parameter is in the default tests,
    nor the test of that file that their marker names.
    """
    name = lambda item, function: (item.path, function)  # noqa: E731
    default = {
        name(item, getattr(item, "originalname", item.name)) for item in items if not item.get_closest_marker("slow")
    }
    slow = [
        (item, item.get_closest_marker("slow").kwargs.get("sibling"))
        for item in items
        if item.get_closest_marker("slow")
    ]
    return sorted(
        {item.nodeid.split("[")[0] for item, sibling in slow if name(item, sibling or item.originalname) not in default}
    )
