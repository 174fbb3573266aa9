"""Runs a pipeline file and freezes what it declared.

Rules: no Spark, no settings, nothing kept between loads. What is wrong in the owner's file is said with the
owner's line, not ours. The file's module, and modules beside it that it imports, exist only on this host:
whoever ships functions to other processes must pickle them by value (`Pipeline.modules`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from penstock.authoring.options import layer_job_options
from penstock.authoring.reading import nearest
from penstock.authoring.registry import JobFunction, Registry, collecting, format_place
from penstock.model.errors import MissingError, PenstockError, SpecError
from penstock.model.jobs import JobOptions, JobSpec, PipelineSpec, SinkSpec, SourceSpec
from penstock.model.topics import TopicSpec

PIPELINE_FILE = "pipeline.py"
_SIBLINGS = "__penstock_siblings__"
_NO_SESSION = "SESSION_OR_CONTEXT_NOT_EXISTS"
_NO_SESSION_REMEDY = (
    "a file is loaded before Spark starts: give a UDF's type as an object, like udf(DoubleType()), "
    "and use Spark only inside the jobs' functions"
)
_HAS_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_Spec = TypeVar("_Spec", SourceSpec, SinkSpec)
_PREFIXES = tuple({Path(sys.prefix), Path(sys.base_prefix)})


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A loaded pipeline: what it is, and the owner's code for it."""

    spec: PipelineSpec
    functions: Mapping[str, JobFunction]
    """Per job with a function: call it with one frame per input, in order."""
    foreach: Mapping[str, JobFunction]
    """Per job with a foreach_batch sink: fn(frame, batch_id)."""
    folder: Path
    """Where the file stands: settings and the work folder are beside it."""
    module: ModuleType
    modules: tuple[ModuleType, ...]
    """`module`, then the modules of its folder that it imported: all to be pickled by value."""

    def with_options(self, options: Mapping[str, JobOptions]) -> Pipeline:
        """The same pipeline with other options for some jobs."""
        jobs = tuple(
            job.model_copy(update={"options": options.get(job.name, job.options)}) for job in self.spec.jobs
        )
        return replace(self, spec=self.spec.model_copy(update={"jobs": jobs}))

    def tuned(
        self,
        under: Mapping[str, object],
        over: Mapping[str, Mapping[str, object]],
        place: str = "",
        places: Mapping[str, str] | None = None,
    ) -> Pipeline:
        """Options laid under every job's, and over those of single jobs, as `read_job_options` gives them.

        `places` says where those of a job stand, where that is known better than `place`.
        """
        at = places or {}
        names = [job.name for job in self.spec.jobs]
        for name in over:
            if name not in names:
                raise SpecError(
                    "jobs", name, "is no job of this pipeline", nearest(name, names), at.get(name, place)
                )
        return self.with_options(
            {
                job.name: layer_job_options(job.options, under, over.get(job.name), at.get(job.name, place))
                for job in self.spec.jobs
            }
        )


def find_pipeline(path: Path) -> Path:
    """The file meant by a path: itself, or `pipeline.py` in a folder."""
    file = path / PIPELINE_FILE if path.is_dir() else path
    if not file.is_file():
        hint = f"a folder needs a {PIPELINE_FILE}" if path.is_dir() else "name a .py file or a folder"
        raise MissingError(f"There is no pipeline at {str(path)!r}: {hint}; `penstock init DIR` writes one.")
    if file.suffix != ".py":
        raise SpecError("pipeline", str(path), "is not a Python file", "name a .py file or a folder")
    return file.resolve()


def load_pipeline(path: str | Path) -> Pipeline:
    """Run a pipeline file (or the `pipeline.py` of a folder) and return what it declared, not yet checked."""
    file = find_pipeline(Path(path))
    with _folder_importable(file.parent), collecting() as registry:
        module = _run(file)
    if not registry.jobs:
        raise SpecError(
            "pipeline", file.name, "declares no job", "write one with @job", format_place(str(file), 1)
        )
    spec = PipelineSpec(
        name=_pipeline_name(file),
        topics=_topics(registry),
        jobs=tuple(_anchored(entry.spec, file.parent) for entry in registry.jobs),
    )
    return Pipeline(
        spec=spec,
        functions={e.spec.name: e.function for e in registry.jobs if e.function is not None},
        foreach={e.spec.name: e.foreach for e in registry.jobs if e.foreach is not None},
        folder=file.parent,
        module=module,
        modules=(module, *(m for m in _modules_in(file.parent) if m is not module)),
    )


def _run(file: Path) -> ModuleType:
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"penstock_pipeline_{re.sub(r'[^0-9A-Za-z]', '_', file.stem)}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _forget_earlier_load(name)
    before = set(sys.modules)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except PenstockError:
        raise
    except SyntaxError as error:
        place = format_place(error.filename or str(file), error.lineno or 1)
        raise SpecError(
            "pipeline", file.name, f"does not parse: {error.msg}", "mend this line", place
        ) from None
    except (Exception, SystemExit) as error:
        frames = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).is_relative_to(file.parent)
        ]
        place = format_place(frames[-1].filename, frames[-1].lineno or 1) if frames else str(file)
        problem = f"raises {type(error).__name__} while it loads: {_first_line(error)}".strip().rstrip(":. ")
        remedy = _NO_SESSION_REMEDY if _NO_SESSION in str(error) else "mend this line"
        raise SpecError("pipeline", file.name, problem, remedy, place) from error
    siblings = [m.__name__ for m in _modules_in(file.parent) if m.__name__ not in before and m is not module]
    setattr(module, _SIBLINGS, tuple(siblings))
    return module


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")


def _topics(registry: Registry) -> tuple[TopicSpec, ...]:
    """Declared topics, and those that jobs were given as objects without a declaration in this load."""
    topics = list(registry.topics)
    for entry in registry.jobs:
        topics.extend(spec for spec in entry.topics if spec not in topics)
    return tuple(topics)


def _anchored(job: JobSpec, folder: Path) -> JobSpec:
    """Relative paths of its sources and sinks begin at the pipeline's folder, wherever the command is typed."""
    inputs = tuple(
        each if each.source is None else each.model_copy(update={"source": _with_path(each.source, folder)})
        for each in job.inputs
    )
    outputs = tuple(
        each if each.sink is None else each.model_copy(update={"sink": _with_path(each.sink, folder)})
        for each in job.outputs
    )
    return job.model_copy(update={"inputs": inputs, "outputs": outputs})


def _with_path(spec: _Spec, folder: Path) -> _Spec:
    options = {
        name: str(folder / value) if name.lower() == "path" and not _HAS_SCHEME.match(value) else value
        for name, value in spec.options.items()
    }
    return spec.model_copy(update={"options": options})


def _pipeline_name(file: Path) -> str:
    name = file.parent.name if file.name == PIPELINE_FILE else file.stem
    name = re.sub(r"[^0-9A-Za-z_.-]+", "-", name).strip("-.")[:100]
    return name if name[:1].isalpha() else f"pipeline-{name}".rstrip("-")


@contextmanager
def _folder_importable(folder: Path) -> Generator[None]:
    """The file's folder first on the import path while it loads."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


def _forget_earlier_load(name: str) -> None:
    """Drop what an earlier load of the same file imported from its folder, so that it is read afresh."""
    earlier = sys.modules.pop(name, None)
    for sibling in getattr(earlier, _SIBLINGS, ()):
        sys.modules.pop(sibling, None)


def _modules_in(folder: Path) -> list[ModuleType]:
    """Loaded modules of the owner's: in the folder, not of an installation that happens to lie inside it."""
    found: list[ModuleType] = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or module.__name__.split(".")[0] in ("penstock", "__main__"):
            continue
        path = Path(file)
        installed = "site-packages" in path.parts or any(path.is_relative_to(p) for p in _PREFIXES)
        if path.is_relative_to(folder) and not installed:
            found.append(module)
    return found
