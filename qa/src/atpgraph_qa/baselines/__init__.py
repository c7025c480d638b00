"""Other ways of ranking people, to set against the router."""
