"""The service: an advisor in front of a community, with an API, policies and a page.

``settings`` → ``store`` → ``engine`` (events, policies, suggestions) → ``out`` (webhooks,
adapters) →
``api`` → ``web``. Events are the truth: everything in memory is a snapshot plus the events since.
"""
