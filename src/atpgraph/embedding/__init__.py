"""The ATP estimator, its model file and its exports."""

from atpgraph.embedding.estimator import ATP

__all__ = ["ATP"]
