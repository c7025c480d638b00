"""One writer for each kind of report page."""
