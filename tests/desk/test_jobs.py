"""Questions about a table as a whole: marginals are asked like others; synthetic data and models are approved first."""

from __future__ import annotations

from typing import Any

import pytest

import discreet as dp
from discreet.desk import ApprovalNeeded, connect
from discreet.desk.questions import DeskQuestion
from discreet.desk.whole_tables import MOST_CELLS
from tests.desk.desks import Running, ask


def question(operation: dict[str, Any], **budget: Any) -> dict[str, Any]:
    return {"version": 1, "operation": {"dataset": "visits", **operation}, "budget": budget}


SYNTHESIS = question({"type": "synthesis", "rows": 7}, epsilon=0.2, delta=1e-9)
FIT = question({"type": "fit", "target": "days"}, epsilon=0.2, delta=1e-9)
MARGINALS = question({"type": "marginals", "sets": [["ward"]]}, epsilon=0.5)


def approve(desk: Running) -> None:
    owner = desk.client("owner", epsilon=None)
    for line in owner.get("/v1/requests").json()["requests"]:
        owner.post(f"/v1/requests/{line['number']}/approve", json={"why": "agreed"})


def test_marginals_are_one_release_whose_sums_agree(desk: Running) -> None:
    name, token = desk.person()
    with connect(desk.url, token) as at:
        answer = at.table("visits").marginals([["ward"]], epsilon=1.0, label="by ward")
    assert answer.value.columns == ["marginal", "ward", "count"]
    assert answer.value["ward"].to_list() == ["north", "south", None]
    assert answer.value["count"].to_list() == pytest.approx([300, 300, 0], abs=40)
    assert answer.error["count"].startswith("±")
    assert dp.epsilon(answer.event, delta=0) <= 1.0
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 1


def test_a_job_waits_for_the_owner_whatever_it_costs(desk: Running) -> None:
    name, token = desk.person(delta=1e-8)
    client = desk.with_token(token)
    for key, job in (("rows", SYNTHESIS), ("model", FIT)):
        assert client.post("/v1/explain", json=job).json()["needs_approval"] is True
        assert ask(client, job, key).status_code == 202
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 0
    approve(desk)
    rows, model = (ask(client, job, key).json() for key, job in (("rows", SYNTHESIS), ("model", FIT)))
    assert (rows["state"], model["state"]) == ("answered", "answered")
    assert {column["name"]: len(column["values"]) for column in rows["columns"]} == {"ward": 7, "days": 7}
    entries = desk.service.ledger.book(f"visits/{name}").entries()
    assert sum("[approved by" in entry.label for entry in entries) == 2
    with connect(desk.url, token) as at:  # asked again, it is the same answer, and a model that predicts
        visits = at.table("visits")
        assert visits.synthesize(7, 0.2, 1e-9, key="rows").value.height == 7
        fitted = visits.fit("days", 0.2, 1e-9, key="model").value
        assert all(0 <= days <= 30 for days in fitted.predict({"ward": ["north", "south"]}))
    assert desk.service.ledger.book(f"visits/{name}").spent().entries == 2


def test_a_job_at_the_client_raises_until_it_is_approved(desk: Running) -> None:
    with connect(desk.url, desk.person(delta=1e-8)[1]) as at:
        with pytest.raises(ApprovalNeeded):
            at.table("visits").synthesize(3, 0.2, 1e-9, key="k")
        at.cancel("k")


@pytest.mark.parametrize(
    ("operation", "budget", "reason"),
    [
        ({"type": "marginals", "sets": [["days"]]}, {"epsilon": 1.0}, "no declared categories"),
        ({"type": "marginals", "sets": [["none"]]}, {"epsilon": 1.0}, "no declared categories"),
        ({"type": "marginals", "sets": []}, {"epsilon": 1.0}, "at least one"),
        ({"type": "marginals", "sets": [["ward", "ward"]]}, {"epsilon": 1.0}, "different columns"),
        ({"type": "marginals", "sets": [[["ward"]]]}, {"epsilon": 1.0}, "different columns"),
        ({"type": "marginals", "sets": [["ward"]]}, {"epsilon": 1.0, "noise": "laplace"}, "noise"),
        ({"type": "marginals"}, {"epsilon": 1.0}, "A part is missing"),
        ({"type": "synthesis", "rows": 0}, {"epsilon": 1.0, "delta": 1e-9}, "rows"),
        ({"type": "synthesis", "rows": 10**9}, {"epsilon": 1.0, "delta": 1e-9}, "numbers"),
        ({"type": "synthesis", "rows": 5, "bins": 10**9}, {"epsilon": 1.0, "delta": 1e-9}, "bins"),
        ({"type": "synthesis", "rows": True}, {"epsilon": 1.0, "delta": 1e-9}, "rows"),
        ({"type": "synthesis", "rows": 5}, {"epsilon": 1.0}, "epsilon and delta"),
        ({"type": "synthesis", "rows": 5}, {"rho": 0.1}, "epsilon and delta"),
        ({"type": "fit", "target": "none"}, {"epsilon": 1.0, "delta": 1e-9}, "no declared column"),
        ({"type": "fit", "target": "days", "solver": "x"}, {"epsilon": 1.0, "delta": 1e-9}, "one too many"),
        ({"type": "train", "target": "days"}, {"epsilon": 1.0, "delta": 1e-9}, "operation must be tagged"),
    ],
)
def test_what_is_publicly_wrong_is_refused_before_it_waits(
    desk: Running, operation: dict[str, Any], budget: dict[str, Any], reason: str
) -> None:
    refused = ask(desk.client(), question(operation, **budget), "q")
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")
    assert reason in refused.json()["error"]["message"]


def test_marginals_are_bounded_in_size() -> None:
    from discreet.schema import Categories, Schema, as_declaration

    wide = as_declaration(Schema({f"c{i}": Categories(range(10)) for i in range(7)}))
    asked = DeskQuestion.from_dict(question({"type": "marginals", "sets": [[f"c{i}" for i in range(7)]]}, epsilon=1.0))
    with pytest.raises(ValueError, match=f"{MOST_CELLS:,} are the most"):
        asked.operation(None, wide)  # type: ignore[arg-type]


def test_a_question_of_the_whole_table_is_the_same_after_its_journey() -> None:
    for wire in (SYNTHESIS, FIT, MARGINALS):
        asked = DeskQuestion.from_dict(wire)
        assert DeskQuestion.from_dict(asked.to_dict()) == asked
        assert asked.is_job == (wire is not MARGINALS)
    digests = {DeskQuestion.from_dict(wire).digest("ada") for wire in (SYNTHESIS, FIT, MARGINALS)}
    assert len(digests) == 3
