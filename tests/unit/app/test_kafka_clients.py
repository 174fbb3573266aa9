"""One set of client settings for two clients that want a login written differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.app.kafka_clients import client_settings
from penstock.app.settings import load_settings
from penstock.model.errors import SpecError


def test_without_a_login_both_get_the_same() -> None:
    given = {"security.protocol": "SSL"}
    assert client_settings(given, {}) == (given, given)


def test_a_login_is_one_line_for_java_and_its_password_comes_from_the_environment() -> None:
    given = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "env:SECRET"}
    java, tools = client_settings(given, {"SECRET": 'a"b\\'})
    assert java == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" password="a\\"b\\\\";',
    }
    assert tools == {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": 'a"b\\'}


def test_what_only_java_knows_is_left_out_for_the_tools() -> None:
    both = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": "ca.pem"}
    java_only = {
        "sasl.jaas.config": "mine;",
        "ssl.truststore.location": "trust.jks",
        "ssl.truststore.password": "env:TRUST",
        "ssl.keystore.type": "PKCS12",
        "max.request.size": "1000000",
    }
    login = {"sasl.username": "u", "sasl.password": "p"}
    java, tools = client_settings({**both, **java_only, **login}, {"TRUST": "t"})
    assert java == {**both, **java_only, "ssl.truststore.password": "t"}
    assert tools == {**both, **login}


def test_a_login_line_goes_with_a_mechanism_that_has_no_password() -> None:
    kerberos = {"sasl.mechanism": "GSSAPI", "sasl.kerberos.principal": "me@HERE"}
    java, tools = client_settings({**kerberos, "sasl.jaas.config": "mine;"}, {})
    assert java["sasl.jaas.config"] == "mine;" and tools == kerberos


def test_the_tools_client_takes_what_is_left() -> None:
    kafka = pytest.importorskip("confluent_kafka")
    given = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x;", "sasl.username": "u", "sasl.password": "p"}
    _, tools = client_settings({**given, "sasl.login.class": "a.B", "ssl.enabled.protocols": "TLSv1.3"}, {})
    kafka.Consumer({"group.id": "g", "bootstrap.servers": "127.0.0.1:1", "log_level": 0, **tools}).close()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"sasl.jaas.config": 'X required password="secret";'},
            r"^bus\.client\.sasl\.jaas\.config = '\.\.\.' .*sasl\.username and sasl\.password",
        ),
        ({"ssl.truststore.location": "t.jks"}, r"ssl\.truststore\.location = 't\.jks' .*ssl\.ca\.location"),
        ({"sasl.username": "u", "sasl.mechanism": "GSSAPI"}, "does not go with sasl.username"),
        ({"sasl.username": "u", "sasl.password": "env:NOWHERE"}, "set NOWHERE in the environment"),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        client_settings(given, {})


def test_they_stand_in_the_project_file_by_kafkas_names(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        '[bus.client]\n"security.protocol" = "SASL_SSL"\nsasl.username = "u"\n'
    )
    settings = load_settings(tmp_path, overrides={"bus.client.sasl.username": "v"})
    assert settings.bus.client == {"security.protocol": "SASL_SSL", "sasl.username": "v"}
