"""``atp generate``: random graphs, and a simulated community."""
