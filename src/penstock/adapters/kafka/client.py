"""What all of Kafka's clients here share: the package when it is there, settings, and errors in sentences.

The package `confluent-kafka` is an extra: it is imported when a client is made, never before. Its objects stay inside
this room, so they are `Any` here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.model.errors import EnvironmentProblem, PenstockError, SpecError


def confluent(part: str = "") -> Any:
    """The package `confluent_kafka`, or a part of it; an `EnvironmentProblem` when it is not installed."""
    try:
        return importlib.import_module(f"confluent_kafka{part}")
    except ImportError as error:
        raise EnvironmentProblem(
            "The Python package confluent-kafka is not installed, so Kafka's topics cannot be reached; "
            "install it with: pip install 'penstock[kafka]'."
        ) from error


class Connection:
    """Where a Kafka cluster is, how to reach it, and how long to wait for it."""

    def __init__(
        self, servers: str, settings: Mapping[str, str] | None = None, timeout_seconds: float = 15.0
    ) -> None:
        """`settings` are librdkafka's own (security, for example) and go to every client."""
        if not servers.strip():
            raise SpecError(
                "servers", servers, "names no Kafka server", "give host:port, several with commas"
            )
        if not timeout_seconds > 0:
            raise SpecError("timeout_seconds", timeout_seconds, "is no time to wait", "give a number above 0")
        self.servers = servers
        self.timeout_seconds = timeout_seconds
        self._settings = dict(settings or {})
        self._last_error = ""
        self.outages = 0
        """How often Kafka was out of reach so far."""

    def config(self, **more: str | int | bool) -> dict[str, Any]:
        """A client's configuration; in names, `_` stands for librdkafka's `.`."""
        return {
            "bootstrap.servers": self.servers,
            "log_level": 0,
            "error_cb": self._note,
            **{name.replace("_", "."): value for name, value in more.items()},
            **self._settings,
        }

    def admin(self) -> Any:
        with self.errors_in_words():
            return confluent(".admin").AdminClient(self.config())

    @contextmanager
    def errors_in_words(self, known: Callable[[Any], Exception | None] | None = None) -> Generator[None]:
        """One sentence for what Kafka says; `known` may turn an error's code into one of the caller's own."""
        kafka = confluent()
        try:
            yield
        except PenstockError:
            raise
        except kafka.KafkaException as error:
            told = error.args[0]
            mine = known(told) if known is not None else None
            raise (mine or self.in_words(told)) from error

    def in_words(self, error: Any) -> PenstockError:
        """The sentence for an error of Kafka's."""
        code, names = error.code(), confluent().KafkaError
        unreachable = (
            names._TRANSPORT,
            names._TIMED_OUT,
            names._ALL_BROKERS_DOWN,
            names._RESOLVE,
            names._NOENT,  # a partition has no leader
        )
        if code in unreachable:
            self.outages += 1
            why = f" ({self._last_error})" if self._last_error else ""
            return EnvironmentProblem(
                f"Kafka at {self.servers} did not answer within {self.timeout_seconds:g} s{why}; check that it runs, "
                "that this host reaches it, and the servers' name."
            )
        if code in (names.INVALID_CONFIG, names._INVALID_ARG):
            return SpecError("config", error.str(), "was refused by Kafka", "mend the setting that it names")
        return EnvironmentProblem(
            f"Kafka at {self.servers} refused: {error.str()}; mend what it says, or ask who runs it."
        )

    def _note(self, error: Any) -> None:
        self._last_error = str(error.str())


def code_is(error: Any, *names: str) -> bool:
    """Whether one of Kafka's errors has one of these codes."""
    known = confluent().KafkaError
    return error.code() in [getattr(known, name) for name in names]
