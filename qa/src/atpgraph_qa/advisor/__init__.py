"""Whom to ask: suggestions with reasons, under policies, newcomers included."""
