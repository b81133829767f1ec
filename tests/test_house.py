"""The house is as its documents say: papers' ideas are found by their terms, and the map names what is there."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import discreet

ROOT = Path(__file__).parent.parent
PACKAGE = Path(discreet.__file__).parent

IDEAS = {
    "analytic Gaussian": "accounting/gaussian.py",
    "KOV": "accounting/optimal_kov.py",
    "privacy loss distribution": "accounting/pld/composition.py",
    "sampled Gaussian": "accounting/sampled_gaussian_rdp.py",
    "trade-off function": "accounting/tradeoff.py",
    "propose-test-release": "mechanisms/propose_test_release.py",
    "optimal clipping threshold": "statistics/optimal_clipping_threshold.py",
    "constrained inference": "workloads/constrained_inference.py",
    "HDMM": "workloads/selection.py",
    "DP-CD": "linear/solvers/dp_cd.py",
    "objective perturbation": "linear/solvers/objective.py",
    "ghost clipping": "training/gradients/rules/convolution.py",
    "Poisson sampling": "training/sampling/poisson.py",
    "BLT": "mechanisms/factorization/blt.py",
    "GNMax": "pate/gnmax_cost.py",
    "LiRA": "auditing/membership_lira.py",
}
"""A paper's term, and the file in which whoever looks for it should arrive."""


@pytest.mark.parametrize("term", IDEAS)
def test_an_idea_is_found_by_the_name_its_paper_gave_it(term: str) -> None:
    """The file's own description says it. Files that moved are found by their name below the same room."""
    home = Path(IDEAS[term])
    files = [*(PACKAGE / home.parts[0]).rglob(home.name)]
    assert any(term.casefold() in " ".join(file.read_text("utf-8")[:4000].casefold().split()) for file in files)


FILE_NAMES = {
    "analytic Gaussian": ("accounting/gaussian.py", "gaussian_delta"),
    "KOV": ("accounting/optimal_kov.py", "Optimal"),
    "PLD composition": ("accounting/pld/composition.py", "PLD"),
    "Rényi of the sampled Gaussian": ("accounting/sampled_gaussian_rdp.py", "sampled_gaussian_curve"),
    "propose-test-release": ("mechanisms/propose_test_release.py", "ProposeTestRelease"),
    "optimal clipping threshold": ("statistics/optimal_clipping_threshold.py", "BoundedVarianceMean"),
    "constrained inference": ("workloads/constrained_inference.py", "constrained_inference"),
    "DP-CD": ("linear/solvers/dp_cd.py", "CoordinateDescent"),
    "objective perturbation": ("linear/solvers/objective.py", "ObjectivePerturbation"),
    "ghost clipping of a convolution": ("training/gradients/rules/convolution.py", "ConvolutionWeight"),
    "Poisson sampler": ("training/sampling/poisson.py", "Poisson"),
    "BLT": ("mechanisms/factorization/blt.py", "BLT"),
    "GNMax's cost": ("pate/gnmax_cost.py", "data_dependent_cost"),
    "LiRA": ("auditing/membership_lira.py", "_lira"),
}
"""An idea, the file that a reader of the tree alone opens for it (words of the idea are in its path), and the class or
function in it that is the idea."""


@pytest.mark.parametrize("idea", FILE_NAMES)
def test_an_idea_is_found_from_the_tree_in_one_hop(idea: str) -> None:
    path, name = FILE_NAMES[idea]
    assert re.search(rf"^(class|def) {name}\b", (PACKAGE / path).read_text("utf-8"), re.MULTILINE)
    words = set(re.findall(r"[a-z]{2,}", idea.casefold())) - {"of", "the"}
    named = words & set(re.findall(r"[a-z]+", path))
    assert named
    if len(named) < len(words):  # the rest is in the file's own description
        text = (PACKAGE / path).read_text("utf-8")[:4000].casefold()
        assert all(word in text for word in words - named - {"sampler", "nyi"})


# --- where do I put… -------------------------------------------------------------------------------------------------


def rows() -> dict[str, tuple[str, str]]:
    """What each row of the map says: where a new thing goes, and what it is known by."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("## Where do I put")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if "|" in line]
    return {kind.strip("| "): (home, known.strip("| ")) for kind, home, known in cells[2:]}


def paths(text: str) -> list[str]:
    """What stands between backticks and is a path."""
    return [each for each in re.findall(r"`([^`(]+)`", text) if "/" in each and " " not in each]


def homes(path: str) -> list[Path]:
    """The files or folders that a path means, from the package or from the top; ``<name>`` stands for any."""
    pattern = re.sub(r"<\w+>|NNNN-title", "*", path).rstrip("/")
    return [*PACKAGE.glob(pattern), *ROOT.glob(pattern), *ROOT.glob(f"src/discreet/training/{pattern}")]


def public_classes(room: str, base: type) -> set[str]:
    """The classes of a room's own files that are made of ``base``, and that people make."""
    package = importlib.import_module(f"discreet.{room}")
    modules = [
        importlib.import_module(each.name) for each in pkgutil.iter_modules(package.__path__, f"discreet.{room}.")
    ]
    return {
        name
        for module in modules
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, base) and kind.__module__ == module.__name__
        if not name.startswith("_") and not inspect.isabstract(kind)
    }


def modules(folder: Path) -> list[Path]:
    """The files of a folder that are no helpers."""
    return [file for file in sorted(folder.glob("*.py")) if not file.name.startswith("_")]


def calls(folder: str, name: str) -> int:
    return sum(
        ast.unparse(node.func) == name
        for file in (PACKAGE / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )


def mechanisms_are_named() -> bool:
    from discreet import mechanisms
    from discreet.mechanisms.mechanism import Mechanism

    return public_classes("mechanisms", Mechanism) <= set(mechanisms.__all__)


def statistics_are_named() -> bool:
    from discreet import statistics
    from discreet.statistics.statistic import Statistic

    return public_classes("statistics", Statistic) <= set(statistics.__all__)


def hypothesis_tests_are_named() -> bool:
    from discreet import inference
    from discreet.inference.hypothesis import NoisyTest

    shared = {"ChiSquared", "GroupMeans", "MeanTest", "TwoSamples"}
    return public_classes("inference", NoisyTest) - shared <= set(inference.__all__)


def leaves_are_registered() -> bool:
    return calls("accounting/leaves", "register") > 10


def estimators_are_named() -> bool:
    from discreet.fitting import PrivateEstimator

    rooms: list[Any] = [importlib.import_module(f"discreet.{room}") for room in ("linear", "estimators")]
    shown = {name for room in rooms for name in room.__all__}
    made = {name for room in ("linear", "estimators") for name in public_classes(room, PrivateEstimator)}
    return {name for name in made if not name.startswith("Private")} <= shown


def solvers_are_listed() -> bool:
    from discreet.linear.solvers import _HOMES

    return {file for file, _ in _HOMES.values()} == {file.stem for file in modules(PACKAGE / "linear" / "solvers")}


def has(folder: str, text: str, least: int = 1) -> Callable[[], bool]:
    """Whether so many files below a folder hold a text."""
    return lambda: sum(text in file.read_text("utf-8") for file in (PACKAGE / folder).rglob("*.py")) >= least


def rooms_have_floors_and_pages() -> bool:
    floors = (ROOT / "pyproject.toml").read_text("utf-8").split("layers = [")[1].split("]")[0]
    rooms = [folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file()]
    pages = {page.stem for page in (ROOT / "docs" / "reference").glob("*.md")}
    return all(re.search(rf"\b{room}\b", floors) for room in rooms) and set(rooms) - {"cli"} <= pages


def have_main(*folders: str) -> Callable[[], bool]:
    return lambda: all("def main(" in file.read_text("utf-8") for folder in folders for file in modules(ROOT / folder))


KNOWN_BY: dict[str, Callable[[], bool]] = {
    "mechanism": mechanisms_are_named,
    "kind of event (a leaf)": leaves_are_registered,
    "statistic": statistics_are_named,
    "test with a p-value": hypothesis_tests_are_named,
    "operation": lambda: len(modules(ROOT / "tests" / "operations")) >= 8,
    "estimator": estimators_are_named,
    "solver": solvers_are_listed,
    "law of sampling": lambda: "__all__" in (PACKAGE / "training" / "sampling" / "__init__.py").read_text("utf-8"),
    "layer rule": has("training/gradients/rules", "@register("),
    "noise": has("training", "noise: "),
    "matrix for correlated noise": has("training/noise", "mechanisms.factorization"),
    "engine or source of rows": has("encoding", "(Engine):", 2),
    "command": has("cli", "def register(app", 5),
    "room": rooms_have_floors_and_pages,
    "guide page": lambda: (ROOT / "docs" / "hooks" / "nav.py").is_file(),
    "decision": lambda: (ROOT / "docs" / "decisions" / "index.md").is_file(),
    "benchmark, experiment": have_main("experiments"),
    "figure about the code itself": have_main("checks"),
    "search": have_main("searches"),
}
"""What holds of a row's last column."""


def test_every_row_of_the_map_is_checked() -> None:
    assert rows().keys() == KNOWN_BY.keys()


def test_a_path_that_is_not_there_is_found_out() -> None:
    assert homes("mechanisms/<name>.py")
    assert not homes("mechanisms/<name>.txt")
    assert paths("`linear/base.py`, if `FitPlan` or `release(data, rng)`") == ["linear/base.py"]


@pytest.mark.parametrize("kind", KNOWN_BY)
def test_a_new_thing_goes_where_the_map_says_and_is_known_by_it(kind: str) -> None:
    home, known = rows()[kind]
    for path in paths(home) + paths(known):
        assert homes(path), f"{kind}: there is no {path}"
    assert KNOWN_BY[kind](), f"{kind}: not known by {known}"


# --- decisions -------------------------------------------------------------------------------------------------------

UNCITED = 5
"""Pages in force that no line of the package cites: a page is cited from what it justifies."""


def test_decisions_have_rooms_titles_and_lines_that_they_justify() -> None:
    from checks.decisions import load_index

    hook = load_index()
    pages = hook.decisions()
    numbers = [each.number for each in pages]
    assert len(set(numbers)) == len(numbers) > 140
    assert all(int(each.page[:4]) == each.number for each in pages)
    assert {each.replaced_by for each in pages} - {None} <= set(numbers)
    assert {each.number for each in pages if each.replaced_by} >= {74, 75, 106, 401, 422, 555}
    assert hook.citations().keys() <= set(numbers), "a decision that is not there is cited"
    assert sum(not each.cited for each in pages if each.replaced_by is None) <= UNCITED
    shown = hook.index(pages)
    assert shown.count("](0") == len(pages)
    assert "[422." in shown
    with pytest.raises(ValueError, match="in no room's range"):
        hook.room_of(9999, [(200, 219, "the house")])


def test_the_tests_of_a_module_are_found_by_its_name_by_what_it_defines_or_by_its_folder():
    from checks.tests import PACKAGE, modules, tests_of

    def first(module):
        return tests_of(PACKAGE / module)[0].name

    assert first("training/verification/numbers.py") == "test_numbers.py"
    assert first("mechanisms/factorization/blt.py") == "test_correlated.py"
    assert first("training/verification/tape.py") == "test_verification.py"
    assert sum(not tests_of(module) for module in modules()) <= 45


# --- journeys --------------------------------------------------------------------------------------------------------


def test_a_reader_of_a_charge_opens_a_dozen_files() -> None:
    from checks.journeys import JOURNEYS, walk

    prepare = JOURNEYS["ledger charge"]
    prepare()()  # loads what it needs
    assert 5 < len(walk(prepare()).files) <= 12


def test_a_step_of_training_passes_the_files_that_the_page_names() -> None:
    pytest.importorskip("torch")
    from checks.journeys import JOURNEYS, walk

    text = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("## A step of training")[1].split("\n## ")[0]
    named = {PACKAGE / "training" / file for file in re.findall(r"`([a-z_/]+\.py)`", text.split("A verified step")[0])}
    assert all(file.is_file() for file in named)
    step = JOURNEYS["steady private step"]()
    seen = min((walk(step) for _ in range(3)), key=lambda each: each.functions)  # now and then a step is verified
    assert {Path(file) for file in seen.files if (PACKAGE / "training") in Path(file).parents} <= named
