"""Builds the jar that Spark loads, reproducibly, and notes the hash of the sources it was made from.

    python jvm/build.py            build src/penstock/spark/jars/penstock-spark.jar (needs a JDK and Maven)
    python jvm/build.py --check    exit 1 when the committed jar is older than its sources

Using the jar needs no JDK; a test calls `sources_hash` and compares it with the jar's own note.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JAR = HERE.parent / "src" / "penstock" / "spark" / "jars" / "penstock-spark.jar"
CONNECTOR = JAR.with_name("connector.xml")
"""Shipped in the package too: `penstock kafka-jars` fetches the same."""
NOTE = "META-INF/penstock-sources.sha256"
FIXED_TIME = (2020, 1, 1, 0, 0, 0)


def sources_hash() -> str:
    """One hash over names and contents of all Java sources and the connector's versions."""
    total = hashlib.sha256()
    for path in [*sorted((HERE / "src").rglob("*.java")), CONNECTOR]:
        total.update(path.relative_to(HERE.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def noted_hash(jar: Path = JAR) -> str:
    """The hash that the committed jar carries."""
    with zipfile.ZipFile(jar) as archive:
        return archive.read(NOTE).decode().strip()


def connector_jars(folder: Path) -> None:
    """The Kafka connector's jars, to compile against."""
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("jvm/build.py: mvn is not on the PATH; install Maven to build the jar.")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    subprocess.run([maven, "-q", "-B", "-f", str(CONNECTOR), *goal], check=True)


def build() -> None:
    """Compile against PySpark's own jars and the connector, then zip with fixed times."""
    import pyspark

    spark_jars = Path(pyspark.__file__).parent / "jars"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        connector_jars(work / "connector")
        classes = work / "classes"
        sources = [str(p) for p in sorted((HERE / "src").rglob("*.java"))]
        path = f"{spark_jars}/*:{work}/connector/*"
        subprocess.run(
            ["javac", "--release", "17", "-nowarn", "-proc:none", "-cp", path, "-d", str(classes), *sources],
            check=True,
        )
        fresh = JAR.with_suffix(".new")  # a JVM that has the old one open must not see it change
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive:
            entries = {
                p.relative_to(classes).as_posix(): p.read_bytes() for p in sorted(classes.rglob("*.class"))
            }
            for entry, content in {
                "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n",
                **entries,
            }.items():
                archive.writestr(zipfile.ZipInfo(entry, FIXED_TIME), content, zipfile.ZIP_DEFLATED)
            archive.writestr(zipfile.ZipInfo(NOTE, FIXED_TIME), sources_hash())
        fresh.replace(JAR)
    print(f"{JAR.name}: {JAR.stat().st_size:,} bytes")


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(
            0
            if JAR.exists() and noted_hash() == sources_hash()
            else f"{JAR.name} is older than its sources: run make jar."
        )
    build()
