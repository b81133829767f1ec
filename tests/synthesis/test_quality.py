"""The quality of a table: figures against independent computations, and what is said of their privacy."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp, pearsonr

import discreet as dp
from discreet.reporting import private_quality_report, quality_report
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis import QualityCheck, quality

SCHEMA = Schema(age=Bounded(0, 80), pay=Bounded(-5, 5), sex=Categories(["f", "m"]), job=Categories(range(4)))


def made(n, seed):
    choose = np.random.default_rng(seed)
    age, sex = choose.integers(0, 81, n).astype(float), choose.choice(["f", "m"], n, p=[0.3, 0.7])
    job = np.where(age > 40, choose.integers(0, 4, n), choose.integers(0, 2, n)).astype(float)
    pay = age / 20 + choose.normal(size=n)
    age[::17], job[::13] = np.nan, np.nan
    return {"age": age, "pay": pay, "sex": sex, "job": job}


REAL, OTHER = made(900, 1), made(700, 2)


def coded(table, bins=16):
    """By pandas: labels of cells, with missing ones as a label of their own."""
    frame = pd.DataFrame({"sex": table["sex"], "job": table["job"]})
    for name, low, high in (("age", 0, 80), ("pay", -5, 5)):
        places = np.floor((np.clip(table[name], low, high) - low) / (high - low) * bins)
        frame[name] = np.minimum(places, bins - 1)
    return frame[list(SCHEMA)].fillna(-1)


def variation(one, two, names):
    shares = [frame.groupby(list(names)).size() / len(frame) for frame in (one, two)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def test_marginals_are_those_of_pandas():
    facts, (one, two) = quality(REAL, OTHER, schema=SCHEMA), (coded(REAL), coded(OTHER))
    for ways in (1, 2, 3):
        every = {names: variation(one, two, names) for names in itertools.combinations(SCHEMA, ways)}
        found = facts["marginals"][str(ways)]
        assert found["mean"] == pytest.approx(np.mean(list(every.values())), abs=1e-12)
        assert found["max"] == pytest.approx(max(every.values()), abs=1e-12)
        assert found["max"] == pytest.approx(every[tuple(found["worst"])], abs=1e-12)


def test_correlations_and_ranges_are_those_of_numpy():
    facts = quality(REAL, OTHER, schema=SCHEMA)
    there = [~np.isnan(table["age"]) for table in (REAL, OTHER)]
    pay = [np.clip(t["pay"], -5, 5) for t in (REAL, OTHER)]
    wanted = [pearsonr(t["age"][k], p[k]).statistic for t, k, p in zip((REAL, OTHER), there, pay, strict=True)]
    assert facts["correlation"]["real"][0][1] == pytest.approx(wanted[0], abs=1e-12)
    assert facts["correlation"]["max"] == pytest.approx(abs(wanted[0] - wanted[1]), abs=1e-12)
    bins = [np.bincount(coded(t)["pay"].astype(int), minlength=16) / len(t["pay"]) for t in (REAL, OTHER)]
    gaps = [
        abs(float((bins[0] - bins[1])[a : b + 1].sum()))
        for a, b in itertools.combinations_with_replacement(range(16), 2)
    ]
    assert facts["ranges"]["pay"] == pytest.approx({"mean": np.mean(gaps), "max": max(gaps)}, abs=1e-12)


def test_the_two_scores_follow_their_definition():
    """Against scipy and pandas here; against the package itself in the benchmarks."""
    facts = quality(REAL, OTHER, schema=SCHEMA)["sdmetrics"]
    tables = [pd.DataFrame(t).assign(pay=np.clip(t["pay"], -5, 5)) for t in (REAL, OTHER)]
    shapes = [1 - ks_2samp(*(t[name].dropna() for t in tables)).statistic for name in ("age", "pay")]
    shapes += [1 - variation(*(t[[name]].dropna() for t in tables), [name]) for name in ("sex", "job")]
    assert facts["shapes"] == pytest.approx(np.mean(shapes), abs=1e-12)
    cut = [
        t.assign(**{n: np.digitize(t[n], np.histogram_bin_edges(t[n].dropna())) for n in ("age", "pay")}).fillna(-1)
        for t in tables
    ]
    trends = []
    for a, b in itertools.combinations(SCHEMA, 2):
        if {a, b} == {"age", "pay"}:
            trends.append(
                1 - abs(tables[0]["age"].corr(tables[0]["pay"]) - tables[1]["age"].corr(tables[1]["pay"])) / 2
            )
        else:
            trends.append(1 - variation(*cut, [a, b]))
    assert facts["pair_trends"] == pytest.approx(np.mean(trends), abs=1e-12)
    assert facts["score"] == pytest.approx((facts["shapes"] + facts["pair_trends"]) / 2)


def test_what_is_learned_from_good_rows_is_better_than_from_noise():
    """Sex from pay and the rest, where it is decided by pay: noise teaches nothing."""
    real, good, noise = made(600, 3), made(600, 4), made(600, 5)
    for table in (real, good):
        table["sex"] = np.where(table["pay"] > 2, "m", "f")
    facts = {name: quality(real, t, schema=SCHEMA, target="sex")["learning"] for name, t in (("g", good), ("n", noise))}
    assert facts["g"]["synthetic"] > 0.95 > facts["n"]["synthetic"]
    assert facts["g"]["real"] > 0.95
    held = quality(real, good, schema=SCHEMA, target="sex", holdout=made(50, 6))["learning"]
    assert held["synthetic"] < 0.95  # the held-out rows follow another rule
    one = {**good, "sex": ["f"] * 600}
    assert quality(real, one, schema=SCHEMA, target="sex")["learning"]["synthetic"] == 0


def test_constant_and_missing_columns_have_no_correlation_and_no_score_of_their_own():
    empty = {**REAL, "age": np.full(900, np.nan), "pay": np.full(900, 1.0)}
    facts = quality(empty, OTHER, schema=SCHEMA)
    assert facts["correlation"]["max"] is None
    assert 0 <= facts["sdmetrics"]["score"] <= 1
    alone = Schema(age=SCHEMA["age"])
    assert quality(empty, OTHER, schema=alone)["sdmetrics"] == {"shapes": None, "pair_trends": None, "score": None}
    assert "undefined" in quality_report(empty, OTHER, schema=alone).html()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"target": "age"}, "whose values are numbers"),
        ({"target": "shoe"}, "is not declared"),
        ({"schema": Schema(age=dp.Unlisted())}, "declares no column"),
        ({"bins": 0}, "bins is 0"),
    ],
    ids=["numbers", "absent", "unlisted", "bins"],
)
def test_what_public_facts_tell_is_refused(told, message):
    with pytest.raises(ValueError, match=message):
        quality(REAL, OTHER, **{"schema": SCHEMA} | told)
    with pytest.raises(ValueError, match=message):
        QualityCheck(synthetic=OTHER, n=900, epsilon=1.0, **{"schema": SCHEMA} | told)


def test_tables_without_rows_are_refused():
    none = {name: values[:0] for name, values in OTHER.items()}
    with pytest.raises(ValueError, match="no rows"):
        quality(REAL, none, schema=SCHEMA)
    with pytest.raises(ValueError, match="no rows"):
        QualityCheck(synthetic=none, n=900, epsilon=1.0, schema=SCHEMA)


# --- privately -------------------------------------------------------------------------------------------------------


def test_a_private_check_gives_the_same_averages():
    """At a large epsilon, each within its stated error; and n is as it was declared, wrong or right."""
    told = {"schema": SCHEMA, "target": "sex"}
    check = QualityCheck(synthetic=OTHER, n=900, epsilon=50.0, **told)
    found, facts = check.release(REAL, rng=1), quality(REAL, OTHER, **told)
    for ways in (1, 2, 3):
        assert found.value[f"{ways}-way"] == pytest.approx(
            facts["marginals"][str(ways)]["mean"], abs=check.error(0.9999)
        )
    wanted = np.mean([r["mean"] for r in facts["ranges"].values()])
    assert found.value["ranges"] == pytest.approx(wanted, abs=check.error(0.9999))
    assert 0.5 < found.value["learning"] < 1
    assert found.error == check.error() < 0.01
    assert QualityCheck(synthetic=OTHER, n=90, epsilon=1.0, **told).release(REAL, rng=1).value["1-way"] == 1.0


def test_one_row_moves_no_figure_by_more_than_its_unit():
    """Added and replaced, every figure in exact fractions; the largest move is close to the stated one."""
    far = {"age": 80.0, "pay": 5.0, "sex": "m", "job": 3.0}
    near = {"age": 0.0, "pay": -5.0, "sex": "f", "job": 0.0}
    heap = {name: [near[name]] * 30 for name in SCHEMA}
    added, replaced = ({name: [*heap[name][:k], far[name]] for name in SCHEMA} for k in (30, 29))
    most = {}
    for adjacency, one, two in (("add-remove", heap, added), ("replace", heap, replaced)):
        check = QualityCheck(synthetic=heap, n=30, epsilon=1.0, schema=SCHEMA, adjacency=adjacency)
        exact = [_exact(check, table) for table in (one, two)]
        most[adjacency] = [abs(a - b) for a, b in zip(*exact, strict=True)]
    assert all(move <= 1 for moves in most.values() for move in moves)
    assert max(most["add-remove"]) == max(most["replace"]) == 1


def _exact(check, table):
    from discreet.encoding import Encoder
    from discreet.synthesis.coded_table import CodedTable

    rows = CodedTable(Encoder(check.schema).read(table), check.bins)
    return [check._exact(rows, name) for name in check.entries]


def test_the_cost_is_the_budget_and_the_unit_the_schema_s():
    facts = Declaration(SCHEMA, unit="who")
    check = QualityCheck(synthetic=OTHER, schema=facts, n=900, epsilon=0.3)
    assert 0.2999 < dp.epsilon(check.event, delta=0.0) <= 0.3
    assert check.unit == "who"
    people = {**REAL, "who": np.arange(900) // 3}
    assert check.release(people, rng=1).unit == "who"


# --- the page --------------------------------------------------------------------------------------------------------


def test_every_figure_of_the_page_is_marked_as_not_private(tmp_path):
    """A page that can stand alone, in which every figure and table of real rows carries the mark."""
    report = quality_report(REAL, OTHER, schema=SCHEMA, target="sex")
    html = report.save(tmp_path / "quality.html").read_text()
    assert html.count("<figure") == 2 + len(SCHEMA)
    assert len(re.findall(r"Not private\.</(?:figcaption|p)>", html)) >= html.count("<figure") + 3
    assert "<b>Not private.</b>" in html
    assert "http" not in re.sub(r'xmlns[^=]*="[^"]+"', "", html).replace("http-equiv", "")
    facts = json.loads(report.save(tmp_path / "quality.json").read_text())
    assert facts["private"] is False


def test_the_private_page_says_what_was_paid():
    check = QualityCheck(synthetic=OTHER, schema=SCHEMA, n=900, epsilon=1.0)
    html = private_quality_report(check.release(REAL)).html()
    assert "may be published" in html
    assert "Not private" not in html
    assert "<b>Not private.</b>" in private_quality_report(check.release(REAL, rng=1)).html()


def test_the_page_names_the_worst_columns_the_spikes_and_what_not_to_do():
    """Forty hours in half of the real rows and in none of the synthetic ones; everything else is alike."""
    hours = np.where(np.arange(900) % 2 == 0, 40, 20 + np.arange(900) % 40)
    real = {**REAL, "hours": hours}
    other = {**REAL, "hours": np.where(hours == 40, 41, hours)}
    schema = Schema(dict(SCHEMA.items()) | {"hours": Bounded(0, 99, whole=True)})
    report = quality_report(real, other, schema=schema, bins=99)
    facts = report.facts
    assert facts["worst_columns"][0]["name"] == "hours"
    errors = sorted((column["error"] for column in facts["columns"]), reverse=True)
    assert [column["error"] for column in facts["worst_columns"]] == errors[:3]
    spikes = {spike["value"]: spike for spike in facts["columns"][-1]["spikes"]}
    assert spikes[40.0]["real"] == (hours == 40).mean() == 0.5
    assert spikes[40.0]["synthetic"] == 0
    assert spikes[41.0]["synthetic"] > 0.5 > 0.05 > spikes[41.0]["real"]
    assert spikes[40.0]["place"] == 40
    assert facts["numbers"]["hours"]["distance"] == pytest.approx((hours == 40).mean() / hours.std())
    assert facts["numbers"]["age"]["distance"] == 0
    html = report.html()
    assert "Farthest from the real ones are <b>hours</b>" in html
    assert "40: 50.0 % real, 0.0 % synthetic" in html
    assert "one number, real" in html
    check = QualityCheck(synthetic=OTHER, schema=SCHEMA, n=900, epsilon=1.0)
    for page in (html, private_quality_report(check.release(REAL)).html()):
        assert "No row is about anybody" in page
        assert "Do not count rare events" in page


def test_names_of_columns_are_escaped():
    schema = Schema({"<script>": Bounded(0, 1)})
    assert "<script>" not in quality_report({"<script>": [0.5]}, {"<script>": [0.2]}, schema=schema).html()
