"""Features of the ranker: numbers for every person, computed from what was known at a moment."""
