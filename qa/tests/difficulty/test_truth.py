from __future__ import annotations

import numpy as np
import pytest

from atpgraph.errors import InputError
from atpgraph_qa import BountyTruth, halves


@pytest.mark.parametrize("by", ["random", "time"])
def test_halves_are_disjoint_and_complete(by):
    truth = BountyTruth(np.arange(21), np.full(21, 50))
    validation, test = halves(truth, by=by, random_state=3)
    assert (validation ^ test).all()
    assert validation.sum() == 10
    assert (halves(truth, by=by, random_state=3)[0] == validation).all()
    if by == "time":
        assert validation[:10].all()
    with pytest.raises(InputError):
        halves(truth, by="luck")
