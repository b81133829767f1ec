"""Private records as a schema reads them: what is missing, what is clipped, which category, which rows of a unit count.

One schema serves every room: a query, a model and whatever learns from a table see the same value in the same entry.

>>> from discreet.schema import Bounded, Categories, Declaration, Schema
>>> facts = Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"])), unit="who")
>>> rows = Encoder(facts).read({"who": [1, 2, 1], "age": ["50", None, 70], "sex": ["m", "x", "f"]})
>>> rows.unit_scaled("age").tolist(), rows.codes("sex").tolist()
([0.5, nan], [1, -1])
"""

from __future__ import annotations

from discreet.encoding.design import Design
from discreet.encoding.encoder import Encoded, Encoder, one_row_note

__all__ = ["Design", "Encoded", "Encoder", "one_row_note"]
