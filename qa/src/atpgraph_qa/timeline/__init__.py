"""The history of a site: tables of events, a moment in them, and a question asked then."""
