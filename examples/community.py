"""Route questions: whom to ask, why, and how to avoid always asking the same few people.

The example simulates a community, reads it like a Stack Exchange dump, learns from its history, and
routes a new question. Then it routes twenty similar questions in a row, under three rules for who
may be asked.
"""

import tempfile
from collections import Counter
from pathlib import Path

from atpgraph_qa import (
    Advisor,
    AskLog,
    Policy,
    Question,
    Site,
    ingest,
    simulate_community,
    write_dump,
)

RULES = {
    "no rule": Policy(),
    "at most twice a week": Policy(per_week=2),
    "prefer those asked less": Policy(spread=1.0),
}


def make_site(folder: Path) -> Site:
    """100 people, 400 questions. The folder or the 7z file of a real dump goes in the same way."""
    write_dump(simulate_community(100, 400, n_topics=4, random_state=0), folder / "dump")
    ingest(folder / "dump", folder / "site")
    return Site(folder / "site")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        advisor = Advisor.fit(make_site(Path(folder)), text="bm25")
    # advisor.save("model") keeps it; Advisor.load("model") needs neither site nor training.

    question = Question("Why does my sourdough loaf come out flat?", tags=("cooking", "bread"))
    print(f"{question.title} [{', '.join(question.tags)}]")
    for person in advisor.ask(question, k=3).people:
        print(f"\nuser {person.user}, confidence {person.confidence:.0%}")
        for reason in person.reasons[:4]:
            print(f"  - {reason.text}")

    print("\ntwenty questions like this one, three people each:")
    for name, policy in RULES.items():
        asked: Counter[int] = Counter()
        log = AskLog()
        for _ in range(20):
            chosen = advisor.ask(question, policy, log=log, k=3).people
            asked.update(person.user for person in chosen)
        print(f"  {name}: {len(asked)} people asked, the busiest {max(asked.values())} times")


if __name__ == "__main__":
    main()
