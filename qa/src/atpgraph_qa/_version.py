"""The version, the same as that of atpgraph."""

__version__ = "0.3.0"
