"""What the verbs take: types, and the meaning of each parameter, said once.

Options are grouped as the verbs share them. A verb has a group for its keyword
arguments, ``verb`` of ``_signatures`` shows them in its signature and docstring, and
``_options`` turns them into flags of the same names. No option means the default.
"""

import datetime
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol, TypedDict

import pyarrow as pa

from bloomjoin._filter import Filter
from bloomjoin._progress import Bar, Listener
from bloomjoin._stores import Credentials


class ArrowStream(Protocol):
    """A table of any library with the Arrow C stream: pyarrow, Polars, pandas, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> object:
        """Return the stream."""


class ArrowArray(Protocol):
    """A batch or an array with the Arrow C data interface."""

    def __arrow_c_array__(self, requested_schema: Any = None, /) -> object:
        """Return the schema and the array."""


class ArrayLike(Protocol):
    """A NumPy array, or a pandas frame, Series or Index."""

    def __array__(self) -> Any:
        """Return the values."""


class Scannable(Protocol):
    """A dataset of pyarrow."""

    def scanner(self) -> Any:
        """Return what reads it."""


class IcebergTable(Protocol):
    """A table of pyiceberg."""

    @property
    def metadata_location(self) -> str:
        """Return the name of its metadata file."""

    def current_snapshot(self) -> Any:
        """Return the snapshot that is read."""


class DeltaTable(Protocol):
    """A table of deltalake."""

    @property
    def table_uri(self) -> str:
        """Return its URL."""

    def version(self) -> int:
        """Return the version that is read."""


Path = str | os.PathLike[str]
Place = Path | IcebergTable | DeltaTable
Names = str | Iterable[str]
Data = ArrowStream | ArrowArray | ArrayLike | Scannable | Iterable[pa.RecordBatch]
Value = int | float | bytes | Decimal | datetime.date | datetime.time
Values = Value | Iterable[Value] | Mapping[str, Iterable[object]]

Logs = Annotated[
    Place | Iterable[Place] | Data,
    "the log: paths, directories, patterns or URLs; tables of pyiceberg or deltalake, in the "
    "version that they have read; or Arrow data as of pyarrow, pandas, Polars or DuckDB",
]
Ids = Annotated[
    Place | Iterable[Place] | Data | Values,
    "the IDs: files and tables as for logs, also text files; Arrow data; a Series, an array, a "
    "list, set or range of values, or one value; {'user_id': [...]} for columns by name. A string, "
    "alone or in a list, names a file",
]
On = Annotated[
    str | Iterable[str] | Mapping[str, str],
    "the key: a column of both sides, 'log_column=id_column', a list of these, or a dict from "
    "columns of the log to those of the IDs",
]
Key = Annotated[
    Names | None, "the columns of the key, as 'user_id', 'user.id' (in a struct), 'a,b'"
]
How = Annotated[
    Literal["semi", "anti", "inner", "left", "right", "full"],
    "semi or anti: rows of the log with or without an ID; inner, left, right or full: with the "
    "columns of the IDs, the log being the left side",
]
Out = Annotated[
    Path,
    "a file, or with a slash at the end a directory with a file for each input; also a URL",
]
Applied = Annotated[Filter | Path | None, "the filter, or its file; None: where= decides"]

_Filters = Mapping[str, Filter | Path] | None
_Switch = Literal["auto", "on", "off"] | None


class Resources(TypedDict, total=False):
    """What a run may use."""

    memory: Annotated[
        str | int | None, "budget in bytes, or as '3GiB'; nine tenths of what there is by default"
    ]
    threads: Annotated[int | None, "number of workers; the processors by default"]
    storage_options: Annotated[
        Mapping[str, Any] | None, "settings and credentials for URLs, by the names of fsspec"
    ]
    credentials: Annotated[
        Credentials | None, "function that returns credentials, called again before they expire"
    ]
    progress: Annotated[
        bool | Listener | Bar | None,
        "True for a line on standard error, a tqdm bar, or a function that takes a Progress",
    ]


class TempDir(TypedDict, total=False):
    """Where to spill."""

    temp_dir: Annotated[Path | None, "directory for what exceeds memory"]


class RawFiles(TypedDict, total=False):
    """Whether files of tables are read."""

    raw_files: Annotated[bool, "read files of Delta, Iceberg and Hudi tables, with deleted rows"]


class FileChoice(RawFiles, total=False):
    """Which files of directories and patterns are read, and the columns of their paths."""

    include: Annotated[Names | None, "read only the files that match these patterns"]
    exclude: Annotated[Names | None, "leave out the files that match these patterns"]
    uncommitted: Annotated[bool, "read outputs that are not finished, too"]
    hive_partitioning: Annotated[
        Literal["auto", "off"] | None, "off: directories named name=value are no columns"
    ]
    hive_types: Annotated[
        str | Mapping[str, str] | None, "types of these columns, as {'dt': 'date'}"
    ]


class Keys(TypedDict, total=False):
    """How keys are compared."""

    normalize: Annotated[
        Names | None,
        "make text alike before it is compared: trim, lower, and one of uuid, url, url-host",
    ]
    ignore_case: Annotated[bool, "find columns by name in upper or lower case"]
    cast_errors: Annotated[
        Literal["error", "null"] | None, "null: values that do not fit column::type are NULL"
    ]


class Delimiter(TypedDict, total=False):
    """How CSV is read."""

    delimiter: Annotated[str | None, "character between the fields of CSV, as ';'"]


class TextFiles(Delimiter, total=False):
    """How text files of IDs are read."""

    ids_format: Annotated[
        Literal["lines", "csv", "tsv", "ndjson"] | None, "format of text; by the name otherwise"
    ]
    no_header: Annotated[bool, "CSV has no row of names: columns are named 1, 2, …"]
    encoding: Annotated[
        Literal["utf-8", "latin1", "windows-1252", "utf-16", "utf-16le", "utf-16be"] | None,
        "encoding of text; utf-8 by default",
    ]
    key_type: Annotated[str | None, "type of the key in text, as 'int64', 'uuid', 'decimal(18,2)'"]
    skip_bad: Annotated[bool, "leave out bad lines, with a warning; more than half is an error"]


class IDRows(TypedDict, total=False):
    """Which rows of the IDs are read."""

    ids_where: Annotated[str | None, "leave out the IDs whose rows do not satisfy it"]


class Rows(TypedDict, total=False):
    """Which rows of the log are read."""

    where: Annotated[
        str | None, "leave out the log rows that do not satisfy it, as \"ts >= '2024-05-01'\""
    ]
    shard: Annotated[str | None, "read part 'i/n', from 0; 'auto': by the batch system"]
    int96: Annotated[
        Literal["us", "ns"] | None, "unit of INT96 timestamps in rewritten rows; us by default"
    ]


class Layout(TypedDict, total=False):
    """What is done with log files that differ."""

    missing_key: Annotated[
        Literal["error", "skip-file"] | None, "what to do with files without the key"
    ]
    allow_empty: Annotated[bool, "accept a directory without data as a log without rows"]
    schema: Annotated[
        Literal["per-file", "strict", "union"] | None, "log files that differ: union adds columns"
    ]
    schema_from: Annotated[Path | None, "Parquet file that has the schema wanted"]


class Part(TypedDict, total=False):
    """Which part of the answer is wanted."""

    limit: Annotated[int | None, "stop after so many rows, the first ones of the log"]
    sample_keys: Annotated[
        str | float | None, "keep a share of the keys, with all their rows, as '1%'"
    ]


class Output(TypedDict, total=False):
    """How files are written."""

    force: Annotated[bool, "replace an output that exists"]
    format: Annotated[
        Literal["parquet", "arrow", "csv", "tsv", "ndjson"] | None,
        "of the output; by its name otherwise",
    ]
    compression: Annotated[
        str | None, "of Parquet, as 'zstd:3', 'snappy', 'none'; as the first input by default"
    ]
    target_file_size: Annotated[
        str | int | None, "in a directory: small inputs share files of this size"
    ]
    empty: Annotated[
        Literal["skip", "write"] | None, "in a directory: write files without rows, too"
    ]
    base: Annotated[Path | None, "directory that the output directory mirrors"]
    prune: Annotated[bool, "in a directory: remove the outputs of inputs that are gone"]
    ids_changed: Annotated[
        Literal["rerun", "keep"] | None, "in a directory: outputs that were made with other IDs"
    ]
    no_commit: Annotated[bool, "in a directory: leave the last step to bloomjoin commit"]
    manifest_dir: Annotated[Path | None, "directory for the manifests of an output directory"]


class Choice(TypedDict, total=False):
    """How rows are found, and what is kept of them."""

    filter: Annotated[
        Filter | Path | None, "a filter of these IDs; one is built otherwise, where it helps"
    ]
    fpr: Annotated[float | None, "false-positive rate of the filter that is built"]
    strategy: Annotated[
        Literal["auto", "exact", "lookup", "broadcast", "reverse", "shuffle"] | None,
        "how to join; auto by default",
    ]
    columns: Annotated[Names | None, "columns of the answer, as 'a,log.b,ids.b'; all by default"]


class Planned(Choice, Rows, IDRows, TextFiles, Keys, FileChoice, Resources, total=False):
    """What joins and their plans take."""


class Join(Planned, Part, Layout, TempDir, total=False):
    """Options of ``join``."""

    suffix: Annotated[
        str | None, "appended to a column of the IDs if the log has the name; _ids by default"
    ]


class JoinTo(Output, Join, total=False):
    """Options of ``join_to``."""

    require_rows: Annotated[int | None, "GateError if the answer has fewer rows"]
    require_ids_matched: Annotated[
        str | float | None, "GateError if a smaller share of the IDs has a row, as '50%'"
    ]
    max_kept: Annotated[
        str | float | None, "GateError if a larger share of the log is kept, as '10%'"
    ]


class Plans(Planned, total=False):
    """Options of ``plan``."""

    network: Annotated[str | None, "how fast a worker receives, as '10Gbit/s'"]
    scan_speed: Annotated[str | None, "how fast a worker joins what it received, as '1GB/s'"]
    workers: Annotated[int | None, "number of workers that each get the filter"]
    sample: Annotated[int | None, "number of runs of 2,048 rows of the log to look at"]


class Scan(Rows, Part, Layout, Keys, FileChoice, Resources, total=False):
    """Options of ``scan``."""

    match: Annotated[_Filters, "further filters, by the columns that they apply to"]
    no_match: Annotated[_Filters, "exact filters whose members are dropped, by columns"]
    any: Annotated[bool, "keep rows that any filter lets through, not all"]


class ScanTo(Output, Scan, total=False):
    """Options of ``scan_to``."""


class Written(TypedDict, total=False):
    """How filters and sketches are written."""

    force: Annotated[bool, "replace an output that exists"]


class Merge(Written, Resources, total=False):
    """Options of ``merge``."""

    uncompressed: Annotated[bool, "store the filter so that processes can map and share it"]
    strict: Annotated[bool, "fail, instead of warning, of too many false positives or keys"]


class Build(Merge, IDRows, TextFiles, Keys, FileChoice, TempDir, total=False):
    """Options of ``build``, and of ``CountingFilter.build``."""

    fpr: Annotated[float | None, "false-positive rate, as 0.01; by the number of keys otherwise"]
    max_size: Annotated[str | int | None, "limit on the filter's size, as '64MiB', in place of fpr"]
    multiset: Annotated[bool, "in a counting filter: count every addition of a key"]
    geometry: Annotated[
        Literal["auto", "split-256", "split-512"] | None,
        "of a Bloom filter: split-256 is faster, split-512 smaller below 0.1 %",
    ]
    expect: Annotated[int | None, "upper bound on the number of keys"]
    capacity: Annotated[int | None, "leave room for so many distinct keys"]
    key_range: Annotated[
        _Switch, "store the smallest and largest key; auto: not of text and binary"
    ]
    shard: Annotated[str | None, "read part 'i/n', from 0, into a partial filter"]


class Update(Written, RawFiles, TextFiles, TempDir, Resources, total=False):
    """Options of ``CountingFilter.update``."""

    ignore_missing: Annotated[bool, "skip keys to remove that are certainly not in"]


class SketchOf(Written, FileChoice, Resources, total=False):
    """Options of ``sketch``."""

    weight: Annotated[str | None, "column of integers to add up; each row counts 1 otherwise"]
    epsilon: Annotated[float | None, "share of the total by which an estimate may be too high"]
    delta: Annotated[float | None, "probability that it is more"]
    range: Annotated[bool, "count ranges, too; about 50 times as large"]
    shard: Annotated[str | None, "read part 'i/n', from 0, into a partial sketch"]
    normalize: Annotated[Names | None, "make text alike before it is counted"]


class Inspect(Delimiter, Resources, total=False):
    """Options of ``inspect``."""

    check: Annotated[bool, "read and verify all of each file"]
    shard: Annotated[str | None, "read part 'i/n', from 0"]
    manifest_dir: Annotated[Path | None, "directory for the manifests of an output directory"]


class Find(Resources, total=False):
    """Options of ``find``."""

    verify: Annotated[bool, "read these files, and name those that hold a key, with the rows"]


class Dedup(Keys, Delimiter, RawFiles, TempDir, Resources, total=False):
    """Options of ``dedup``."""

    time: Annotated[str | None, "column with the time of a row; one window for all otherwise"]
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None, "that a time of integers counts since 1970"
    ]
    keep: Annotated[
        Literal["first", "last"] | None, "which of equal rows stays; the last by time, if given"
    ]
    window: Annotated[
        str | datetime.timedelta | None, "how long a key is remembered, as '24h' or a timedelta"
    ]
    slots: Annotated[int | None, "parts of the window, of which the oldest is dropped whole"]
    expect: Annotated[int | None, "distinct keys in a window, or rate: for readers and iterators"]
    rate: Annotated[float | None, "distinct keys a second, in place of expect"]
    fpr: Annotated[float | None, "share of the rows that may be wrongly dropped"]
    exact: Annotated[bool, "drop no row wrongly, the default for files and tables"]
    approximate: Annotated[bool, "drop a few rows wrongly, in less memory"]
    late: Annotated[
        Literal["keep", "drop", "error"] | None, "rows older than the window or without a time"
    ]
    max_jump: Annotated[
        str | datetime.timedelta | None, "a row further ahead does not move the window"
    ]


class DedupTo(Written, Dedup, total=False):
    """Options of ``dedup_to``."""

    state: Annotated[Path | None, "what was read so far, for runs that continue"]
    checkpoint: Annotated[str | datetime.timedelta | None, "between commits of the state, as '1m'"]
    format: Annotated[
        Literal["lines", "csv", "tsv", "ndjson", "arrow"] | None,
        "of a stream; by the name or the first bytes otherwise",
    ]
