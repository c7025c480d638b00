"""What happened on a site and when it became known: tables, a moment in them, a question asked."""
