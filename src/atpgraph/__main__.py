"""``python -m atpgraph`` is the command ``atp``."""

from atpgraph.cli import main

if __name__ == "__main__":
    main()
