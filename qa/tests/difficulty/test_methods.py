from __future__ import annotations

import numpy as np

from atpgraph_qa import Expertise, Site
from atpgraph_qa.difficulty.methods import PathRule


def test_the_rule_of_the_paper_against_a_loop(site: Site) -> None:
    made = Expertise.fit(site, n_components=16)
    opinion = PathRule.of(made, site.questions.id[:30]).harder(np.arange(30))
    labels = [f"question:{number}" for number in site.questions.id[:30]]
    known = set(made.model.labels_.tolist())
    for i in range(30):
        for j in range(30):
            if labels[i] in known and labels[j] in known:
                to_i = made.model.score_pairs([labels[j]], [labels[i]])[0]
                to_j = made.model.score_pairs([labels[i]], [labels[j]])[0]
                if abs(to_i - to_j) > 1e-6:
                    assert opinion[i, j] == np.sign(to_i - to_j)
            else:
                assert opinion[i, j] == 0
