"""Kafka's client settings for its two clients: Spark's (Java) and the tools' (librdkafka).

Both take Kafka's names, but for a user's name and password: Java wants them inside one login line. A value `env:NAME` is
read from the environment, so that no secret stands in a file.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.errors import SpecError

_USER, _PASSWORD, _MECHANISM = "sasl.username", "sasl.password", "sasl.mechanism"
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def client_settings(
    given: Mapping[str, str], env: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """(for Java, for librdkafka); a SpecError names a setting that cannot be used."""
    plain = {name: _resolve(name, value, env) for name, value in given.items()}
    if _USER not in plain and _PASSWORD not in plain:
        return dict(plain), dict(plain)
    mechanism = plain.get(_MECHANISM, "PLAIN")
    if mechanism not in _LOGINS:
        raise SpecError(
            f"bus.client.{_MECHANISM}",
            mechanism,
            f"does not go with {_USER}",
            f"choose one of {', '.join(_LOGINS)}, or give sasl.jaas.config yourself",
        )
    login = (
        f"{_LOGINS[mechanism]} required username={_quoted(plain.get(_USER, ''))} "
        f"password={_quoted(plain.get(_PASSWORD, ''))};"
    )
    java = {name: value for name, value in plain.items() if name not in (_USER, _PASSWORD)}
    return {_MECHANISM: mechanism, "sasl.jaas.config": login, **java}, {_MECHANISM: mechanism, **plain}


def _resolve(name: str, value: str, env: Mapping[str, str]) -> str:
    if not value.startswith("env:"):
        return value
    variable = value.removeprefix("env:")
    if variable not in env:
        raise SpecError(
            f"bus.client.{name}",
            value,
            "names a variable that is not set",
            f"set {variable} in the environment",
        )
    return env[variable]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
