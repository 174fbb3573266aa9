"""Columns to records and back, by a topic's codec. A record that does not parse leaves the stream here, and is kept.

json: an object with the topic's columns (absent ones are null); string and raw: one column that is the value itself;
avro where the session has spark-avro. The key is the key column as text, for every codec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it
from pyspark.sql.types import StringType, StructField, StructType

from penstock.model.errors import SpecError
from penstock.model.topics import TopicSpec

BAD, PARSED = "_penstock_bad", "_penstock_parsed"

Reject = Callable[[Column], Column]
"""A filter that hands a record over as a dead letter, given the reason; false."""


def columns_of(topic: TopicSpec) -> StructType:
    """A topic's columns as Spark types; a `SpecError` says what is wrong with the text."""
    try:
        schema = StructType.fromDDL(topic.columns)
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SpecError(
            f"topic {topic.name!r} schema",
            topic.columns,
            f"is not Spark DDL ({first})",
            'write "word string, n long"',
        ) from error
    return schema


def decode(frame: DataFrame, topic: TopicSpec, *, metadata: bool, reject: Reject) -> DataFrame:
    """A topic's records as its columns (and metadata columns where asked), with its watermark."""
    schema = columns_of(topic)
    _check_avro(frame.sparkSession, topic)
    if topic.codec in ("string", "raw"):
        checked, columns = _take_value(frame, topic, schema, reject)
    else:
        checked, columns = _parse(frame, topic, schema, reject)
    if metadata:
        columns += [
            F.col("key").alias("_key"),
            F.col("partition").alias("_partition"),
            F.col("offset").alias("_offset"),
            F.timestamp_millis(F.col("timestamp")).alias("_timestamp"),
            F.col("headers").alias("_headers"),
        ]
    decoded = checked.select(*columns)
    if topic.event_time is not None:
        decoded = decoded.withWatermark(topic.event_time, f"{topic.watermark_seconds or 0.0} seconds")
    return decoded


def _kept(bad: Column, reject: Reject, reason: Column) -> Column:
    return F.when(bad, reject(reason)).otherwise(F.lit(True))


def _take_value(
    frame: DataFrame, topic: TopicSpec, schema: StructType, reject: Reject
) -> tuple[DataFrame, list[Column]]:
    """Records with a value, and the column that it is: nothing is made of a row that the job does not ask for."""
    value = F.col("value")
    column = value.cast("string") if topic.codec == "string" else value
    checked = frame.where(_kept(value.isNull(), reject, F.lit("value is null")))
    return checked, [column.alias(schema.fields[0].name)]


def _parse(
    frame: DataFrame, topic: TopicSpec, schema: StructType, reject: Reject
) -> tuple[DataFrame, list[Column]]:
    """Records that parse, and the columns in them."""
    session, value, names = frame.sparkSession, F.col("value"), ", ".join(schema.fieldNames())
    if topic.codec == "json":
        wide = StructType([*schema.fields, StructField(BAD, StringType())])
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD}
        parsed = F.from_json(value.cast("string"), wide, options)
        bad = F.col(PARSED).isNull() | F.col(PARSED).getField(BAD).isNotNull()
        reason = F.when(value.isNull(), F.lit("value is null")).otherwise(
            F.lit(f"value is not a JSON object with the columns {names} of types {schema.simpleString()}")
        )
    else:
        parsed, bad = _avro(session, value, schema), _bad_avro(session, value, schema)
        reason = F.lit(f"value is not Avro with the columns {names}")
    kept = [F.col(c) for c in ("key", "value", "timestamp", "headers", "partition", "offset")]
    checked = frame.select(*kept, parsed.alias(PARSED)).where(_kept(bad, reject, reason))
    return checked, [F.col(PARSED).getField(field.name).alias(field.name) for field in schema.fields]


def _check_avro(session: SparkSession, topic: TopicSpec) -> None:
    """Avro needs a jar that Spark doesn't bring: without it, nothing but py4j's riddles would be said."""
    if topic.codec == "avro" and isinstance(_avro_room(session).AvroDataToCatalyst, JavaPackage):
        raise SpecError(
            f"topic {topic.name!r} codec",
            topic.codec,
            "needs Spark's Avro module, which is not in this session",
            "name org.apache.spark:spark-avro_2.13:<your Spark's version> in spark.packages, or use codec json",
            topic.place,
        )


def _avro_room(session: SparkSession) -> Any:
    return session.sparkContext._jvm.org.apache.spark.sql.avro


def _avro(session: SparkSession, value: Column, schema: StructType) -> Column:
    from pyspark.sql.avro.functions import from_avro

    return from_avro(value, _avro_schema(session, schema), {"mode": "PERMISSIVE"})


def _bad_avro(session: SparkSession, value: Column, schema: StructType) -> Column:
    """Spark makes a row of nulls of what it cannot read: bad unless the value is what such a row is written as."""
    from pyspark.sql.avro.functions import to_avro

    nulls = F.struct(*[F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields])
    empty = F.lit(True)
    for field in schema.fields:
        empty = empty & F.col(PARSED).getField(field.name).isNull()
    written = to_avro(nulls, _avro_schema(session, schema))
    return F.col(PARSED).isNull() | (empty & ~value.eqNullSafe(written))


def _avro_schema(session: SparkSession, schema: StructType) -> str:
    jvm_schema = session._jsparkSession.parseDataType(schema.json())
    return _avro_room(session).SchemaConverters.toAvroType(jvm_schema, False, "record", "penstock").toString()


def encode(frame: DataFrame, topic: TopicSpec, ordinal: int, job: str, place: str) -> DataFrame:
    """A job's result as records of one of its outputs: topic (its ordinal), key, value, timestamp (ms)."""
    schema = columns_of(topic)
    _check_avro(frame.sparkSession, topic)
    check_output(frame.schema, schema, topic, job, place)
    columns = [F.col(f"`{f.name}`").cast(f.dataType).alias(f.name) for f in schema.fields]
    if topic.codec == "json":
        value = F.to_json(F.struct(*columns)).cast("binary")
    elif topic.codec == "avro":
        from pyspark.sql.avro.functions import to_avro

        value = to_avro(F.struct(*columns), _avro_schema(frame.sparkSession, schema))
    elif topic.codec == "string":
        value = columns[0].cast("binary")
    else:
        value = columns[0]
    key = F.lit(None) if topic.key is None else F.col(f"`{topic.key}`").cast("string")
    time = (
        F.lit(None)
        if topic.event_time is None
        else F.unix_millis(F.col(f"`{topic.event_time}`").cast("timestamp"))
    )
    return frame.select(
        F.lit(ordinal).alias("topic"),
        key.cast("binary").alias("key"),
        value.alias("value"),
        time.cast("long").alias("timestamp"),
    )


def check_output(actual: StructType, wanted: StructType, topic: TopicSpec, job: str, place: str) -> None:
    """Refuse a result whose columns are not the topic's: missing, extra, or of a type that does not fit."""
    have = {field.name: field.dataType for field in actual.fields}
    for field in wanted.fields:
        if field.name not in have:
            raise SpecError(
                f"job {job!r} output {topic.name!r}",
                ", ".join(have),
                f"lacks the column {field.name!r} of the topic",
                f"select it, or change the topic's schema ({topic.columns})",
                place,
            )
        got = have.pop(field.name)
        if got.simpleString() != field.dataType.simpleString() and not _widens(
            got.simpleString(), field.dataType.simpleString()
        ):
            raise SpecError(
                f"job {job!r} output {topic.name!r} column {field.name!r}",
                got.simpleString(),
                f"is not the topic's {field.dataType.simpleString()}",
                f"cast it, or change the topic's schema ({topic.columns})",
                place,
            )
    if have:
        extra = next(iter(have))
        raise SpecError(
            f"job {job!r} output {topic.name!r}",
            extra,
            "is a column that the topic does not have",
            f"drop it, or add it to the topic's schema ({topic.columns})",
            place,
        )


_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "float", "double"},
    "smallint": {"int", "bigint", "float", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
    "void": {"string", "int", "bigint", "double", "float", "boolean", "binary", "timestamp", "date"},
}


def _widens(got: str, wanted: str) -> bool:
    """A cast that loses nothing."""
    return wanted in _WIDER.get(got, set()) or (got.startswith("struct") and wanted.startswith("struct"))
