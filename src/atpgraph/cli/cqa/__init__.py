"""``atp cqa``: Stack Exchange sites, from a data dump to who should answer a question."""
