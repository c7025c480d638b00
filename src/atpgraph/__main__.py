"""``python -m atpgraph`` is the command ``atp``."""

from atpgraph.cli import run

if __name__ == "__main__":
    run()
