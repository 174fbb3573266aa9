"""Settings of a topic, under Kafka's names: what the log acts on is checked, the rest is kept as it is."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.errors import SpecError

RETENTION_MS = "retention.ms"
"""Records older than this may be dropped (milliseconds); -1 keeps them."""
RETENTION_BYTES = "retention.bytes"
"""Per partition, the oldest records beyond this size may be dropped (bytes); -1 keeps them."""


def check_config(config: Mapping[str, str]) -> dict[str, str]:
    """The settings in one order, or a `SpecError` for a limit that is no number."""
    for name in (RETENTION_MS, RETENTION_BYTES):
        if name in config:
            _number(name, config[name])
    return {name: str(config[name]) for name in sorted(config)}


def limit_of(config: Mapping[str, str], name: str) -> int | None:
    """A limit, or None when the topic has none."""
    value = _number(name, config[name]) if name in config else -1
    return None if value == -1 else value


def _number(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < -1 or value == 0:
        raise SpecError(name, text, "is not a limit", "give a whole number above 0, or -1 for no limit")
    return value
