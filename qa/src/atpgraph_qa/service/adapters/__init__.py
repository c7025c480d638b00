"""The sites and tools that the service talks to."""

from __future__ import annotations

from atpgraph_qa.service.adapters.base import Adapter
from atpgraph_qa.service.adapters.discourse import Discourse
from atpgraph_qa.service.adapters.github import GitHub
from atpgraph_qa.service.adapters.slack import Slack
from atpgraph_qa.service.adapters.standard import StandardWebhooks

ADAPTERS: dict[str, type[Adapter]] = {
    "webhook": StandardWebhooks, "discourse": Discourse, "slack": Slack, "github": GitHub
}  # fmt: skip
# The last part of the address of a hook.
SOURCES: dict[str, type[Adapter]] = {
    "discourse": Discourse, "github": GitHub, "slack": Slack, "generic": StandardWebhooks
}  # fmt: skip
