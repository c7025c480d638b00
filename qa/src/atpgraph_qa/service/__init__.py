"""The service: an advisor in front of a community, with an API, policies and a page.

``settings`` and ``tables`` → rows (``events``, ``suggestions``, ``outbox``, ``tokens``) →
``engine`` (events, routing) → ``suggester`` → ``service`` → ``routes`` and ``pages``; ``adapters``
talk to other sites. Events are the truth: everything in memory is a snapshot plus
the events since.
"""
