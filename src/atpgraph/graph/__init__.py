"""Directed graphs: the type, reading and writing, conversion, generators."""

from atpgraph.graph.digraph import DiGraph

__all__ = ["DiGraph"]
