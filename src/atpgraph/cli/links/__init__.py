"""``atp links``: predict links, recommend targets, list what is missing."""
