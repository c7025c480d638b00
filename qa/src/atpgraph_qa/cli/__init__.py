"""The commands that this distribution adds to ``atp``, as ``qa/pyproject.toml`` registers them."""
