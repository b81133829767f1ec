"""Private tables: any engine's rows in, noisy aggregates out.

>>> import pandas as pd
>>> from discreet.schema import Bounded, Categories, Schema
>>> rows = pd.DataFrame({"educ": [1, 2, 2] * 1000, "income": [10.0, 20.0, 40.0] * 1000})
>>> people = table(rows, schema=Schema(educ=Categories([1, 2, 3]), income=Bounded(0, 100)))
>>> int(people.filter(col("income") > 15).count().release(epsilon=100.0, rng=1).value["count"][0])
2000
"""

from __future__ import annotations

from discreet.encoding.engines import EngineFailed
from discreet.tables.expressions import Expression, case, col
from discreet.tables.operation import Explanation, TableOperation
from discreet.tables.query import TableQuery
from discreet.tables.table import Table, table

__all__ = ["EngineFailed", "Explanation", "Expression", "Table", "TableOperation", "TableQuery", "case", "col", "table"]
