"""The front desk: a server where analysts ask about data that they never see, and the client that asks.

The owner of the data starts it (``discreet desk init``, ``serve``, ``person add``); an analyst connects with a token
and has the same builder of questions as beside a local table:

.. code-block:: python

    desk = dp.desk.connect("https://desk.example", token)
    visits = desk.table("visits")
    visits.group_by("ward").mean("days").explain(epsilon=0.5)      # what it costs, how good it will be: no traffic
    visits.group_by("ward").mean("days").rehearse(epsilon=0.5)     # on made-up rows
    visits.group_by("ward").mean("days").release(epsilon=0.5, label="stay by ward")
"""

from __future__ import annotations

from discreet.desk.client import Desk, DeskQuery, DeskRelease, DeskTable, connect
from discreet.desk.errors import ApprovalNeeded, DeskError

__all__ = ["ApprovalNeeded", "Desk", "DeskError", "DeskQuery", "DeskRelease", "DeskTable", "connect"]
