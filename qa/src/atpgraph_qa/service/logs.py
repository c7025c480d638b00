"""Structured logs: one JSON object a line, facts without personal data."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """A record as a JSON object: time, level, what, and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            **getattr(record, "facts", {}),
            "at": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "what": record.getMessage(),
        }
        if record.exc_info and record.exc_info[2] is not None:
            # Places only: the message of an error may quote what somebody wrote.
            frames = traceback.extract_tb(record.exc_info[2])[-5:]
            line["trace"] = [f"{frame.name}:{frame.lineno}" for frame in frames]
        return json.dumps(line, default=str)


def set_up(level: str) -> None:
    """Send the service's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("atpgraph.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper() if name == "atpgraph.serve" else "WARNING")
        logger.propagate = False
