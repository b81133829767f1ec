"""What reads text from strangers gives an answer or a clean error; ``make fuzz`` tries a million texts of each kind."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searches._grammar import GRAMMARS, Bytes
from searches._targets import SEEDS, TARGETS

ANY = st.text(st.characters(exclude_categories=()), max_size=80)


@st.composite
def altered(draw, seeds):
    """A good text with a piece replaced, repeated or left out."""
    text = draw(st.sampled_from(seeds))
    a, b = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    return (
        text[:a]
        + draw(st.one_of(ANY, st.sampled_from([text[a:b] * 2, "", "9" * 5000, "(" * 300, "[" * 3000])))
        + text[b:]
    )


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_text_gives_an_answer_or_a_clean_error(name, data):
    """Any other exception fails; the seeds are good texts,
    with which the branches behind the first check are reached.
    """
    sentence = st.binary(max_size=60).map(lambda choices: GRAMMARS[name](Bytes(choices)))
    TARGETS[name](data.draw(st.one_of(ANY, altered(SEEDS[name]), sentence)))


LARGE = {
    "event_text": [
        "'a' * 4000000000",
        "[1] * 4000000000",
        "(1, 2) + [3]",
        "gaussian(1) * " + "9" * 4000,
        "-" * 9000 + "1",
    ],
    "event_json": ["[" * 100_000, '{"type":"Repeated","count":' + "9" * 5000 + ',"event":{"type":"NonPrivate"}}'],
    "schema_toml": [
        "[columns]\na = { range = [1, 1000000000] }",
        "[columns]\na = { range = [1, 99999999999999999999] }",
        "a = " + "[" * 50_000,
        "[columns]\na = { bounds = [0, " + "9" * 5000 + "] }",
    ],
    "sql": [
        "SELECT COUNT(*) FROM t WHERE " + "(" * 5000,
        "SELECT " + "-" * 5000 + "1 FROM t",
        "SELECT COUNT(*) FROM t WHERE a = " + "9" * 5000,
        "SELECT COUNT(*) FROM t WHERE a IN (" + "1," * 50_000 + "2)",
    ],
    "ledger_url": ["sqlite:///" + "x" * 100_000, "postgresql://" + ":" * 10_000 + "@/?" + "a=b&" * 10_000],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in LARGE.items() for text in texts])
def test_a_large_number_in_a_small_text_takes_no_memory(name, text):
    """Four gigabytes for the event text, three for the schema, before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    TARGETS[name](text)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000, "kilobytes"
