"""Writes a new project that works as it is: a pipeline with a function of the owner's own, settings, a page to read.

Settings are printed from the models, so that the file never says what the program no longer does. Nothing that is
there is overwritten, and nothing is left half-written.
"""

from __future__ import annotations

import re
import textwrap
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from penstock.app.layers import FILE
from penstock.app.sections import SECTIONS
from penstock.authoring.loader import PIPELINE_FILE
from penstock.authoring.options import ALIASES
from penstock.authoring.reading import friendly_name
from penstock.model.errors import EnvironmentProblem, SpecError
from penstock.model.jobs import JobOptions
from penstock.model.units import format_bytes

PIPELINE = '''"""Rates opinions: a function of your own scores each text, and a second job keeps the mean of each product."""

import time

from pyspark.sql.functions import avg, count, udf
from pyspark.sql.types import DoubleType

from penstock import job, topic

opinions = topic("opinions", schema="product string, text string", key="product")
scores = topic("scores", schema="product string, score double", key="product")
ratings = topic("ratings", schema="product string, opinions long, rating double", key="product")

GOOD, BAD = {"good", "great", "love"}, {"bad", "poor", "hate"}


@udf(DoubleType())
def score(text):
    """Your own Python: from -1 (only bad words) to 1 (only good ones)."""
    time.sleep(0.004)  # as if it asked a service, so that one thread carries about 200 a second; take it out
    words = (text or "").lower().split()
    good, bad = sum(word in GOOD for word in words), sum(word in BAD for word in words)
    return (good - bad) / (good + bad) if good + bad else 0.0


@job(reads=opinions, writes=scores)
def rate(opinions):
    return opinions.select("product", score("text").alias("score"))


@job(reads=scores, writes=ratings, mode="update", slo_lag="30s")
def summarise(scores):
    return scores.groupBy("product").agg(count("*").alias("opinions"), avg("score").alias("rating"))
'''

README = """# {name}

Check it with `penstock validate .`, run it with `penstock run .`; Ctrl-C ends it at a clean edge.
More work than one thread can do, from another terminal: `penstock load opinions --rate 600/s --template '{template}'`.
Within a minute or so it takes the threads it needs: `penstock explain rate` says why, `penstock topic tail ratings` what.
The jobs are in `pipeline.py`; every setting, with its default, is in `penstock.toml`.
"""
IGNORED = """# What runs keep: topics, checkpoints, journals.
.penstock/
"""
TEMPLATE = '{"product": "p{int:1:20}", "text": "{word:good,bad,great,poor,fine} {word:love,hate,and}"}'
"""What `penstock load` makes of it is an opinion."""


def create_project(folder: Path) -> list[Path]:
    """The files written; SpecError when one of them is there already."""
    folder = Path(folder).absolute()
    name = re.sub(r"[^0-9A-Za-z_.-]+", "-", folder.name).strip("-.") or "project"
    contents = {
        folder / PIPELINE_FILE: PIPELINE,
        folder / FILE: settings_text(name),
        folder / "README.md": README.format(name=name, template=TEMPLATE),
    }
    if not (folder / ".gitignore").exists():
        contents[folder / ".gitignore"] = IGNORED
    there = [path.name for path in contents if path.exists()]
    if there:
        raise SpecError(
            "folder",
            str(folder),
            f"already has {', '.join(there)}",
            "choose an empty folder; nothing was written",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in contents.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        for path in contents:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise EnvironmentProblem(
            f"The project could not be written to {folder} ({error.strerror}); choose another folder or mend its rights."
        ) from error
    return list(contents)


def settings_text(name: str) -> str:
    """`penstock.toml` with every setting as a comment, its default and its reason."""
    parts = [
        "# Settings of this project. A line that begins with `#name =` shows that setting's default.\n"
        "# Environment variables (PENSTOCK_SPARK_SLOTS=8) and `--set spark.slots=8` win over this file.\n"
    ]
    for section, model in SECTIONS.items():
        parts.append(f"[{section}]\n{_fields(model, {'name': name} if section == 'project' else {})}")
    parts.append("# Options laid under every job's own.\n[defaults]\n" + _fields(JobOptions, {}))
    parts.append("# Options laid over those of one job.\n#[jobs.rate]\n#max_threads = 16\n")
    parts.append(
        "# A profile changes any section; choose one with --profile.\n"
        '#[profiles.cluster.bus]\n#kind = "kafka"\n#servers = "localhost:9092"\n'
        '#[profiles.cluster.spark]\n#master = "spark://localhost:7077"\n'
    )
    return "\n".join(parts)


def _fields(model: type[BaseModel], given: dict[str, str]) -> str:
    lines: list[str] = []
    for field, info in model.model_fields.items():
        name = friendly_name(field, ALIASES)
        lines += textwrap.wrap(info.description or "", 110, initial_indent="# ", subsequent_indent="# ")
        if name in given:
            lines.append(f'{name} = "{given[name]}"')
        else:
            lines.append(f"#{name} = {toml_default(field, info)}")
    return "\n".join(lines) + "\n"


def toml_default(field: str, info: FieldInfo) -> str:
    """A setting's default as it is written in the file."""
    value = info.get_default(call_default_factory=True)
    if value is None:
        return "(none)"
    if isinstance(value, BaseModel):
        inner = [f"{friendly_name(n)} = {toml_default(n, i)}" for n, i in type(value).model_fields.items()]
        return "{ " + ", ".join(each for each in inner if "(none)" not in each) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if "bytes" in field.split("_"):
        return f'"{format_bytes(value).replace(" ", "")}"'
    if field.endswith("_seconds"):
        return f'"{value:g}s"'
    if isinstance(value, tuple):
        return "[]"
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"' if isinstance(value, str) else str(value)
