"""HTML reports about sites: routing, difficulty, load of a policy."""
