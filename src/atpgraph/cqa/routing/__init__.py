"""Who should answer this question: methods, protocols, and a router for real use.

A method sees a :class:`History` only, what was known at a moment; :func:`evaluate_routing` compares
methods; :class:`Router` is the one that learns, and :func:`suggest` turns it into people to ask.
"""

from __future__ import annotations

from atpgraph.cqa.routing.evaluation import RoutingReport, evaluate_routing
from atpgraph.cqa.routing.history import History, Question, Records
from atpgraph.cqa.routing.method import Method
from atpgraph.cqa.routing.model_file import load_router, save_router
from atpgraph.cqa.routing.newcomers import Newcomer, place, read_newcomers, welcome
from atpgraph.cqa.routing.policies import Dispatcher, Policy
from atpgraph.cqa.routing.protocols import Protocol, make_protocol
from atpgraph.cqa.routing.registry import METHODS
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.routing.suggest import Suggestion, Suggestions, suggest, warm_up

__all__ = [
    "METHODS",
    "Dispatcher",
    "History",
    "Method",
    "Newcomer",
    "Policy",
    "Protocol",
    "Question",
    "Records",
    "Router",
    "RoutingReport",
    "Suggestion",
    "Suggestions",
    "evaluate_routing",
    "load_router",
    "make_protocol",
    "place",
    "read_newcomers",
    "save_router",
    "suggest",
    "warm_up",
    "welcome",
]
