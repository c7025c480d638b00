"""The version, the same as that of atpgraph."""

__version__ = "0.2.0"
