"""The commands say what the library says, to people and to programs; bad input is one sentence and exit code 2."""

from __future__ import annotations

import io
import json
import re

import pytest
import typer

import discreet as dp
from discreet import cli

EVENT = "poisson(0.01, gaussian(4)) * 10000"
FLAGS = ("--noise-multiplier", "4", "--rate", "0.01", "--steps", "10000")
STEP = dp.events.PoissonSampled(rate=0.01, event=dp.events.Gaussian(noise_multiplier=4.0))
SPENT = STEP * 10_000


@pytest.fixture
def discreet(capsys, monkeypatch):
    """Run a command line; gives the exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as stopped:
            cli.main(list(arguments))
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return run


def answer(result: tuple[int, str, str]) -> dict:
    code, out, err = result
    assert (code, err) == (0, "")
    return json.loads(out)


# --- epsilon and delta -------------------------------------------------------------------------------------------


def test_epsilon_is_the_same_however_the_event_is_given(discreet, tmp_path):
    """Flags, text, a file and standard input describe one event and give the library's answer."""
    file = tmp_path / "event.json"
    file.write_text(SPENT.to_json())
    ways = [
        discreet("epsilon", EVENT, "--delta", "1e-5", "--json"),
        discreet("epsilon", *FLAGS, "--delta", "1e-5", "--json"),
        discreet("epsilon", "--event", str(file), "--delta", "1e-5", "--json"),
        discreet("epsilon", "--event", "-", "--delta", "1e-5", "--json", stdin=SPENT.to_json()),
    ]
    answers = [answer(way) for way in ways]
    assert all(found == answers[0] for found in answers)
    assert answers[0]["epsilon"] == dp.epsilon(SPENT, delta=1e-5)
    assert answers[0]["lower"] == dp.epsilon_bounds(SPENT, delta=1e-5)[0]
    assert dp.Event.from_dict(answers[0]["event"]) == SPENT


def test_epsilon_tells_a_person_the_bound_and_its_certificate(discreet):
    """The number, its delta, its adjacency; and how little it could be lowered."""
    code, out, err = discreet("epsilon", EVENT, "--delta", "1e-5")
    assert (code, err) == (0, "")
    assert out.startswith("epsilon = 0.946")
    assert "delta = 1e-05 (add-remove)" in out
    assert "no smaller epsilon than 0.946" in out


def test_epsilon_takes_an_accountant_and_an_adjacency(discreet):
    """Both reach the library and both are said next to the number."""
    rdp = answer(discreet("epsilon", EVENT, "--delta", "1e-5", "--accountant", "rdp", "--json"))
    assert rdp["epsilon"] == dp.epsilon(SPENT, delta=1e-5, accountant="rdp")
    assert (rdp["accountant"], rdp["lower"]) == ("rdp", None)
    code, out, _ = discreet("epsilon", "gaussian(1)", "--delta", "1e-5", "--adjacency", "replace")
    assert code == 0
    assert "epsilon = 9.99" in out
    assert "(replace)" in out


def test_an_infinite_epsilon_is_said_and_is_valid_json(discreet):
    """What was published without protection has no finite guarantee."""
    assert answer(discreet("epsilon", "nonprivate()", "--delta", "1e-5", "--json"))["epsilon"] == "inf"
    code, out, _ = discreet("epsilon", "nonprivate()", "--delta", "1e-5")
    assert (code, out.splitlines()[0]) == (0, "epsilon = inf at delta = 1e-05 (add-remove)")


def test_epsilon_of_what_only_a_curve_can_price_has_no_certificate(discreet):
    code, out, err = discreet("epsilon", "zcdp(0.1)", "--delta", "1e-5")
    assert (code, err) == (0, "")
    assert "epsilon = " in out
    assert "certified" not in out


def test_delta_is_the_librarys(discreet):
    """At one epsilon, in both forms."""
    found = answer(discreet("delta", EVENT, "--epsilon", "1", "--json"))
    assert found["delta"] == dp.delta(SPENT, epsilon=1.0)
    code, out, _ = discreet("delta", *FLAGS, "--epsilon", "1", "--accountant", "rdp")
    assert code == 0
    assert "at epsilon = 1 (add-remove, rdp)" in out


# --- calibrate, compare, tradeoff --------------------------------------------------------------------------------


def test_calibrate_finds_noise_that_meets_the_target(discreet):
    """By flags and by an x in the text; the epsilon reached is at most the one asked for."""
    flags = answer(
        discreet("calibrate", "--rate", "0.01", "--steps", "100", "--epsilon", "1", "--delta", "1e-5", "--json")
    )
    text = answer(
        discreet("calibrate", "poisson(0.01, gaussian(x)) * 100", "--epsilon", "1", "--delta", "1e-5", "--json")
    )
    assert flags["noise_multiplier"] == text["x"]
    assert 0.999 < flags["epsilon"] <= 1
    code, out, _ = discreet("calibrate", "laplace(x)", "--epsilon", "0.5", "--delta", "0")
    assert code == 0
    assert out.startswith("x = 2")


def test_compare_has_a_row_for_every_accountant(discreet):
    """A number or a reason, in the table and in JSON; the tightest is no looser than any."""
    found = answer(discreet("compare", "laplace(10) * 100", "--delta", "1e-6", "--json"))["accountants"]
    assert list(found) == list(dp.accounting.ACCOUNTANTS)
    assert found["pld"]["epsilon"] == pytest.approx(4.69, abs=0.01)
    assert "Laplace" in found["gdp"]["reason"]
    code, out, _ = discreet("compare", "laplace(10) * 100", "--delta", "1e-6")
    assert code == 0
    assert all(name in out for name in found)


def test_tradeoff_draws_in_the_terminal(discreet):
    """A plot of characters with its axes, and the two numbers an attacker cares about."""
    code, out, _ = discreet("tradeoff", "gaussian(1)", "--fpr", "0.05")
    assert code == 0
    assert "false-positive rate" in out
    assert "⠀" in out
    assert "0.05" in out


def test_tradeoff_writes_a_picture(discreet, tmp_path):
    """A PNG where --out says."""
    file = tmp_path / "curve.png"
    code, out, _ = discreet("tradeoff", "gaussian(1)", "--out", str(file))
    assert code == 0
    assert f"wrote {file}" in out
    assert file.read_bytes().startswith(b"\x89PNG")


def test_tradeoff_as_json_is_a_decreasing_curve(discreet):
    """From no false positives to no false negatives, never above the diagonal of a blind guess."""
    found = answer(discreet("tradeoff", "gaussian(1)", "--json"))
    assert found["fnr"] == sorted(found["fnr"], reverse=True)
    assert all(fnr <= 1 - fpr + 1e-12 for fpr, fnr in zip(found["fpr"], found["fnr"], strict=True))
    assert found["advantage"] == pytest.approx(0.3829, abs=1e-3)


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("epsilon", "gaussian(4)"), "--delta"),
        (("epsilon", "--delta", "1e-5"), "exactly one way"),
        (("epsilon", "gaussian(4)", *FLAGS, "--delta", "1e-5"), "exactly one way"),
        (("epsilon", "--rate", "0.1", "--delta", "1e-5"), "--noise-multiplier"),
        (("epsilon", "gaussian(4)", "--delta", "two"), "--delta is 'two', but must be a number"),
        (("epsilon", "gaussian(4)", "--delta", "0,5"), "--delta is '0,5', but must be a number, with a point"),
        (("epsilon", "--noise-multiplier=1,1", "--delta", "1e-5"), "--noise-multiplier is '1,1', but must be a number"),
        (("epsilon", "--steps", "1,000", "--delta", "1e-5"), "--steps is '1,000', but must be a whole number"),
        (("epsilon", "gaussian(4)", "--delta", "2"), "delta is 2"),
        (("epsilon", "gaussian(4)", "--delta", "nan"), "delta is nan"),
        (("epsilon", "gaussian(-4)", "--delta", "1e-5"), "noise_multiplier is -4"),
        (("epsilon", "gaussian(4)", "--delta", "1e-5", "--adjacency", "swap"), "swap"),
        (("epsilon", "gaussian(4)", "--delta", "1e-5", "--accountant", "best"), "accountant"),
        (("epsilon", "gaussian(4)", "--delta", "1e-5", "--colour", "red"), "--colour"),
        (("epsilon", "laplace(4)", "--delta", "1e-5", "--accountant", "gdp"), "Laplace"),
        (("epsilon", "--noise-multiplier", "4", "--steps", "-3", "--delta", "1e-5"), "count is -3"),
        (("epsilon", "--event", "no such file", "--delta", "1e-5"), "cannot be read"),
        (("epsilon", "--event", "-", "--delta", "1e-5"), "not JSON"),
        (("delta", "gaussian(4)", "--epsilon", "nan"), "epsilon is nan"),
        (("calibrate", "gaussian(4)", "--epsilon", "1", "--delta", "1e-5"), "has no x"),
        (("calibrate", "gausian(x)", "--epsilon", "1", "--delta", "1e-5"), "gausian"),
        (("calibrate", "gaussian(x)", "--epsilon", "-1", "--delta", "1e-5"), "epsilon is -1"),
        (("tradeoff", "gaussian(1)", "--fpr", "2"), "fpr is 2"),
        (("tradeoff", "gaussian(1)", "--out", "no/such/place/curve.png"), "no/such/place"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(discreet, arguments, reason):
    """On standard error, with nothing on standard output and no traceback."""
    code, out, err = discreet(*arguments)
    assert (code, out) == (2, "")
    assert reason in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err


def test_without_a_command_the_help_is_shown(discreet):
    """It lists every command once, under headings, each with its sentence in full."""
    code, out, _ = discreet()
    assert code == 0
    assert "..." not in out.replace("[ARGS]...", "")
    assert "More:" not in out
    names = typer.main.get_command(cli.app()).commands
    assert {"query", "fit", "predict", "train", "ledger", "report", "epsilon", "delta", "compare"} <= set(names)
    for name in names:
        assert len(re.findall(rf"^  {name} ", out, re.MULTILINE)) == 1


def test_a_missing_extra_is_one_sentence(discreet, monkeypatch):
    """Without typer, the answer is the line that installs it."""
    monkeypatch.setitem(__import__("sys").modules, "typer", None)
    code, _, err = discreet("epsilon", "gaussian(4)", "--delta", "1e-5")
    assert code == 2
    assert 'pip install "discreet[cli]"' in err
    assert len(err.strip().splitlines()) == 1
