"""Tables of Spark's catalog as logs: which of them are no more than files, and of which version.

Tasks read the files past Spark, so a table must be nothing else to Spark: no view, no filter and no
mask, in a catalog and under extensions that are known to add none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bloomjoin._errors import UsageError
from bloomjoin._lake import iceberg_name, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ICEBERG = "org.apache.iceberg.spark."
_EXTENSIONS = (
    "",
    _ICEBERG + "extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
_CATALOGS = (
    "",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    _ICEBERG + "SparkCatalog",
    _ICEBERG + "SparkSessionCatalog",
)
# Others may withhold rows, as those of REST may.
_CATALOG_TYPES = ("hadoop", "hive", "jdbc", "glue", "nessie")
_BRANCHES = ("spark.wap.branch", "spark.wap.id")

# Types of columns, in the words of inputs and of inspect.
_STORED = {
    "tinyint": "int8",
    "float": "float32",
    "double": "float64",
    "string": "utf8",
    "boolean": "bool",
    "date": "date32",
    "timestamp": "timestamp[us]",
    "timestamptz": "timestamp[us, tz=UTC]",
}


@dataclass(frozen=True)
class Table:
    """A table, as Spark reads it, and as the command does."""

    frame: DataFrame
    name: str
    """A version of an Iceberg or a Delta table, or a directory of Parquet files."""
    location: str


def is_table(spark: SparkSession, given: object) -> bool:
    """Report whether a text without a slash names a table or a view of the catalog."""
    from pyspark.errors import AnalysisException

    if not isinstance(given, str) or re.search(r"[/:*?{\[]", given):
        return False
    try:
        found = bool(spark.catalog.tableExists(given))
    except AnalysisException:  # It is no name of a table.
        return False
    if found and os.path.lexists(given):
        raise UsageError(f"{given}: this is a table, and a file (./{given} is the file)")
    return found


def table(spark: SparkSession, name: str) -> Table:
    """Return the current version of a table. Raises UsageError if it may be more than its files."""
    rows = [(r[0], r[1]) for r in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
    titles = [i for i, row in enumerate(rows) if row[0] == "# Detailed Table Information"]
    said = dict(rows[titles[-1] :]) if titles else {}
    kind = said.get("Provider", "none").lower()
    partitioned = any(row[0] == "# Partition Information" for row in rows)
    why = _not_plain(spark, name, kind, said)
    if kind == "parquet" and partitioned and not why:
        why = "the catalog says which directories it has: name its directory if it has all"
    if why:
        raise UsageError(
            f"logs: {name}: tasks would read files past Spark, but {why} (pass spark.table(name), "
            "with staging= and mode='probe')"
        )
    place = local(said["Location"])
    read = place
    if kind == "iceberg":
        read = iceberg_name(_metadata(spark, name))
    if kind == "delta":
        last = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").select("version").collect()[0]
        read = f"delta:{place}@v{last[0]}"
    return Table(spark.table(name), read, place)


def _metadata(spark: SparkSession, name: str) -> str:
    """Return the current metadata file of an Iceberg table, as the session has it."""
    from pyspark.errors import AnalysisException

    if "." not in name:
        name = f"{spark.catalog.currentDatabase()}.{name}"
    try:
        return str(spark.sql(f"SELECT file FROM {name}.metadata_log_entries").collect()[-1][0])
    except AnalysisException as error:
        raise UsageError(f"logs: {name}: this is no table with a metadata file") from error


def _not_plain(spark: SparkSession, name: str, kind: str, said: Mapping[str, str]) -> str:
    """Return why the rows of a table may be others than those of its files, or nothing."""
    if said.get("Type") not in ("MANAGED", "EXTERNAL") or "Location" not in said:
        return "this is a view"
    if kind not in ("iceberg", "delta", "parquet"):
        return f"its format is {kind}"
    whole = ".".join(said[k] for k in ("Catalog", "Database", "Table", "Name") if k in said)
    if not f".{whole}".lower().endswith("." + name.replace("`", "").lower()):
        return f"this is a part of {whole}"
    if rules := _may_have_rules(spark, whole.split(".")[0], kind):
        return f"{rules} may have rules for it"
    if kind == "iceberg" and any(_setting(spark, key) for key in _BRANCHES):
        return f"{_BRANCHES[0]} or {_BRANCHES[1]} names another version"
    if any("rebaseMode" in text for text in said.values() if text):
        return "it has a calendar of its own"
    return "" if _is_scan(spark, name) else "Spark does more than to read it"


def _may_have_rules(spark: SparkSession, catalog: str, kind: str) -> str:
    """Return what may add filters and masks to a table of a catalog, or nothing."""
    for extension in _setting(spark, "spark.sql.extensions").split(","):
        if extension.strip() not in _EXTENSIONS:
            return extension
    name = f"spark.sql.catalog.{catalog}"
    implementation = _setting(spark, name) or ("" if catalog == "spark_catalog" else catalog)
    if implementation not in _CATALOGS:
        return implementation
    of = _setting(spark, f"{name}.type") or _setting(spark, f"{name}.catalog-impl") or "hive"
    return f"a catalog of type {of}" if kind == "iceberg" and of not in _CATALOG_TYPES else ""


def _setting(spark: SparkSession, name: str) -> str:
    return str(spark.conf.get(name, "") or "")


def _is_scan(spark: SparkSession, name: str) -> bool:
    """Report whether Spark's plan for all rows of a table is to read it, and nothing else."""
    plan = spark.sql(f"EXPLAIN EXTENDED SELECT * FROM {name}").collect()[0][0]
    analyzed = re.search(r"== Analyzed Logical Plan ==\n.*\n((?:.+\n)+)", plan)
    nodes = re.findall(r"(?m)^[ :+-]*(\w+)", analyzed[1]) if analyzed else []
    return nodes in (["Project", "SubqueryAlias", of] for of in ("Relation", "RelationV2"))


def table_columns(
    header: Mapping[str, Any], files: list[Mapping[str, Any]]
) -> dict[str, str] | None:
    """Return the types of a table's columns, as those of files; None for a list without a table.

    Instants count as INT96 if a file may have them so.
    """
    if not header.get("tables"):
        return None
    (found,) = header["tables"]
    old = any("timestamp[" in c["type"] and "tz=" not in c["type"] for c in _columns(files))
    return {c["name"]: ",".join(_leaves(c, old)) for c in found["columns"]}


def _columns(files: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for file in files:
        yield from file["table"]["columns"]


def _leaves(column: Mapping[str, Any], old: bool) -> Iterator[str]:
    children = column.get("children", ())
    for child in children:
        yield from _leaves(child, old)
    if not children:
        kind = column["type"]
        kind = "timestamp" if old and kind == "timestamptz" else kind
        yield _STORED.get(kind, re.sub(r"^decimal\((\d+),(\d+)\)", r"decimal128(\1, \2)", kind))
