"""Simulated communities with planted expertise and difficulty."""
