"""Lays a project's settings over each other: defaults, profile, file, environment, command line. It starts nothing.

The file `penstock.toml` stands beside the pipeline. Order, later wins: built-in defaults, the profile's, the file, the
file's part for the profile, environment variables, the command line.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict

from penstock.app.layers import FILE, Given, read_environment, read_file, read_overrides
from penstock.app.sections import (
    SECTIONS,
    BusSettings,
    ExecutorSettings,
    ProjectSettings,
    SparkSettings,
    StoreSettings,
    split_pairs,
)
from penstock.authoring.options import ALIASES, read_job_options
from penstock.authoring.reading import build, friendly_name, nearest, read_fields
from penstock.model.errors import MissingError, SpecError
from penstock.model.jobs import JobOptions

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
JOB_SECTIONS = ("defaults", "jobs")
MAPS = (("spark", "conf"), ("bus", "client"))
"""Settings that hold settings of others, by their own names."""
_BUILT_IN: Mapping[str, tuple[Given, ...]] = {
    "embedded": (),
    "cluster": (
        Given(("bus", "kind"), "kafka", "profile cluster"),
        Given(("spark", "master"), "spark://localhost:7077", "profile cluster"),
    ),
}
"""What each profile sets by itself; any other profile starts like `embedded`."""


class Settings(BaseModel):
    """All settings of one project under one profile."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    """The project's: relative paths start here."""
    file: Path | None
    profile: str
    project: ProjectSettings
    bus: BusSettings
    store: StoreSettings
    spark: SparkSettings
    executors: ExecutorSettings
    defaults: Mapping[str, object]
    """Job options laid under every job's, as `authoring.options.read_job_options` gives them."""
    jobs: Mapping[str, Mapping[str, object]]
    """Job options laid over those of single jobs."""
    job_places: Mapping[str, str]
    """Where the newest of each job's options stands, for errors."""

    @property
    def place(self) -> str:
        """Where job options come from, for errors."""
        return str(self.file or FILE)

    @property
    def work(self) -> Path:
        return self.folder / self.store.folder

    @property
    def log_folder(self) -> Path:
        """Of the embedded log."""
        return self.work / "log"

    @property
    def runs_folder(self) -> Path:
        return self.work / "runs"

    @property
    def checkpoints(self) -> Path:
        """Apart by kind of topics: offsets of one kind mean nothing in the other."""
        return self.work / "checkpoints" / self.bus.kind

    def jar_paths(self) -> tuple[Path, ...]:
        """The jars that the settings name; MissingError when one is not there."""
        found: list[Path] = []
        for name in self.spark.jars:
            path = self.folder / name
            matches = sorted(path.parent.glob(path.name)) if re.search(r"[*?\[]", path.name) else [path]
            if not matches or not all(match.is_file() for match in matches):
                raise MissingError(
                    f"spark.jars names {name!r}, and there is no such file in {path.parent}; "
                    "`penstock kafka-jars DIR` fetches Kafka's connector."
                )
            found.extend(matches)
        return tuple(found)


def load_settings(
    folder: Path,
    profile: str | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Settings:
    """Settings of the project in `folder`; without a file, the defaults. SpecError names file, line, field, remedy."""
    folder = Path(folder).absolute()
    file = folder / FILE
    written = read_file(file) if file.is_file() else []
    spoken = [*read_environment(env or {}, (*SECTIONS, *JOB_SECTIONS)), *read_overrides(overrides or {})]
    common = [given for given in written if given.path[0] != "profiles"]
    own = _by_profile(written)
    name, place = _choose(profile, env or {}, [*common, *spoken])
    if name not in own and name not in _BUILT_IN:
        raise SpecError("profile", name, "is no profile", nearest(name, {*own, *_BUILT_IN}), place)
    for other in own:  # what is wrong in a profile shows before it is used
        _build(folder, file, other, [*_BUILT_IN.get(other, ()), *common, *own[other]])
    layers = [*_BUILT_IN.get(name, ()), *common, *own.get(name, ()), *spoken]
    return _build(folder, file, name, layers)


def _choose(profile: str | None, env: Mapping[str, str], given: Sequence[Given]) -> tuple[str, str]:
    """The profile's name, and who gave it."""
    if profile is not None:
        return profile, "--profile"
    if env.get("PENSTOCK_PROFILE"):
        return env["PENSTOCK_PROFILE"], "environment variable PENSTOCK_PROFILE"
    named = [each for each in given if each.path == ("project", "profile")]
    return (str(named[-1].value), named[-1].place) if named else ("embedded", "")


def _by_profile(written: Sequence[Given]) -> dict[str, list[Given]]:
    profiles: dict[str, list[Given]] = {}
    for given in written:
        if given.path[0] != "profiles":
            continue
        if len(given.path) < 3:
            raise SpecError(
                ".".join(given.path),
                given.value,
                "is not a section",
                "write [profiles.NAME.spark]",
                given.place,
            )
        if given.path[2] not in (*SECTIONS, *JOB_SECTIONS):
            raise SpecError(
                given.name, given.value, "is no setting", nearest(given.path[2], SECTIONS), given.place
            )
        if given.path[2] == "project":
            raise SpecError(
                given.name, given.value, "cannot differ by profile", "write it under [project]", given.place
            )
        profiles.setdefault(given.path[1], []).append(Given(given.path[2:], given.value, given.place))
    return profiles


def _build(folder: Path, file: Path, profile: str, layers: Sequence[Given]) -> Settings:
    fields: dict[str, dict[str, object]] = {section: {} for section in SECTIONS}
    origins: dict[str, Given] = {}
    for given in layers:
        if given.path[0] not in (*SECTIONS, *JOB_SECTIONS):
            raise SpecError(
                given.name, given.value, "is no setting", _nearest_setting(given.name), given.place
            )
        if given.path[0] in SECTIONS:
            _lay(fields[given.path[0]], given, origins)
    defaults, jobs = _job_layers(layers)
    try:
        sections = {
            section: build(model, fields[section], where=f"{section}.") for section, model in SECTIONS.items()
        }
        settings = Settings.model_validate(
            {
                "folder": folder,
                "file": file if file.is_file() else None,
                "profile": profile,
                **sections,
                "defaults": defaults,
                "jobs": jobs,
                "job_places": {
                    _job_option(given)[0]: given.place for given in layers if given.path[0] == "jobs"
                },
            }
        )
        _check_together(settings)
    except SpecError as error:
        origin = _origin_of(error.field, origins)
        if origin is None:
            raise
        raise SpecError(error.field, origin.value, error.problem, error.remedy, origin.place) from None
    return settings


def _origin_of(field: str, origins: Mapping[str, Given]) -> Given | None:
    """Who gave a field, or what it is an item of: `spark.jars.0` stands where `spark.jars` does."""
    while field and field not in origins:
        field = field.rpartition(".")[0]
    return origins.get(field)


def _lay(fields: dict[str, object], given: Given, origins: dict[str, Given]) -> None:
    """One value over what earlier layers gave its section."""
    section, model = given.path[0], SECTIONS[given.path[0]]
    if len(given.path) < 2:
        shape = f"[{section}]" if _in_file(given) else f"{section}.NAME=VALUE, like spark.slots=8"
        raise SpecError(section, given.value, "names a section alone", f"write {shape}", given.place)
    if len(given.path) > 2 and (section, given.path[1]) in MAPS:
        read: dict[str, object] = {given.path[1]: {".".join(given.path[2:]): given.value}}
    elif len(given.path) > 2:
        known = [friendly_name(name) for name in model.model_fields]
        raise SpecError(given.name, given.value, "is no setting", nearest(given.path[1], known), given.place)
    else:
        read = read_fields(model, {given.path[1]: given.value}, place=given.place, where=f"{section}.")
    for name, value in read.items():
        before = fields.get(name)
        if (section, name) in MAPS:
            value = {**_pairs(before), **_pairs(_split(given, value))}
        fields[name] = value
        origins[f"{section}.{friendly_name(name)}"] = given


def _split(given: Given, value: object) -> object:
    try:
        return split_pairs(value)
    except ValueError as error:
        problem, _, remedy = str(error).partition("; ")
        raise SpecError(given.name, given.value, problem, remedy, given.place) from None


def _pairs(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _job_layers(layers: Iterable[Given]) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """[defaults] and [jobs.NAME] as fields of `JobOptions`, each value checked by itself."""
    defaults: dict[str, object] = {}
    jobs: dict[str, dict[str, object]] = {}
    for given in layers:
        if given.path[0] not in JOB_SECTIONS:
            continue
        name, option = _job_option(given)
        where = f"{given.path[0]}.{name}." if name else f"{given.path[0]}."
        value = {option[1]: given.value} if len(option) == 2 else given.value
        fields = read_job_options({option[0]: value}, given.place, where)
        into = jobs.setdefault(name, {}) if name else defaults
        for field, held in _checked(fields, given.place, where).items():
            into[field] = {**_pairs(into.get(field)), **_pairs(held)} if field == "scaling" else held
    return defaults, jobs


def _job_option(given: Given) -> tuple[str, tuple[str, ...]]:
    """(job or "", option with its knob): a job's name may hold dots, so it is all between `jobs` and the option."""
    path = given.path[1:]
    option = path[-2:] if len(path) > 1 and path[-2] == "scaling" else path[-1:]
    name = ".".join(path[: len(path) - len(option)])
    if not option or bool(name) != (given.path[0] == "jobs"):
        table, example = (
            ("defaults", "defaults.") if given.path[0] == "defaults" else ("jobs.NAME", "jobs.count.")
        )
        shape = f"it under [{table}]" if _in_file(given) else f"{table}.OPTION, like {example}max_threads=8"
        raise SpecError(given.name, given.value, "is not an option of a job", f"write {shape}", given.place)
    return name, option


def _checked(fields: Mapping[str, object], place: str, where: str) -> dict[str, object]:
    """Values of their kinds; whether limits fit each other is known when all layers are together."""
    room = {f"max_{n}": fields[f"min_{n}"] for n in ("threads", "tasks") if f"min_{n}" in fields}
    options = build(JobOptions, {**room, **fields}, ALIASES, place, where)
    held = options.model_dump(exclude_unset=True)
    return {name: held[name] for name in fields}


def _check_together(settings: Settings) -> None:
    """The embedded log is files of this host: executors elsewhere cannot reach it."""
    if settings.bus.kind != "log" or settings.spark.local:
        return
    hosts = re.findall(r"(?:spark://|,)([^:,]+):", settings.spark.master)
    if not hosts or any(host not in (*_LOOPBACK, socket.gethostname()) for host in hosts):
        raise SpecError(
            "bus.kind",
            settings.bus.kind,
            f"keeps topics in files of this host, which executors of {settings.spark.master} cannot reach",
            'set bus.kind = "kafka", or spark.master = "local"',
        )


def _in_file(given: Given) -> bool:
    return not given.place.startswith(("--set", "environment variable"))


def _nearest_setting(name: str) -> str:
    """The nearest of all names, or the sections there are."""
    near = nearest(name, _all_names())
    return near if near.startswith("the nearest") else f"sections are {', '.join((*SECTIONS, *JOB_SECTIONS))}"


def _all_names() -> list[str]:
    """Every setting by its dotted name."""
    names = [
        f"{section}.{friendly_name(name)}"
        for section, model in SECTIONS.items()
        for name in model.model_fields
    ]
    return [*names, *(f"defaults.{friendly_name(name, ALIASES)}" for name in JobOptions.model_fields)]
