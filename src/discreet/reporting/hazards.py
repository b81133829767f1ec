"""Privacy hazards that NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy Guarantees", 2025) warns of, in
words of our own, each with what this book says of it and what is left to the owner of the data.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["hazards"]

MET, PART, YOURS = "met", "in part", "yours to judge"


Row: TypeAlias = tuple[str, str, str]  # a hazard, how it stands, and what is known here


def hazards(facts: dict[str, Any], units: dict[str, int]) -> list[dict[str, str]]:
    """One row per hazard: what it is, how it stands (met, in part, yours to judge), and what is known here.

    ``units`` counts releases by who bounded what a unit contributes, as a snapshot of a book does.
    """
    rows = [*_promises(facts, units), *_workings(facts), *CIRCUMSTANCES]
    return [{"hazard": name, "state": state, "here": text} for name, state, text in rows]


def _promises(facts: dict[str, Any], units: dict[str, int]) -> list[Row]:
    """What the numbers mean: epsilon, delta and the unit."""
    said, releases = units.get("said", 0) + units.get("", 0), facts["spent"]["charges"]
    balance, delta = facts["balance"], facts["spent"]["delta"]
    return [
        (
            "A large epsilon protects little",
            YOURS,
            f"ε = {balance['proved']} so far, {balance['limit']} at most; what an attacker can learn from that, and a "
            "scale of published deployments, are on this page.",
        ),
        (
            "A large delta lets the guarantee fail",
            YOURS if delta else MET,
            f"δ = {delta:g} for all releases together: it should be far below one over the number of people."
            if delta
            else "δ = 0: the guarantee holds always.",
        ),
        (
            "The unit is smaller than a person",
            YOURS if facts["unit"] == "one record" else PART if said else MET,
            f"Who is protected: {facts['whom']}. "
            + (
                "Whoever has several records is protected less."
                if facts["unit"] == "one record"
                else f"For {said:,} of {releases:,} releases this rests on what the caller said."
                if said
                else "The library bounded what each contributes, by its identifiers."
            ),
        ),
    ]


def _workings(facts: dict[str, Any]) -> list[Row]:
    """What the library does about it."""
    releases, seeded = facts["spent"]["charges"], facts["seeded"]
    return [
        (
            "Neighbouring data sets that mean little",
            MET,
            f"Two data sets {facts['neighbours']} ({facts['adjacency']}).",
        ),
        (
            "Releases that nobody adds up",
            PART,
            f"All {releases:,} releases of this book are added up, however they were chosen. What was released from "
            "the same data elsewhere is not.",
        ),
        (
            "Bounds, categories or keys taken from the data",
            PART,
            "The library takes them from a declaration and never from the data. It cannot know whether the writer of "
            "the declaration looked at the data.",
        ),
        (
            "Noise of ordinary floating-point numbers",
            PART,
            "The library's own releases draw noise on an exact grid, except private training, whose noise is drawn in "
            "floats. About releases that were charged by hand, the ledger knows only what was declared.",
        ),
        (
            "Predictable random numbers",
            "not met" if seeded else MET,
            f"{seeded:,} of {releases:,} releases were made with a seed: not private."
            if seeded
            else "No release is recorded as made with a seed.",
        ),
    ]


# what is the same of every book
CIRCUMSTANCES: tuple[Row, ...] = (
    (
        "Side channels: time, memory, errors",
        PART,
        "Errors and sizes of answers do not depend on the records. The time that a question takes may depend on them: "
        "people who ask should not be able to measure it.",
    ),
    (
        "Parameters tuned on the data",
        PART,
        "Choices made by the library's own search are charged. Looks at the data outside the library are not counted.",
    ),
    (
        "Bias against small groups",
        YOURS,
        "Noise is the same for every group, so that small ones suffer most; caps and bounds cut what is beyond "
        "them. Answers come with intervals, and say what is cut.",
    ),
    (
        "Trust, access and collection",
        YOURS,
        "A curator who sees the data is trusted. How it was collected, who has access and how long it is kept lie "
        "outside of this book.",
    ),
)
