"""Directed graph embedding that keeps direction and reachability (ATP)."""

__version__ = "0.1.0"
