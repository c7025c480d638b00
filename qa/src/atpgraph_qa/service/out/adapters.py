"""The sites and tools that the service talks to."""

from __future__ import annotations

from collections.abc import Callable

from atpgraph_qa.service.out.discourse import Discourse
from atpgraph_qa.service.out.github import GitHub
from atpgraph_qa.service.out.payloads import Adapter
from atpgraph_qa.service.out.slack import Slack
from atpgraph_qa.service.out.standard import StandardWebhooks
from atpgraph_qa.service.settings import Settings

ADAPTERS: dict[str, Callable[[Settings], Adapter]] = {
    "webhook": StandardWebhooks, "discourse": Discourse, "slack": Slack, "github": GitHub
}  # fmt: skip
# The last part of the address of a hook, and its adapter.
SOURCES = {
    "generic": "webhook", "discourse": "discourse", "slack": "slack", "github": "github"
}  # fmt: skip
