"""Each test of an experiment starts as a new process would: nothing was asked, and no data may be made up."""

from __future__ import annotations

import pytest

from experiments import _data, _results


@pytest.fixture(autouse=True)
def _nothing_asked():
    yield
    _results._asked.update(quick=False, write=False)
    _data.use_stand_ins(False)
    _data._told.clear()
