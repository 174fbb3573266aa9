"""What only Spark's analyser knows to be wrong with a job: its function on frames without records, its columns, its cost.

Nothing runs. One job's problem does not hide another's.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from penstock.model.errors import SpecError
from penstock.model.status import Check, problem_of
from penstock.spark.frames import JobCode, analyse, check_stream
from penstock.spark.stateful import keeps_state


def analyse_jobs(session: SparkSession, codes: Sequence[JobCode]) -> list[Check]:
    """One finding for each job that is fine, and one for each problem or warning."""
    found: list[Check] = []
    for code in codes:
        name = f"job {code.spec.name}"
        try:
            frame = analyse(session.newSession(), code)
            check_stream(code, frame)
        except SpecError as error:
            found.append(problem_of(error if error.place else error.at(code.spec.place), name))
            continue
        stateful = keeps_state(frame)
        found.append(Check(name, "ok", _describe(code, frame, stateful), place=code.spec.place))
        found.extend(_warn(code, stateful))
    return found


def _describe(code: JobCode, frame: DataFrame, stateful: bool) -> str:
    outputs = ", ".join(output.label for output in code.spec.outputs)
    inputs = ", ".join(given.label for given in code.spec.inputs)
    return f"{inputs} -> {outputs}; {'keeps state' if stateful else 'stateless'}"


def _warn(code: JobCode, stateful: bool) -> list[Check]:
    spec, options = code.spec, code.spec.options
    name, found = f"job {spec.name}", []
    if len(spec.output_topics) > 1:
        cost = "and keeps each branch's state" if stateful else ""
        text = f"writes {len(spec.output_topics)} topics: every branch reads its input again {cost}".rstrip()
        found.append(
            Check(name, "warning", text + ".", "split it into jobs if that costs too much", spec.place)
        )
    if stateful and options.tasks > 1 and not _keyed(code):
        found.append(
            Check(
                name,
                "warning",
                f"keeps state in {options.tasks} tasks, each over its own partitions, and an input has no key: "
                "one key's records may meet different tasks.",
                "give the input topic a key, or set tasks=1",
                spec.place,
            )
        )
    return found


def _keyed(code: JobCode) -> bool:
    return all(code.topics[name].key is not None for name in code.spec.input_topics)
