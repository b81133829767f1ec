"""A pytest plugin: the room's tests are collected once, and each change is tried in a fork of that process.

A first fork runs a few cases of every test under coverage, and learns what each costs and which lines it runs. Then,
for each change, a fork gives the changed functions their new code and runs the tests that reach the line (the file's
own and the cheapest first) until one fails: most changes die within a second. All of this is done with the room's
``test_edges_and_constants.py`` first, and with all of its tests for what lives through those.

What is not inside a function (a constant, a default, a decorator) or is compiled by numba is written into the copy
instead, and a fresh process runs the same tests; so is every change of a room whose tests start threads while they are
collected, which no fork has.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.warnings import catch_warnings_for_item
from hypothesis import Phase, settings

WATCHED = 1.0  # seconds for which the cases of one test are watched; those after are taken to run the same lines
CASES = 2  # of each test that are run before the rest of any
TIMES, FLOOR = 8.0, 6.0  # processor seconds a test may take: so many times what it took, and at least so many
JOB = json.loads(Path(os.environ["MUTANTS_JOB"]).read_text()) if "MUTANTS_JOB" in os.environ else {}
UNTRIED = "not tried"
PATIENCE, MEMORY = 1800, 8 << 30  # seconds of a clock for a change that waits for ever, and bytes for one that hoards
LISTED = os.environ.get("MUTANTS_TESTS", "")
SAID = os.dup(1)  # before pytest captures it; a fork has a pipe to its parent instead


def pytest_collection() -> None:
    """A failure is a failure: it need not be shrunk, remembered or different next time."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings.default, phases=phases, database=None, derandomize=True)
    settings.load_profile("mutants")


def pytest_runtestloop(session: pytest.Session) -> bool:
    if LISTED:  # a fresh process: the listed tests, in that order
        if session.testsfailed:  # a module of tests could not be imported: what is left of them says nothing
            _say("the tests cannot be collected")
        _run(session.items, [tuple(pair) for pair in json.loads(Path(LISTED).read_text())])
        return True
    small = [item for item in session.items if item.path.name == "test_edges_and_constants.py"]
    left = _those_that_live(small, JOB["changes"]) if small else JOB["changes"]
    for change in _those_that_live(session.items, left):
        _note(change, "")
    return True


def _those_that_live(items: list[pytest.Item], changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Try the changes by these tests, note which die, and return the others."""
    seen, living, cases = Path(JOB["map"]), [], _cases(items)
    watch = partial(_watch, cases, seen)
    if changes and (failed := watch() if JOB["fresh"] else _forked(lambda: _say(watch()))):
        pytest.exit(f"{failed} fails without any change", returncode=1)
    for change in changes:
        chosen = [pair for pair in _chosen(json.loads(seen.read_text()), change) if pair[0] in cases]
        if by := _try(items, change, chosen):
            _note(change, by)
        else:
            living.append(change)
    return living


def _note(change: dict[str, Any], by: str) -> None:
    with Path(JOB["results"]).open("a") as out:
        out.write(json.dumps({"place": change["place"], "by": by}) + "\n")


def _watch(cases: dict[str, list[pytest.Item]], seen: Path) -> str:
    """Learn what each test costs and which lines it runs, unless that is known already; the first that fails."""
    import coverage

    known = json.loads(seen.read_text()) if seen.exists() else {"seconds": {}, "lines": {}}
    seconds: dict[str, float] = dict(known["seconds"])
    cases = {name: siblings for name, siblings in cases.items() if name not in seconds}
    if not cases:
        return ""
    watched = coverage.Coverage(data_file=None, source=[JOB["source"]], config_file=False)
    watched.start()
    for name, siblings in cases.items():
        watched.switch_context(name)
        all_cases = 0.0
        for item in siblings:
            began = time.process_time()
            if (report := _failure(item)) is not None:
                return f"{item.nodeid} ({report.longreprtext.splitlines()[-1]})"
            took = time.process_time() - began
            all_cases, seconds[name] = all_cases + took, max(seconds.get(name, 0.0), took)
            if all_cases > WATCHED:
                break
    watched.stop()
    data, lines = watched.get_data(), known["lines"]
    for file in data.measured_files():
        of_file = lines.setdefault(str(Path(file).relative_to(Path.cwd())), {})
        for line, names in data.contexts_by_lineno(file).items():
            of_file[str(line)] = sorted({*of_file.get(str(line), ()), *names} - {""})
    seen.write_text(json.dumps({"seconds": seconds, "lines": lines}))
    return ""


def _failure(item: pytest.Item) -> pytest.TestReport | None:
    """Run a test, with the warnings that it allows; what it says if it fails."""
    with catch_warnings_for_item(config=item.config, ihook=item.ihook, when="runtest", item=item):
        reports = runtestprotocol(item, nextitem=None, log=False)
    return next((report for report in reports if report.failed), None)


def _cases(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.split("[")[0]].append(item)
    return cases


def _chosen(known: dict[str, Any], change: dict[str, Any]) -> list[tuple[str, float]]:
    """The tests that run the line, or the lines that use the name it defines, or the file: the file's own first, and
    the cheapest of them."""
    of_file: dict[str, list[str]] = known["lines"].get(change["path"], {})
    names = set(of_file.get(str(change["line"]), ()))
    if not names:  # it runs when the file is imported: a constant, a field, a decorator, a table
        text = Path(change["path"]).read_text().splitlines()
        defined = re.match(r"\s*(\w+)\s*[:=]", change["before"])
        word = re.compile(rf"\b{defined[1]}\b" if defined else "")
        used = {name for line, by in of_file.items() if word.search(text[int(line) - 1]) for name in by}
        small = {name for name in known["seconds"] if "/test_edges_and_constants.py" in name}
        names = small | (used or {name for by in of_file.values() for name in by})
    if change["compiled"] or not names:
        names = set(known["seconds"])
    ordered = sorted(names, key=lambda name: (not _own_test(name, Path(change["path"])), known["seconds"][name]))
    return [(name, known["seconds"][name]) for name in ordered]


def _own_test(name: str, path: Path) -> bool:
    """Whether a test is an example in the file, or stands in a file of tests that is named after it, or after this."""
    file = Path(name.split("::")[0])
    return file == path or file.stem in (f"test_{path.stem}", "test_edges_and_constants")


def _run(items: list[pytest.Item], chosen: list[tuple[str, float]]) -> None:
    """Run the tests until one fails, each within its limit of processor time; a few cases of each first, then all."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process, compiled loops included
    signal.alarm(PATIENCE)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    cases, began = _cases(items), time.process_time()
    turns = [(item, cost) for name, cost in chosen for item in cases[name][:CASES]]
    turns += [(item, cost) for name, cost in chosen for item in cases[name][CASES:]]
    for item, cost in turns:
        if time.process_time() - began > JOB["budget"]:
            break
        signal.setitimer(signal.ITIMER_PROF, max(FLOOR, TIMES * cost))
        if _failure(item) is not None:
            _say(item.nodeid)
    _say("")


def _try(items: list[pytest.Item], change: dict[str, Any], chosen: list[tuple[str, float]]) -> str:
    """The test that notices the change; empty where none does."""
    try:
        codes = _new_codes(change)
    except SyntaxError:
        return "the interpreter"
    if not chosen:
        return ""
    if codes is not None and not change["compiled"] and not JOB["fresh"]:
        by = _forked(lambda: (_swap(codes), _run(items, chosen)))
        if not by.startswith(UNTRIED):
            return by
    return _in_a_fresh_process(change, chosen)


def _in_a_fresh_process(change: dict[str, Any], chosen: list[tuple[str, float]]) -> str:
    target = Path(change["path"])
    listed, original = Path(JOB["map"]).with_suffix(".tests"), target.read_text()  # a file for each room
    listed.write_text(json.dumps(chosen))
    files = sorted({name.split("::")[0] for name, _ in chosen})
    command = [*JOB["command"], *files]
    target.write_text(change["code"])
    try:
        environment = os.environ | {"MUTANTS_TESTS": str(listed)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        target.write_text(original)
    if said := re.search(r"^noticed: (.*)$", done.stdout, re.MULTILINE):
        return said[1]
    return f"ended by signal {-done.returncode}" if done.returncode < 0 else "the tests cannot be collected"


def _say(name: str) -> None:
    """End this process, with the test that noticed (or none) as its last word."""
    os.write(SAID, f"noticed: {name}\n".encode())
    os._exit(0)


def _forked(work: Callable[[], Any]) -> str:
    """What a fork of this process said, or how it ended."""
    global SAID
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.setpgrp()  # a session of its own would lose the priority this one was given
        SAID = writes
        try:
            work()
        except BaseException as error:  # the parent's loop must not go on in the child
            _say(f"{UNTRIED}: {error!r}")
        _say("")
    os.close(writes)
    with os.fdopen(reads) as said:
        words = said.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)}"
    return words.removeprefix("noticed: ").strip()


def _codes(code: CodeType) -> list[CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *(each for one in inner for each in _codes(one))]


def _new_codes(change: dict[str, Any]) -> dict[tuple[str, int], CodeType] | None:
    """The new code of each function, by name and line; None where something outside of functions changed."""
    file = str(Path(change["path"]).resolve())
    old, new = (_codes(compile(text, file, "exec")) for text in (Path(change["path"]).read_text(), change["code"]))
    if len(old) != len(new):
        return None
    different = [a for a, b in zip(old, new, strict=True) if _own(a) != _own(b)]
    if not all(code.co_flags & 0x1 for code in different):  # CO_OPTIMIZED: a function's, not a module's or a class's
        return None
    return {(a.co_qualname, a.co_firstlineno): b for a, b in zip(old, new, strict=True) if a != b and a.co_flags & 0x1}


def _own(code: CodeType) -> CodeType:
    """Without what is defined inside, and without columns: a class is told where the last line of a method ends."""
    inner = tuple(constant for constant in code.co_consts if not isinstance(constant, CodeType))
    return code.replace(co_consts=inner, co_linetable=b"")


def _swap(codes: dict[tuple[str, int], CodeType]) -> None:
    """Give every function that exists its new code."""
    changed = 0
    file = next(iter(codes.values())).co_filename
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename == file:  # a dead proxy has no instance check
            new = codes.get((thing.__code__.co_qualname, thing.__code__.co_firstlineno))
            if new is not None:
                thing.__code__ = new
                changed += 1
    if not changed:
        raise LookupError("no function has this code")
