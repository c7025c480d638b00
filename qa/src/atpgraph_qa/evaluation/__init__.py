"""How good a way of routing is, on questions whose answers are known."""
