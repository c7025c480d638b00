from __future__ import annotations

import numpy as np

from atpgraph_qa.advisor.reasons import Hierarchy
from atpgraph_qa.competition import competition_graph
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records


def test_levels_of_people(latest: History) -> None:
    found = Hierarchy.of(latest)
    nodes = competition_graph(latest.posts(), ega="consecutive").user_nodes(latest.users)
    assert found.users.tolist() == latest.users[nodes >= 0].tolist()
    assert 1 <= found.level.min() <= found.level.max() <= found.top
    first, second = found.users[:2].tolist()
    assert found.level_of(first) == found.level[0]
    assert found.level_of(10**9) == 0
    rest = found.without([first])
    assert rest.level_of(first) == 0
    assert rest.level_of(second) == found.level[1]
    assert found.without([]) is found


def test_before_anything_happened(records: Records) -> None:
    nothing = Hierarchy.of(History(records, 0))
    assert (len(nothing.users), nothing.top, nothing.level_of(3)) == (0, 0, 0)
    assert np.issubdtype(nothing.level.dtype, np.integer)
