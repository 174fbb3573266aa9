"""Kafka's client settings for its two clients: Spark's (Java) and the tools' (librdkafka).

Both take Kafka's names, but not all: Java wants a user's name and password inside one login line, and librdkafka refuses
what only Java knows, so that is left out for it where the setting that says the same to it is given too. A value
`env:NAME` is read from the environment, so that no secret stands in a file.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.errors import SpecError

_USER, _PASSWORD, _MECHANISM = "sasl.username", "sasl.password", "sasl.mechanism"
_LOGIN_LINE = "sasl.jaas.config"
_COUNTERPARTS = {
    _LOGIN_LINE: (
        ((_USER, _PASSWORD), ("sasl.kerberos.principal",), ("sasl.oauthbearer.method",)),
        f"give {_USER} and {_PASSWORD} instead (with Kerberos sasl.kerberos.principal too), which both clients know",
    ),
    "ssl.truststore.": (
        (("ssl.ca.location",), ("ssl.ca.pem",)),
        "give ssl.ca.location too: the same certificates as a PEM file",
    ),
}
"""Names that only Java knows, or how they begin: what says the same to librdkafka, each way in full, and the remedy."""
_ONLY_JAVA = (
    "sasl.login.",
    "sasl.client.callback.handler.class",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "ssl.provider",
    "security.providers",
    "default.api.timeout.ms",
    "fetch.max.wait.ms",
    "buffer.memory",
    "max.request.size",
    "receive.buffer.bytes",
    "send.buffer.bytes",
)
"""Those that librdkafka does without."""
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
    tools = _known_to_tools(plain)
    if _LOGIN_LINE in plain or (_USER not in plain and _PASSWORD not in plain):
        return {name: value for name, value in plain.items() if name not in (_USER, _PASSWORD)}, tools
    mechanism = plain.get(_MECHANISM, "PLAIN")
    if mechanism not in _LOGINS:
        raise SpecError(
            f"bus.client.{_MECHANISM}",
            mechanism,
            f"does not go with {_USER}",
            f"choose one of {', '.join(_LOGINS)}, or give {_LOGIN_LINE} too, for Spark",
        )
    login = (
        f"{_LOGINS[mechanism]} required username={_quoted(plain.get(_USER, ''))} "
        f"password={_quoted(plain.get(_PASSWORD, ''))};"
    )
    java = {name: value for name, value in plain.items() if name not in (_USER, _PASSWORD)}
    return {_MECHANISM: mechanism, _LOGIN_LINE: login, **java}, {_MECHANISM: mechanism, **tools}


def _known_to_tools(plain: Mapping[str, str]) -> dict[str, str]:
    """Without what only Java knows; a SpecError where librdkafka would be left without it."""
    for begin, (ways, remedy) in _COUNTERPARTS.items():
        found = next((name for name in plain if name.startswith(begin)), None)
        if found is not None and not any(all(name in plain for name in way) for way in ways):
            shown = (
                "..." if found == _LOGIN_LINE or "password" in found else plain[found]
            )  # no secret is shown
            raise SpecError(
                f"bus.client.{found}", shown, "is known to Spark's client and not to the tools'", remedy
            )
    left_out = (*_COUNTERPARTS, *_ONLY_JAVA)
    return {name: value for name, value in plain.items() if not name.startswith(left_out)}


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
