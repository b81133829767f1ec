"""The report says what the book proves, whole and safe to open."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet import events
from discreet.adjacency import Adjacency
from discreet.inference import adjust, kaplan_meier, welch
from discreet.ledger import Book, Ledger, pricing, tree
from discreet.ledger.amounts import exact
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode
from discreet.reporting import Finding, attacker, figures, pdf, report
from tests.reporting.browser import Browser


class Clock:
    """Five hours and a bit between entries."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 4, 8, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(hours=5, minutes=17)
        return self.now


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger("sqlite://", who="m.curie", clock=Clock()) as made:
        yield made


@pytest.fixture
def book(ledger: Ledger) -> Book:
    """A survey: counts, means, a model, and a team with a book of its own."""
    book = ledger.open("household survey 2026", epsilon=3.0, delta=1e-6, unit="one household", rows_per_unit=1)
    team = book.sub("health team", epsilon=1.5, delta=5e-7)
    book.charge(events.Laplace(noise_multiplier=5.0), label="number of households by region")
    for wave in range(6):
        book.charge(events.Gaussian(noise_multiplier=14.0) * 2, label=f"mean income, wave {wave + 1}")
    team.charge(events.PureDP(epsilon=0.15), label="median age of <script>alert('adults')</script>")
    team.charge(events.Gaussian(noise_multiplier=9.0) * 3, label="body-mass index by age group")
    step = events.PoissonSampled(rate=0.01, event=events.Gaussian(noise_multiplier=4.0))
    book.charge(step * 300, label="income model, 300 steps")
    return book


def test_the_json_report_carries_what_the_filter_proves(book: Book) -> None:
    facts = json.loads(dp.report(book).json())
    assert facts["spent"]["epsilon"] == book.spent().epsilon
    assert facts["ledger"]["head"] == book.ledger.head()
    assert facts["limit"] == {"epsilon": 3.0, "delta": 1e-6, "filter": "asked"}
    assert facts["adjacency"] == "add-remove"
    assert len(facts["entries"]) == 12
    at_delta = next(point["epsilon"] for point in facts["curve"] if point["delta"] == 1e-6)
    assert at_delta == book.spent().epsilon
    assert facts["trail"][-1]["epsilon"] == book.spent().epsilon
    for row in facts["attacker"]:
        assert row["false_positive_rate"] < row["now"] < row["at_limit"] < 1
    assert sum(theorem["delta"] for theorem in facts["theorems"]) == pytest.approx(1e-6)


def test_curves_are_monotone_and_between_perfect_and_no_privacy(book: Book) -> None:
    facts = report(book).facts
    curve = [point["epsilon"] for point in facts["curve"] if point["epsilon"] is not None]
    assert curve == sorted(curve, reverse=True)
    rates, misses = facts["trade_off"]["false_positive_rate"], facts["trade_off"]["false_negative_rate_now"]
    assert misses == sorted(misses, reverse=True)
    assert all(0 <= miss <= 1 - rate + 1e-12 for rate, miss in zip(rates, misses, strict=True))
    limit = facts["trade_off"]["false_negative_rate_at_limit"]
    assert all(miss >= floor for miss, floor in zip(misses, limit, strict=True))


def test_the_attacker_of_a_gaussian_is_bounded_from_above() -> None:
    """The bound from (delta, epsilon) pairs never falls below the exact power of the best test."""
    from scipy.stats import norm

    event = events.Gaussian(noise_multiplier=1.0)
    pairs = [(delta, dp.epsilon(event, delta=delta)) for delta in (1e-6, 1e-4, 1e-2, 0.1, 0.3)]
    for rate in (0.001, 0.01, 0.1, 0.5, 0.9):
        exact = norm.sf(norm.isf(rate) - 1)
        assert attacker.true_positive_rate(rate, pairs) >= exact
    assert attacker.true_positive_rate(0.1, pairs) <= 1.25 * norm.sf(norm.isf(0.1) - 1)
    assert attacker.true_positive_rate(0.2, [(0.0, float("inf"))]) == 1.0


def test_a_book_with_one_plan_shows_the_tight_curve(ledger: Ledger) -> None:
    book = ledger.open("training", epsilon=1.0, delta=1e-5)
    event = events.PoissonSampled(rate=0.01, event=events.Gaussian(noise_multiplier=4.0)) * 5_000
    book.plan(event, label="model")
    facts = report(book).facts
    assert facts["curve_source"] == "the tight account of the plan"
    shown = next(point["epsilon"] for point in facts["curve"] if point["delta"] == 1e-5)
    assert shown == pytest.approx(dp.epsilon(event, delta=1e-5))
    assert "plan" in report(book).html()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_empty_book_and_a_full_one_have_reports(ledger: Ledger, delta: float) -> None:
    book = ledger.open("small", epsilon=1.0, delta=delta)
    assert report(book).facts["attacker"][0]["now"] == pytest.approx(0.01, abs=1e-9)
    report(book).html()
    book.charge(events.PureDP(epsilon=1.0))
    facts = report(book).facts
    assert facts["attacker"][0]["now"] == pytest.approx(0.0271828, abs=1e-6)
    report(book).html()


def test_the_trail_of_a_book_above_counts_what_is_charged_below(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    parts = book.split("region", ["north", "south"])
    for part in parts.values():
        for _ in range(3):
            part.charge(events.PureDP(epsilon=0.1))
    assert [reading.epsilon for _, reading in book.snapshot().readings] == pytest.approx([0.1, 0.2, 0.3, 0.3, 0.3, 0.3])
    assert len(book.snapshot(points=2).readings) == 2
    assert book.snapshot(points=4).readings[-1][1].epsilon == book.spent().epsilon


def test_the_page_is_self_contained_and_text_is_escaped(book: Book) -> None:
    html = report(book).html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "http://" not in html.replace("http://www.w3.org/", "")
    assert "https://" not in html
    assert book.ledger.head() in html
    identifiers = [part.split('"')[0] for part in html.split(' id="')[1:]]
    assert len(identifiers) == len(set(identifiers))


def test_figures_are_well_formed_and_the_same_each_time(book: Book) -> None:
    facts = report(book).facts
    for draw in (figures.burn_down, figures.epsilon_of_delta, figures.trade_off):
        root = ET.fromstring(draw(facts))
        assert root.get("viewBox")
        assert root.get("width") is None
        assert draw(facts) == draw(facts)


def hours(**changes: object) -> Finding:
    facts: dict[str, object] = {
        "title": "Hours <b>a week</b>",
        "labels": ["Masters", "$x_1$ & co " * 20, "plain"],
        "values": [43.9, 46.6, 47.0],
        "errors": [0.4, 1.4, 0.2],
        "axis": "hours",
        "caption": "Private means.",
        "not_private": ["plain"],
    }
    return Finding(**(facts | changes))  # type: ignore[arg-type]


def test_findings_stand_beside_what_they_cost(book: Book) -> None:
    made = report(book, findings=[hours(), hours(errors=(), not_private=())])
    assert json.loads(made.json())["findings"][0]["values"] == [43.9, 46.6, 47.0]
    html = made.html()
    assert html.count("<svg") == 5
    assert html.count("Hollow: not private") == 1
    assert "Hours &lt;b&gt;a week" in html
    assert "Masters 43.90" in html  # in words, for those who cannot see the picture
    identifiers = [part.split('"')[0] for part in html.split(' id="')[1:]]
    assert len(identifiers) == len(set(identifiers))
    assert "What was learnt" not in report(book).html()


def test_released_tests_stand_in_the_report_as_a_forest_plot(book: Book) -> None:
    seen = welch([9.0, 8.0] * 300, [7.0, 6.0] * 300, bounds=(0, 30), epsilon=1.0, rng=1)
    hidden = welch([9.0], [7.0], bounds=(0, 30), epsilon=1.0, rng=1)
    found = Finding.of_tests("Stay", {"new ward": seen, "tiny": hidden}, caption="Days in hospital.")
    assert found.labels == ("new ward",)
    assert found.values[0] - found.errors[0] <= seen.interval[0] < seen.interval[1] <= found.values[0] + found.errors[0]
    assert found.axis == "difference of means, first less second"
    assert "95 % intervals" in found.caption
    assert "tiny: no interval, p = 1" in found.caption
    assert "new ward: p ≤ 0.0001" in report(book, findings=[found]).html()
    both = {"new ward": seen, "tiny": hidden}
    corrected = Finding.of_tests("Stay", both, adjusted=adjust(both))
    assert "new ward: p ≤ 0.0001, adjusted 0.0002; tiny: no interval, p = 1, adjusted 1." in corrected.caption
    with pytest.raises(ValueError, match="different names"):
        Finding.of_tests("Stay", both, adjusted={"new ward": 0.1})
    with pytest.raises(ValueError, match="nothing to draw"):
        Finding.of_tests("Stay", {"tiny": hidden})


def test_a_survival_curve_stands_in_the_report_with_its_band(book: Book) -> None:
    curve = kaplan_meier([3, 5, 9, 10] * 200, [1, 1, 0, 1] * 200, horizon=10, periods=5, epsilon=1.0, rng=1).value
    found = Finding.of_survival("Lives", curve)
    assert found.labels == ("2", "4", "6", "8", "10")
    values, errors = np.array(found.values), np.array(found.errors)
    assert (values - errors <= curve.lower).all()
    assert (values + errors >= curve.upper).all()
    assert "95 % band" in report(book, findings=[found]).html()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": [1.0]}, "same number"),
        ({"labels": [], "values": [], "errors": []}, "at least one"),
        ({"errors": [-1.0, 0.0, 0.0]}, "errors"),
        ({"values": [float("nan"), 1.0, 2.0]}, "values"),
        ({"not_private": ["other"]}, "not_private"),
    ],
)
def test_a_finding_that_cannot_be_drawn_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hours(**changes)


def test_save_chooses_by_the_name(book: Book, tmp_path: Path) -> None:
    made = report(book, entries=1)
    assert made.save(tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert json.loads(made.save(tmp_path / "a.json").read_text(encoding="utf-8"))["book"] == book.name


LOOK = """(() => {
  const figures = [...document.querySelectorAll('figure svg')].map(svg => {
    const box = svg.getBoundingClientRect();
    const lines = [...svg.querySelectorAll('path')].filter(p => p.getTotalLength() > 20).length;
    return {width: box.width, height: box.height, lines, texts: svg.querySelectorAll('text').length};
  });
  const edge = document.documentElement.clientWidth + 0.5;
  const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('svg') &&
    e.getBoundingClientRect().right > edge).map(e => e.tagName + '.' + e.className);
  return {scroll: document.documentElement.scrollWidth, inner: window.innerWidth, figures, wide,
          title: document.title};
})()"""


@pytest.mark.parametrize("kind", ["full", "empty", "planned", "findings"])
def test_the_page_in_a_real_browser(browser: Browser, ledger: Ledger, book: Book, kind: str, tmp_path: Path) -> None:
    """No console error, nothing fetched, no horizontal overflow, no empty figure, at desktop and phone width."""
    if kind == "empty":
        book = ledger.open("nothing yet " + "x" * 150, epsilon=1.0)
    elif kind == "planned":
        book = ledger.open("plan", epsilon=1.0, delta=1e-5)
        book.plan(events.Gaussian(noise_multiplier=6.0), label="model " + "y" * 300)
    findings = [hours()] if kind == "findings" else []
    page = report(book, findings=findings).save(tmp_path / "report.html")
    for width, height in ((1280, 900), (390, 844), (320, 640)):
        browser.show(page, width, height)
        seen = browser.evaluate(LOOK)
        assert seen["title"] == f"Privacy report: {book.name}"
        assert seen["inner"] == width
        assert seen["scroll"] <= width
        assert seen["wide"] == []
        assert len(seen["figures"]) == 3 + len(findings)
        for figure in seen["figures"]:
            assert figure["width"] > 200
            assert figure["height"] > 130
            assert figure["lines"] >= 3
            assert figure["texts"] >= 5
    assert browser.problems == []
    assert set(browser.requests) == {page.as_uri()}


def test_templates_and_migrations_ship_in_the_wheel(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(__file__).resolve().parents[2]
    wheel = next(iter(WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])))
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "discreet/reporting/templates/report.html.j2" in names
    assert {"discreet/ledger/migrations/env.py", "discreet/ledger/migrations/versions/0001_first.py"} <= names


# --- the trade-off curve: all readings at once
# ------------------------------------------------------------------------------

DELTAS = (1e-3, 1e-2, 0.05, 0.2)
TERMS = Terms(epsilon=3.0, delta=0.05)
COIN = 0.15  # the epsilon of the small coin; the large one has twice that


@cache
def readings(small: int, large: int) -> list[float]:
    """What a book proves at each delta after so many coins of randomised response."""
    event = events.PureDP(epsilon=COIN) * small + events.PureDP(epsilon=2 * COIN) * large
    node = tree.advance([BookNode("census", TERMS)], pricing.price(event, Adjacency.ADD_REMOVE))[0]
    return [node.stage.read(exact(delta)).epsilon for delta in DELTAS]


def closed_book(shown: list[float]) -> list[tuple[float, float]]:
    """Probabilities and log-ratios of all ends of a book that is closed before a reading exceeds the one shown.

    The next coin is chosen by the answers so far, as an adversary would: the large one while the record looks present.
    """
    ends: list[tuple[float, float]] = []
    states = {(0, 0, 0): 1.0}  # small coins, large coins, log-ratio in small coins
    while states:
        after: Counter[tuple[int, int, int]] = Counter()
        for (small, large, loss), p in states.items():
            step = 2 if loss > 0 else 1
            coins = (small, large + 1) if step == 2 else (small + 1, large)
            if any(now > most for now, most in zip(readings(*coins), shown, strict=True)):
                ends.append((p, COIN * loss))
                continue
            heads = 1 / (1 + math.exp(-COIN * step))
            after[(*coins, loss + step)] += p * heads  # type: ignore[assignment]
            after[(*coins, loss - step)] += p * (1 - heads)  # type: ignore[assignment]
        states = dict(after)
    return ends


def excess(ends: list[tuple[float, float]], pairs: list[tuple[float, float]]) -> float:
    """How far the power of the best test, at the false-positive rates of likelihood-ratio tests,
    lies above the bound.
    """
    worst, fpr, tpr = -1.0, 0.0, 0.0
    for p, loss in sorted(ends, key=lambda end: -end[1]):
        fpr, tpr = fpr + p * math.exp(-loss), tpr + p
        worst = max(worst, tpr - attacker.true_positive_rate(min(fpr, 1.0), pairs))
    return worst


def test_all_readings_bound_the_attacker_of_a_book_that_is_closed_at_them() -> None:
    """Exact, over every transcript of an adaptive run; the same check rejects a third of each reading."""
    shown = readings(20, 0)
    assert len(set(shown)) > 2  # the curve is made of several readings, not of one
    ends = closed_book(shown)
    assert sum(p for p, _ in ends) == pytest.approx(1.0)
    pairs = list(zip(DELTAS, shown, strict=True))
    assert excess(ends, pairs) <= 1e-12
    assert excess(ends, [(delta / 3, epsilon / 3) for delta, epsilon in pairs]) > 0.01


def test_what_is_left_is_the_limit_less_what_is_proved(book: Book, ledger: Ledger) -> None:
    """The reproduction: "2.156 of 3" stood beside "47.9 % left". All three figures are printed, and subtract."""
    made = report(book)
    shown = {name: Decimal(text) for name, text in made.facts["balance"].items()}
    assert shown["limit"] - shown["proved"] == shown["left"]
    assert shown["proved"] >= Decimal(book.spent().epsilon)
    assert book.remaining().epsilon == pytest.approx(float(shown["left"]), abs=1e-3)
    html = made.html()
    assert "The Gaussian accounting rule guarantees its limit as a whole" not in html
    card = html[html.index("<h3>Left</h3>") : html.index("An attacker detects")]
    assert f"ε = {made.facts['balance']['left']} " in card
    assert "%" not in re.sub(r'style="[^"]*"', "", card)
    full = ledger.open("gaussian", epsilon=1.0, delta=1e-6, filter="gaussian")
    full.charge(events.Gaussian(noise_multiplier=9.0))
    assert report(full).facts["balance"] == {"proved": "1", "limit": "1", "left": "0"}
    assert "The Gaussian accounting rule guarantees its limit as a whole" in report(full).html()


def test_a_plan_for_several_rows_a_unit_shows_the_curve_of_the_group(ledger: Ledger) -> None:
    book = ledger.open("training", epsilon=5.0, delta=1e-5, unit="patient", rows_per_unit=3)
    book.plan(events.Gaussian(noise_multiplier=8.0), label="model")
    shown = next(point["epsilon"] for point in report(book).facts["curve"] if point["delta"] == 1e-5)
    assert shown == pytest.approx(dp.epsilon(events.Gaussian(noise_multiplier=8.0 / 3), delta=1e-5))


def test_the_report_shows_the_unit_of_each_charge_and_whether_it_was_said(ledger: Ledger) -> None:
    book = ledger.open("clinic", epsilon=3.0, unit="patient", rows_per_unit=4)
    book.charge(events.PureDP(epsilon=0.1), label="rows")
    book.charge(events.PureDP(epsilon=0.1), label="patients", unit="patient")
    made = report(book)
    assert [entry["unit"] for entry in made.facts["entries"]] == [
        "",
        "one record, up to 4 per unit",
        "patient, as the caller said",
    ]
    html = made.html()
    for words in (
        "with and without all records of one patient",
        "protects patient, as the caller said",
        "For 1 of the releases it was said, and is not checked",
        "One unit has at most 4 rows, as was declared",
    ):
        assert words in html


def test_the_page_says_in_one_sentence_what_was_released_from_what(book: Book) -> None:
    """The verdict, the data and the purpose are in the page and in the JSON; markup in them stays text."""
    made = report(book, dataset="the <census>", purpose="wages & hours")
    assert made.facts["verdict"].startswith("All ")
    assert "from the <census> together are differentially private" in made.facts["verdict"]
    page = made.html()
    assert "the &lt;census&gt;" in page
    assert "wages &amp; hours" in page
    assert all(word in page for word in ("odometer", "filter", "head"))


def test_a_lawyer_finds_everything_of_a_book_that_was_raised_and_split(ledger: Ledger) -> None:
    """Data, purpose, whom it protects, the verdict, each release with its own epsilon and unit, the rule, the words."""
    book = ledger.open("visits", epsilon=3.0, delta=1e-6, unit="patient")
    said = {"unit": "patient"}
    book.charge(events.PureDP(epsilon=1.0), "counts", **said)
    book.sub("alice", epsilon=0.5).charge(events.PureDP(epsilon=0.1), "ages", **said)
    parts = book.split("wards", ["north", "south"], epsilon=0.3)
    parts["north"].charge(events.PureDP(epsilon=0.2), "beds", **said)
    book.raise_limit(epsilon=4.0, delta=2e-6, why="a second survey")
    steps = events.PoissonSampled(rate=0.01, event=events.Gaussian(noise_multiplier=1.1)) * 500
    book.charge(steps, "training of network.toml", **said)
    book.charge(events.Gaussian(noise_multiplier=6.0) * 3, "synth synthetic.csv", **said)
    book.charge(events.ZCDP(rho=0.002), **said)
    made = report(book, dataset="visits of 2025", purpose="planning of beds")
    spent = made.facts["balance"]["proved"]
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", made.html()))
    for words in (
        "All 6 releases from visits of 2025 together are differentially private for all records of one patient, "
        f"with ε = {spent} at δ = 3e-6, within the limit of 7.",
        "Data visits of 2025",
        "Purpose planning of beds",
        "Who is protected all records of one patient: guarantees compare two data sets with and without",
        "guaranteed by what had been spent before the raise and then the Rényi accounting rule of order",
        "opened with the limit ε = 0.5, δ = 0 · visits/alice",
        "opened as a partition, whose parts hold different records",
        "a second survey raise limit raised by ε = 4, δ = 2e-6",
        "a release without a label",
        "Words on this page",
    ):
        assert words in page, words
    alone = {entry["label"]: entry["epsilon_alone"] for entry in made.facts["entries"] if entry["event"]}
    assert 0.099 < alone["ages"] <= 0.1
    assert "protects patient, as the caller said · visits/alice 0.1 0.1" in page  # rounded up, not to 0.09999
    assert all(value is not None and math.isfinite(value) for value in alone.values())
    assert figures.limits_then(made.facts, [point["seq"] for point in made.facts["trail"]]) == [3.0] * 3 + [7.0] * 4
    empty = report(ledger.open("other", epsilon=1.0)).html()
    assert "not stated" in empty
    assert "no theorem yet: nothing was charged" in empty


def test_a_report_of_an_unknown_ending_is_refused(book: Book, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.html, \.json or \.pdf"):
        report(book).save(tmp_path / "report.docx")
    assert not list(tmp_path.glob("report*"))


def test_without_a_browser_a_pdf_is_refused_with_what_to_do(
    book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"Save the report as \.html"):
        report(book).save(tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


@pytest.mark.usefixtures("chromium")
def test_a_pdf_is_printed_by_the_browser(book: Book, tmp_path: Path) -> None:
    assert report(book).save(tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_the_entry_for_the_registry_says_what_the_report_says(book: Book) -> None:
    made = dp.report(book, dataset="the census", purpose="planning")
    entry = made.registry()
    assert set(entry) == {"deployment", "dp_flavor", "privacy_loss", "model", "accounting", "implementation"}
    assert entry["privacy_loss"]["privacy_parameters"] == {
        "epsilon": made.facts["spent"]["epsilon"],
        "delta": made.facts["spent"]["delta"],
    }
    assert entry["deployment"]["data_source"] == "the census"
    assert entry["deployment"]["data_curator"] is None  # only the curator knows
    assert made.facts["ledger"]["head"] in entry["implementation"]["evidence"]
    assert json.loads(json.dumps(entry, allow_nan=False)) == entry


def test_what_was_released_comes_first_and_theorems_last():
    """Between them: what it means, a scale of published deployments, hazards one by one, in light and in dark."""
    with Ledger("sqlite://", who="alice") as ledger:
        book = ledger.open("visits", epsilon=3.0, delta=1e-6)
        book.charge(events.Laplace(noise_multiplier=2.0), label="visits by ward")
        made = report(book, recipients="the city council", author="Ada Muster")
    page = made.html()
    order = ["What was released", "What this means", "Is this much?", "Hazards, one by one", "Why the total holds"]
    places = [page.index(f"<h2>{title}</h2>") for title in order]
    assert places == sorted(places)
    assert all(text in page for text in ("the city council", "Ada Muster", "prefers-color-scheme: dark", "SP 800-226"))
    assert "room for about 5 more releases like the last one (visits by ward)" in page
    here = [row["what"] for row in made.facts["scale"]].index("visits: this book so far")
    assert [row["epsilon"] for row in made.facts["scale"]][here] == pytest.approx(0.5)
    states = {row["hazard"]: row["state"] for row in made.facts["hazards"]}
    assert states["Predictable random numbers"] == "met"
    assert states["The unit is smaller than a person"] == "yours to judge"


def test_a_seed_is_a_hazard_that_is_not_met():
    with Ledger("sqlite://") as ledger:
        book = ledger.open("visits", epsilon=3.0)
        book.charge(events.Laplace(noise_multiplier=2.0), label="a test", reproducible=True)
        states = {row["hazard"]: row["state"] for row in report(book).facts["hazards"]}
    assert states["Predictable random numbers"] == "not met"


def test_the_words_of_the_page_need_no_glossary():
    """A release is not called a charge, a guarantee is not said to be proved, and rules are no filters."""
    with Ledger("sqlite://") as ledger:
        book = ledger.open("visits", epsilon=3.0, delta=1e-6)
        book.charge(events.Gaussian(noise_multiplier=4.0), label="one")
        book.charge(events.Laplace(noise_multiplier=4.0), label="two")
        page = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", report(book).html(), flags=re.DOTALL)
    words = re.sub(r"<[^>]+>", " ", page)
    assert re.findall(r"\b(?:charges?|proved|proves|admits?)\b", words) == []
    assert [found for found in re.findall(r".{12}\bfilters?\b", words) if "(" not in found] == []


def test_a_notebook_is_shown_a_few_lines_of_the_report_and_of_the_book(ledger: Ledger) -> None:
    """Without figures: what is spent and left, and the newest ten releases, escaped."""
    book = ledger.open("cells", epsilon=9.0, delta=1e-6)
    for number in range(12):
        book.charge(events.Laplace(noise_multiplier=20.0), f"<b>question {number}</b>", asked=(0.05, 0.0))
    shown = report(book)._repr_html_()
    assert "<svg" not in shown
    assert len(shown) < 5_000
    assert "ε = 0.6 of 9" in shown
    assert "room for about" in shown
    assert shown.count("&lt;b&gt;question") == 11  # ten of them, and the last as an example
    assert "&lt;b&gt;question 1&lt;" not in shown
    assert "often less than the sum of what was asked" in shown
    own = book._repr_html_()
    assert "ε = 0.6 of 9 at δ = 1e-06, 12 charges" in own
    assert "ε = 8.4" in own


def test_room_for_more_counts_releases_at_what_they_are_asked_for(ledger: Ledger) -> None:
    """Where 1 of 3 is left, one more fit asked for with epsilon 1 fits, though its leaves add up to more."""
    book = ledger.open("fits", epsilon=3.0, delta=1e-6)
    book.charge(events.Laplace(noise_multiplier=1.0), "counts", asked=(1.0, 0.0))
    score = events.Laplace(noise_multiplier=1.0)  # of rows held back
    noise = dp.calibrate(lambda z: events.Gaussian(noise_multiplier=z) | score, epsilon=1.0, delta=1e-7)
    fit = events.Gaussian(noise_multiplier=noise) | score
    book.charge(fit, "model", asked=(1.0, 1e-7))
    assert "room for about 1 more release like the last one (model)" in report(book).html()
    book.charge(fit, "model", asked=(1.0, 1e-7))
    assert "room for no more releases like the last one (model)" in report(book).html()
