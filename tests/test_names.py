"""Names that a stranger understands: few participles, one class a name."""

from __future__ import annotations

from checks.names import functions, participles, shared_classes


def test_functions_are_verbs_or_nouns():
    assert len(participles()) < 0.05 * len(functions())


def test_a_class_name_means_one_thing():
    assert len(shared_classes()) <= 20
