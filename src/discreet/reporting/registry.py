"""A book as an entry for a public registry of deployments: what was released, under which guarantee, by which means.

The shape follows the hierarchical schema of the registry of differential privacy deployments (OpenDP and NIST, 2025;
"Practitioners' perspectives on a differential privacy deployment registry", arXiv 2509.13509). It has a deployment, a
flavour, a loss, a model, an account and an implementation. What only the curator knows is null.
"""

from __future__ import annotations

from typing import Any

__all__ = ["registry"]

_METRICS = {
    "add-remove": "symmetric distance: one unit added or removed",
    "replace": "one unit replaced by another",
    "zero-out": "one unit's contents blanked, the size being public",
}


def registry(facts: dict[str, Any]) -> dict[str, Any]:
    """The entry, JSON-ready, from the facts of a report."""
    spent, limit = facts["spent"], facts["limit"]
    charged = [entry for entry in facts["entries"] if entry["event"]]
    return {
        "deployment": {
            "name": facts["book"],
            "description": facts["verdict"],
            "data_source": facts["dataset"] or None,
            "intended_use": facts["purpose"] or None,
            "data_curator": None,
            "data_product_region": None,
            "data_product_type": sorted({entry["label"] for entry in charged if entry["label"]}),
            "publication_date": facts["generated"][:10],
        },
        "dp_flavor": {
            "name": "approximate differential privacy" if spent["delta"] else "pure differential privacy",
            "input_metric": _METRICS[facts["adjacency"]],
        },
        "privacy_loss": {
            "privacy_unit": facts["unit"],
            "privacy_unit_description": f"Any two data sets {facts['neighbours']}.",
            "privacy_parameters": {"epsilon": spent["epsilon"], "delta": spent["delta"]},
            "limit": {"epsilon": limit["epsilon"], "delta": limit["delta"]},
        },
        "model": {
            "name": "central",
            "description": "A trusted curator holds the data; what leaves is noisy.",
            "release_type": "interactive: each release may have been chosen after seeing those before it",
        },
        "accounting": {
            "releases": spent["charges"],
            "composition": [theorem["text"] for theorem in facts["theorems"]],
            "proof": spent["proof"],
            "post_processing": "Whatever is computed from these releases alone costs nothing more.",
        },
        "implementation": {
            "library": f"discreet {facts['versions']['discreet']}",
            "mechanisms": sorted({entry["what"] for entry in charged}),
            "listed": f"{len(charged)} of {spent['charges']} releases",
            "assumptions": facts["assumptions"],
            "justification": None,
            "evidence": facts["chain"],
        },
    }
