"""Time routes of atpgraph 0.2.0 by stage, for ``route.py --before``; runs where that is installed.

    PYTHON _route_before.py MODEL QUESTIONS RULES COUNT

A model that a later version trained will do: what 0.2.0 does not know of is left out.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from atpgraph.cqa.routing.advice.model_folder import ModelFolder

from atpgraph.cqa import Advisor, Policy, Question

STAGES = {
    "vector of the text": (("meaning.py:vector",), ()),
    "closeness to every question": (("meaning.py:closeness",), ()),
    "words, BM25": (("corpus.py:query", "corpus.py:worth", "corpus.py:bm25"), ()),
    "tags, nearest questions, asker": (
        ("similarity.py:tag_features", "similarity.py:near_feature", "standing.py:asker_features"),
        ("corpus.py:worth", "corpus.py:bm25"),
    ),
    "activity": (("space.py:of",), ("space.py:make",)),
    "sums over what people posted": (
        ("evidence.py:gathered", "evidence.py:add_up", "evidence.py:add_forms"),
        (),
    ),
    "rules": (("policies.py:choose",), ()),
    "reasons": (("reasons.py:explain",), ()),
    "a route": (("advisor.py:ask",), ()),
}


def opened(model: Path, folder: Path) -> Advisor:
    """Return the advisor of a model, without its embedding, which has another format now."""
    for file in model.iterdir():
        (folder / file.name).symlink_to(file.resolve())
    manifest = json.loads((folder / "model.json").read_text())
    router = manifest["router"]
    router.pop("presence", None)
    router["calibration"] = {name: router["calibration"][name] for name in ("sharpness", "reach")}
    (folder / "model.json").unlink()
    (folder / "model.json").write_text(json.dumps(manifest))
    ModelFolder.expertise = lambda self: None
    return Advisor.open(folder)


def main() -> None:
    """Print milliseconds of the processor, by stage and for each route, and who was suggested."""
    questions = [Question(**entry) for entry in json.loads(Path(sys.argv[2]).read_text())]
    with tempfile.TemporaryDirectory() as folder:
        advisor = opened(Path(sys.argv[1]).resolve(), Path(folder))
    advisor.warm_up()
    last = advisor.history.last_ms / 1000
    policy = Policy(inactive_days=180.0) if sys.argv[3] == "rules" else Policy()
    half, spent, people = int(sys.argv[4]), [], []
    for number, question in enumerate(questions[:half]):
        at = np.datetime64(round(1000 * last) + 60_000 * number, "ms").item()
        timed = Question(question.title, question.body, question.tags, question.asker, at)
        used = time.process_time()
        found = advisor.ask(timed, policy, top=10)
        spent.append(1000 * (time.process_time() - used))
        people.append([person.user for person in found.people])
    profile = cProfile.Profile(time.process_time)
    for question in questions[half:]:
        profile.runcall(advisor.ask, question, policy, top=10)
    functions: dict[str, float] = {}
    for (file, _, name), (_, _, _, total, _) in pstats.Stats(profile).stats.items():
        key = f"{Path(file).name}:{name}"
        functions[key] = functions.get(key, 0.0) + 1000 * total / (len(questions) - half)
    stages = {
        stage: sum(functions.get(key, 0.0) for key in plus)
        - sum(functions.get(key, 0.0) for key in minus)
        for stage, (plus, minus) in STAGES.items()
    }
    print(json.dumps({"stages": stages, "ms": spent, "people": people}))


if __name__ == "__main__":
    main()
