"""One small stream as a plain Spark application of its own: `python -m penstock.spark.trials.small_app FOLDER`.

Spark's defaults, all of them, in a local master of one thread: rows come at 10 a second, every 5 seconds they go to
Parquet files. It says when it runs, and when its input ends how long its batches took; then it ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from penstock.spark.trials.plain import batches_of

ROWS_PER_SECOND = 10
INTERVAL = "5 seconds"


def main(folder: Path) -> None:
    """Run until the input ends."""
    session = SparkSession.builder.master("local[1]").appName("small").getOrCreate()
    rows = session.readStream.format("rate").option("rowsPerSecond", ROWS_PER_SECOND).load()
    writer = rows.selectExpr("upper(cast(value as string)) as line").writeStream.format("parquet")
    writer = writer.option("path", str(folder / "out")).option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    query = writer.trigger(processingTime=INTERVAL).start()
    print(json.dumps({"running": True}), flush=True)
    sys.stdin.read()
    seconds = [b.seconds for b in batches_of(query)][2:]
    print(json.dumps({"batch_seconds": median(seconds) if seconds else None}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
