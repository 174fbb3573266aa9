"""Settings: who wins over whom, and what is said about what cannot be used."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.app.sections import SECTIONS
from penstock.app.settings import Settings, load_settings
from penstock.authoring import load_pipeline
from penstock.authoring.reading import friendly_name
from penstock.model.errors import MissingError, SpecError


def load(
    folder: Path,
    text: str | None = None,
    profile: str | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Settings:
    if text is not None:
        (folder / "penstock.toml").write_text(text)
    return load_settings(folder, profile, env, overrides)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.file is None and settings.profile == "embedded"
    assert (settings.bus.kind, settings.spark.local, settings.spark.heap) == ("log", True, "1024m")
    assert settings.log_folder == tmp_path / ".penstock" / "log"
    assert settings.runs_folder == tmp_path / ".penstock" / "runs"


def test_the_cluster_profile_takes_kafka_and_a_master(tmp_path: Path) -> None:
    settings = load(tmp_path, profile="cluster")
    assert settings.bus.kind == "kafka" and settings.spark.master == "spark://localhost:7077"
    assert settings.checkpoints != load(tmp_path).checkpoints


def test_later_layers_win(tmp_path: Path) -> None:
    file = "[spark]\nslots = 2\n[profiles.big.spark]\nslots = 3\n"
    env, overrides = {"PENSTOCK_SPARK_SLOTS": "4"}, {"spark.slots": "5"}
    assert load(tmp_path).spark.slots == 32
    assert load(tmp_path, file).spark.slots == 2
    assert load(tmp_path, file, "big").spark.slots == 3
    assert load(tmp_path, file, "big", env).spark.slots == 4
    assert load(tmp_path, file, "big", env, overrides).spark.slots == 5


def test_the_profile_comes_from_the_command_then_the_environment_then_the_file(tmp_path: Path) -> None:
    file = '[project]\nprofile = "a"\n[profiles.a.spark]\nslots = 1\n[profiles.b.spark]\nslots = 2\n'
    assert load(tmp_path, file).profile == "a"
    assert load(tmp_path, file, env={"PENSTOCK_PROFILE": "b"}).spark.slots == 2
    assert load(tmp_path, file, "a", {"PENSTOCK_PROFILE": "b"}).spark.slots == 1


EACH = [
    ("project.name", "shop"),
    ("project.profile", "cluster"),
    ("bus.kind", "kafka"),
    ("bus.servers", "far:1234"),
    ("bus.durable", "false"),
    ("bus.client", "security.protocol=SSL"),
    ("bus.read_by", "spark"),
    ("store.folder", "elsewhere"),
    ("store.journal", "2m"),
    ("spark.master", "spark://localhost:1"),
    ("spark.slots", "7"),
    ("spark.heap", "2g"),
    ("spark.jars", "a.jar, b.jar"),
    ("spark.packages", "g:a:1"),
    ("spark.conf", "spark.a=1,spark.b=true"),
    ("executors.min", "2"),
    ("executors.max", "9"),
    ("executors.slots", "4"),
]


@pytest.mark.parametrize(("name", "value"), EACH)
def test_each_setting_changes_itself_alone_from_every_origin(tmp_path: Path, name: str, value: str) -> None:
    section, key = name.split(".")
    if name == "project.profile":  # a profile sets others, which is its work
        assert load(tmp_path, overrides={name: value}).profile == value
        return
    before = load(tmp_path).model_dump()
    after = load(tmp_path, overrides={name: value}).model_dump()
    changed = {(s, k) for s in SECTIONS for k in after[s] if after[s][k] != before[s][k]}
    assert [(s, friendly_name(k)) for s, k in changed] == [(section, key)]
    env = {f"PENSTOCK_{section.upper()}_{key.upper()}": value}
    assert load(tmp_path, env=env).model_dump() == after
    literal = value if value in ("true", "false") or value.isdigit() else f'"{value}"'
    from_file = load(tmp_path, f"[{section}]\n{key} = {literal}\n").model_dump()
    assert {s: from_file[s] for s in SECTIONS} == {s: after[s] for s in SECTIONS}


def test_every_setting_is_in_the_list_above() -> None:
    known = {
        f"{section}.{friendly_name(n)}" for section, model in SECTIONS.items() for n in model.model_fields
    }
    assert known == {name for name, _ in EACH}


def test_spark_conf_is_laid_key_by_key_with_dots_in_names(tmp_path: Path) -> None:
    file = '[spark.conf]\nspark.a.b = 1\n"spark.c" = true\n'
    conf = load(tmp_path, file, overrides={"spark.conf.spark.a.b": "2", "spark.conf.x": "y"}).spark.conf
    assert conf == {"spark.a.b": "2", "spark.c": "true", "x": "y"}


def test_job_options_are_laid_under_and_over(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(
        "from penstock import job\n"
        "@job(reads='a', writes='b', max_threads=9)\ndef one(a): return a\n"
        "@job(reads='b', writes='c')\ndef two(b): return b\n"
    )
    settings = load(
        tmp_path,
        '[defaults]\nmax_threads = 4\nslo_lag = "1m"\n[defaults.scaling]\nmin_change = 2\n[jobs.two]\ntrigger = "1s"\n',
        env={"PENSTOCK_JOBS__TWO__SCALING__MAX_INEFFECTIVE": "5"},
        overrides={"jobs.one.threads": "3"},
    )
    one, two = (
        job.options
        for job in load_pipeline(tmp_path).tuned(settings.defaults, settings.jobs, settings.place).spec.jobs
    )
    assert (one.max_threads, one.threads, one.slo_lag_seconds) == (9, 3, 60.0)
    assert (two.max_threads, two.interval_seconds) == (4, 1.0)
    assert (one.scaling.min_change, one.scaling.max_ineffective) == (2, 3)
    assert (two.scaling.min_change, two.scaling.max_ineffective) == (2, 5)


@pytest.mark.parametrize(
    ("text", "line", "field", "remedy"),
    [
        ("[spark]\n\nslot = 4\n", 3, "spark.slot", "'slots'"),
        ("[spark]\nslots = 0\n", 2, "spark.slots", "greater than or equal to 1"),
        ('[spark]\nslots = "many"\n', 2, "spark.slots", "integer"),
        ("[sprk]\nslots = 4\n", 2, "sprk.slots", "'spark.slots'"),
        ("spark = 4\n", 1, "spark", "[spark]"),
        ("[jobs]\nspark = 4\n", 2, "jobs.spark", "[jobs.NAME]"),
        ("[bus]\n# a comment\nkind = 'kafak'\n", 3, "bus.kind", "'log' or 'kafka'"),
        ("[bus]\nservers = 'broker'\n", 2, "bus.servers", "localhost:9092"),
        ("[bus.kind]\nx = 1\n", 2, "bus.kind.x", "'kind'"),
        ("[spark]\nheap = '1m'\n", 2, "spark.heap", "512m"),
        ("[spark]\nheap = 'big'\n", 2, "spark.heap", "64MB"),
        ("[spark]\nmaster = 'local[4]'\n", 2, "spark.master", "spark.slots"),
        ("[spark]\nmaster = 'cluster'\n", 2, "spark.master", "spark://host:port"),
        ("[spark]\npackages = ['a:b']\n", 2, "spark.packages", "group:artifact:version"),
        ("[executors]\nmin = 9\nmax = 2\n", 2, "executors.min", "lower the first"),
        ("[defaults]\nslo_lag = 'soon'\n", 2, "defaults.slo_lag", '"30s"'),
        ("[defaults]\nthread = 1\n", 2, "defaults.thread", "'threads'"),
        ("[defaults.scaling]\nactivation = 'mean'\n", 2, "defaults.scaling.activation", "'median' or 'max'"),
        ("[jobs.count]\nthreads = 'x'\n", 2, "jobs.count.threads", "integer"),
        ("[jobs.count]\nthreads = nan\n", 2, "jobs.count.threads", "finite number"),
        ("[profiles.big]\nslots = 1\n", 2, "profiles.big.slots", "known are"),
        ("[profiles]\nbig = 1\n", 2, "profiles.big", "[profiles.NAME.spark]"),
        ("[profiles.big.spark]\nslots = -1\n", 2, "spark.slots", "greater"),
        ("[profiles.big.project]\nname = 'x'\n", 2, "profiles.big.project.name", "[project]"),
        ("[project]\nprofile = 'bog'\n[profiles.big.spark]\nslots = 1\n", 2, "profile", "'big'"),
        ("[spark]\nslots = \n", 2, "penstock.toml", "mend this line"),
        ("[spark\n", 1, "penstock.toml", "mend this line"),
    ],
)
def test_a_wrong_file_is_said_with_line_field_and_remedy(
    tmp_path: Path, text: str, line: int, field: str, remedy: str
) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, text)
    assert caught.value.place == f"{tmp_path}/penstock.toml:{line}"
    assert caught.value.field == field
    assert remedy in caught.value.remedy
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="UTF-8"):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("overrides", "place", "remedy"),
    [
        ({"slots": "4"}, "--set slots", "'spark.slots'"),
        ({"spark.slots": "x"}, "--set spark.slots", "integer"),
        ({"spark": "x"}, "--set spark", "spark.NAME=VALUE"),
        ({"jobs": "x"}, "--set jobs", "jobs.NAME.OPTION"),
        ({"jobs.count": "x"}, "--set jobs.count", "like jobs.count.max_threads=8"),
        ({"defaults": "x"}, "--set defaults", "defaults.OPTION"),
        ({"defaults.a.b": "x"}, "--set defaults.a.b", "like defaults.max_threads=8"),
        ({"": "x"}, "--set ", "sections are project, bus"),
        ({"spark.conf": "a"}, "--set spark.conf", "name=value,other=value"),
        ({"store.folder": " "}, "--set store.folder", "like .penstock"),
        ({"project.profile": "bog"}, "--set project.profile", "known are"),
    ],
)
def test_a_wrong_override_is_said(tmp_path: Path, overrides: dict[str, str], place: str, remedy: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, overrides=overrides)
    assert caught.value.place == place and remedy in caught.value.remedy


def test_a_wrong_variable_is_said_and_those_of_others_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"PENSTOCK_SPARK_SLOT: .*'slots'"):
        load(tmp_path, env={"PENSTOCK_SPARK_SLOT": "4"})
    assert load(tmp_path, env={"PENSTOCK_SERVICE_HOST": "10.0.0.1", "SPARK_SLOTS": "x"}).spark.slots == 32


def test_files_of_this_host_are_refused_where_executors_are_elsewhere(tmp_path: Path) -> None:
    far = {"spark.master": "spark://far:7077"}
    with pytest.raises(SpecError, match="executors of spark://far:7077 cannot reach"):
        load(tmp_path, overrides=far)
    with pytest.raises(SpecError, match="cannot reach"):
        load(tmp_path, overrides={"spark.master": "yarn"})
    load(tmp_path, overrides={**far, "bus.kind": "kafka"})
    for host in ("localhost", "127.0.0.1", socket.gethostname()):
        assert load(tmp_path, overrides={"spark.master": f"spark://{host}:7077"}).bus.kind == "log"


def test_jars_may_be_patterns_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name in ("b.jar", "a.jar"):
        (tmp_path / "jars" / name).touch()
    settings = load(tmp_path, overrides={"spark.jars": "jars/*.jar"})
    assert [path.name for path in settings.jar_paths()] == ["a.jar", "b.jar"]
    for missing in ("jars/c.jar", "none/*.jar"):
        with pytest.raises(MissingError, match="no such file"):
            load(tmp_path, overrides={"spark.jars": missing}).jar_paths()


TOML_VALUES = st.one_of(
    st.integers(-5, 5000).map(str),
    st.floats(allow_nan=True).map(lambda f: f"{f:.3f}" if f == f and abs(f) < 1e9 else "nan"),
    st.booleans().map(lambda b: str(b).lower()),
    st.sampled_from(['""', '"x"', "[]", "[1]", '["a"]', "{}", "{ a = 1 }", "1979-05-27", '"1g"', '"local"']),
)


@given(
    st.sampled_from([*SECTIONS, "defaults", "jobs.a", "profiles.p.spark", "other"]),
    st.sampled_from(
        ["slots", "kind", "heap", "conf", "jars", "threads", "scaling", "min", "name", "servers", "zzz"]
    ),
    TOML_VALUES,
)
def test_any_value_is_taken_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, section: str, key: str, value: str
) -> None:
    folder = tmp_path_factory.mktemp("project")
    try:
        load(folder, f"[{section}]\n{key} = {value}\n")
    except SpecError as error:
        assert error.place and error.field and error.remedy
        assert "\n" not in str(error)
