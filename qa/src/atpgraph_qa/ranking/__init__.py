"""What the ranker looks at: numbers for every person, from what was known at a moment."""
