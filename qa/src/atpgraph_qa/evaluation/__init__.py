"""Evaluate routing methods on questions whose answers are known."""
