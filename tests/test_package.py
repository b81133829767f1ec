"""The package's habits: light to import, nothing visible by accident, floors that hold, a contract that runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import discreet as dp
from tests.frozen import ELSEWHERE

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {
    "numpy",
    "scipy",
    "numba",
    "randomgen",
    "torch",
    "sklearn",
    "pandas",
    "polars",
    "matplotlib",
    "sqlalchemy",
    "typer",
    "rich",
}


def modules() -> list[str]:
    """Every public module of the package."""
    found = pkgutil.walk_packages(dp.__path__, "discreet.")
    return [
        "discreet",
        *(
            item.name
            for item in found
            if item.name not in ELSEWHERE and not any(part.startswith("_") for part in item.name.split("."))
        ),
    ]


# --- light to import ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        "import discreet",
        "import discreet.cli",
        "import discreet as dp; dir(dp)",
        "import discreet as dp; dp.events.Gaussian(noise_multiplier=1.0) * 3",
    ],
)
def test_import_loads_nothing_heavy(lines):
    """The robust form of "under 0.3 s": only the standard library is loaded until a guarantee is asked for."""
    code = f"{lines}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}} & {HEAVY!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", ["epsilonn", "a_room_that_nobody_built", "cli_"])
def test_an_unknown_name_is_an_attribute_error(name):
    """Lazy attributes do not turn a misspelling into something else."""
    with pytest.raises(AttributeError, match=name):
        getattr(dp, name)


# --- rooms are found -----------------------------------------------------------------------------------------------

FRONT = ast.parse(Path(dp.__file__).read_text())
BUILT = {path.parent.name for path in Path(dp.__file__).parent.glob("*/__init__.py")} - {"cli"}


def for_type_checkers() -> set[str]:
    """The rooms that the front door imports under TYPE_CHECKING, those to come included."""
    guard = next(node for node in FRONT.body if isinstance(node, ast.If))
    imports = [node for node in guard.body if isinstance(node, ast.ImportFrom) and node.module == "discreet"]
    return {name.name for node in imports for name in node.names}


def test_every_room_is_an_attribute_by_being_there():
    """A folder beside the front door is all that the front door needs; type checkers are told of it as well."""
    assert set(dir(dp)) >= BUILT
    assert for_type_checkers() >= BUILT - {"events"}, "add it under TYPE_CHECKING and in __all__"


def test_every_room_has_its_floor_before_it_is_built():
    """The import contract knows each room that type checkers are told of, so that building it changes neither."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    assert contract["exhaustive"]
    placed = set(re.findall(r"\w+", " ".join(contract["layers"])))
    assert placed >= for_type_checkers() | BUILT | {"cli"}


def test_a_room_to_come_has_a_place_and_no_name():
    """Nothing that a user can import, list or find empty."""
    for name in for_type_checkers() - BUILT:
        assert name not in dir(dp)
        with pytest.raises(AttributeError, match=name):
            getattr(dp, name)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"discreet.{name}")


def test_a_room_that_is_put_there_appears(tmp_path):
    """In a copy of the package: one folder more, and nothing else, gives one attribute more."""
    shutil.copytree(Path(dp.__file__).parent, tmp_path / "discreet", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "discreet" / "synthesis").mkdir(exist_ok=True)
    (tmp_path / "discreet" / "synthesis" / "__init__.py").write_text("AIM = 'here'\n")
    code = "import discreet as dp; assert 'synthesis' in dir(dp); print(dp.synthesis.AIM)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout == "here\n"


# --- nothing visible by accident ---------------------------------------------------------------------------------


def test_what_the_package_shows_is_what_it_lists():
    """dir(discreet) is __all__ and the version, and each name can be reached."""
    assert set(dir(dp)) == {*dp.__all__, "__version__"}
    for name in dp.__all__:
        getattr(dp, name)


@pytest.mark.parametrize("name", modules())
def test_every_module_lists_what_it_offers(name):
    """__all__ exists, has no duplicates, each entry is there and, if it is code, has a docstring."""
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert len(set(module.__all__)) == len(module.__all__)
    for entry in module.__all__:
        value = getattr(module, entry)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}.{entry} has no docstring"


def visible(module: ModuleType) -> set[str]:
    """Names without an underscore that hold something of ours: not a module, not from elsewhere,
    not an error or a check.
    """
    ours = {
        name: str(getattr(value, "__module__", ""))
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    return {name for name, home in ours.items() if home.startswith("discreet") and home != "discreet.errors"}


@pytest.mark.parametrize("name", [name for name in modules() if hasattr(importlib.import_module(name), "__path__")])
def test_a_room_shows_only_what_it_lists(name):
    """The front door of a room (its __init__) offers nothing of ours that __all__ does not name."""
    module = importlib.import_module(name)
    assert visible(module) <= set(module.__all__)


# --- floors ------------------------------------------------------------------------------------------------------


def test_rooms_import_only_lower_floors():
    """The import contracts of pyproject.toml hold."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout


def test_the_wheel_is_typed_and_complete(tmp_path):
    """What is installed has every module and the marker that tells type checkers to read it."""
    from hatchling.builders.wheel import WheelBuilder

    wheel = next(iter(WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])))
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "discreet/py.typed" in names
    source = ROOT / "src"
    assert {str(path.relative_to(source)) for path in source.glob("discreet/**/*.py")} <= names


# --- the contract ------------------------------------------------------------------------------------------------


def test_the_contract_on_events_and_guarantees():
    """The lines of the design, as written there."""
    ev = dp.events
    step = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4.0))
    spent = step * 10_000 + ev.Laplace(noise_multiplier=2.0)  # + composes, * repeats, | is parallel
    epsilon = dp.epsilon(spent, delta=1e-5)
    lower, upper = dp.epsilon_bounds(spent, delta=1e-5)
    delta = dp.delta(spent, epsilon=1.0)
    rdp = dp.epsilon(spent, delta=1e-5, accountant="rdp")
    swapped = dp.epsilon(ev.Gaussian(noise_multiplier=1.0), delta=1e-5, adjacency="replace")
    # .epsilon(delta) .delta(eps) .tradeoff(fpr) .advantage() .tpr_at(fpr) .plot()
    g = dp.guarantee(spent)
    sigma = dp.calibrate(
        lambda s: ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=s)) * 10_000, epsilon=1.0, delta=1e-5
    )  # smallest noise that satisfies the target

    assert isinstance(epsilon, float)
    assert 0 < lower <= upper
    assert epsilon == pytest.approx(upper, rel=1e-4)
    assert 0 < delta < 1
    assert rdp >= lower
    assert swapped == pytest.approx(10.0, abs=0.01)
    assert g.epsilon(1e-5) == pytest.approx(epsilon, rel=1e-4)
    assert g.delta(1.0) == pytest.approx(delta, rel=1e-3)
    assert 0 < g.tradeoff(0.05) < 0.95
    assert 0 < g.advantage() < 1
    assert g.tpr_at(0.05) == pytest.approx(1 - g.tradeoff(0.05))
    assert dp.epsilon(step * 10_000, delta=1e-5) < 1.0
    assert sigma == pytest.approx(3.8, abs=0.1)


def test_the_contract_names_the_leaf_that_cannot_be_priced():
    """UnsupportedEvent says which leaf."""
    with pytest.raises(dp.UnsupportedEvent, match="Laplace"):
        dp.epsilon(dp.events.Laplace(noise_multiplier=2.0) * 3, delta=1e-5, accountant="gdp")


# --- three speeds ------------------------------------------------------------------------------------------------


def test_a_slow_test_without_a_small_sibling_is_refused(tmp_path):
    """By a smaller parameter, or by the name of a test of the same file that is not slow; otherwise nothing runs."""
    toy = """
import pytest
@pytest.mark.parametrize("n", [1, pytest.param(9, marks=pytest.mark.slow)])
def test_sizes(n): pass
@pytest.mark.slow(sibling="test_sizes")
def test_named(): pass
"""
    alone = """
@pytest.mark.slow
def test_alone(): pass
@pytest.mark.slow(sibling="test_alone")
def test_misled(): pass
"""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: real sizes\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow", "test_toy.py"]
    for text, code in ((toy, 0), (toy + alone, 4)):
        (tmp_path / "test_toy.py").write_text(text)
        bare = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # what is installed beside takes seconds to load
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=bare)
        assert done.returncode == code, done.stdout + done.stderr
    assert "test_toy.py::test_alone, test_toy.py::test_misled. Give" in done.stderr
