"""What Spark's own file sink has noted at its path, which outlives our checkpoints.

The sink skips every batch whose number is not above the newest that it noted there (`_spark_metadata`), without a word:
a query that begins again with batch 0 would lose its rows until it has counted that far.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.model.jobs import SinkSpec
from penstock.spark.session import jvm

NOTES = "_spark_metadata"


def noted_path(session: SparkSession, sink: SinkSpec) -> str:
    """The sink's path when batches are noted there, else an empty string."""
    path = next((value for name, value in sink.options.items() if name.lower() == "path"), "")
    if sink.function or not path:
        return ""
    notes = jvm(session).org.apache.hadoop.fs.Path(path, NOTES)
    files = notes.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    if not files.exists(notes):
        return ""
    return path if any(not s.getPath().getName().startswith(".") for s in files.listStatus(notes)) else ""
