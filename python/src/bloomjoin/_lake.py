"""Tables of pyiceberg and deltalake, as the names that the command takes.

An object stands for the version that it has read. Its settings, which may be secrets, stay in it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from bloomjoin._errors import UsageError

_DELTA = "deltalake.table.DeltaTable"
_ICEBERG = "pyiceberg.table.Table"
_OTHERS = {
    "pyiceberg.table.BaseScan": "pass the table, with its condition as where=",
    "pyiceberg.table.StagedTable": "commit the table first",
    "deltalake.query.QueryBuilder": "pass what its execute() returns",
}


def table_name(given: Any, what: str) -> str | None:
    """Return the name of the version that a table has read. None: it is no table."""
    kinds = [f"{c.__module__}.{c.__qualname__}" for c in type(given).__mro__]
    for other in _OTHERS.keys() & kinds:
        raise UsageError(f"{what}: want a table, got a {kinds[0]} ({_OTHERS[other]})")
    if _DELTA in kinds:
        place = unquote(given.table_uri, errors="surrogateescape")
        return f"delta:{local(place)}@v{given.version()}"
    if _ICEBERG in kinds:
        return iceberg_name(given.metadata_location)
    return None


def iceberg_name(metadata: str) -> str:
    """Return the name of the current snapshot of a metadata file, with the current schema.

    By its number, a snapshot would be read with its own schema. A name with @ must end in one.
    """
    place = local(metadata)
    return f"iceberg:{place}" + "@branch=main" * ("@" in place)


def pinned(given: Any, what: str) -> Any:
    """Return names for a table or those in a list: the objects may read other versions later."""
    if isinstance(given, list):
        return [table_name(one, what) or one for one in given]
    return table_name(given, what) or given


def local(place: str) -> str:
    """Return the path that a URL of a file has without its escapes: pyiceberg writes none."""
    return "/" + place[5:].lstrip("/") if place.startswith("file:") else place
