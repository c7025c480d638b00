"""From a Stack Exchange data dump to a site on disk, and the site as arrays."""
