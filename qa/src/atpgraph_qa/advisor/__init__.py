"""Suggest whom to ask, with reasons, under policies, newcomers included."""
