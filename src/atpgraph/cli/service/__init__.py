"""The commands of ``atp service``."""
