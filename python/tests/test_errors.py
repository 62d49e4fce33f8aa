"""Errors by the exit code, with the command's text, and answers that break off."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flights import FLIGHTS, LOGS, ON, TEXAS

import bloomjoin

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def message_of_command(*args: str) -> tuple[int, str]:
    """Return the exit code and the text of the command when people run it."""
    done = subprocess.run(
        [os.environ["BLOOMJOIN_BINARY"], *args], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


needs_binary = pytest.mark.skipif(
    "BLOOMJOIN_BINARY" not in os.environ, reason="compares with the command"
)


@needs_binary
def test_the_text_is_that_of_the_command(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.parquet")
    code, text = message_of_command("join", "--ids", str(TEXAS), "--on", ON, "-o", "-", missing)
    with pytest.raises(bloomjoin.Error) as caught:
        bloomjoin.join(missing, TEXAS, ON)
    assert caught.value.exit_code == code
    assert str(caught.value) == caught.value.text
    assert caught.value.text in text


def test_wrong_arguments_are_usage_errors() -> None:
    with pytest.raises(bloomjoin.UsageError, match="sideways") as caught:
        bloomjoin.join(LOGS, TEXAS, ON, how="sideways")  # type: ignore[arg-type]
    assert caught.value.exit_code == 64
    assert isinstance(caught.value, ValueError)
    with pytest.raises(TypeError):
        bloomjoin.join(LOGS, TEXAS, ON, typo=True)  # type: ignore[call-arg]


def test_wrong_data_is_a_data_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 and no more")
    with pytest.raises(bloomjoin.DataError, match=r"bad\.parquet") as caught:
        bloomjoin.join(bad, TEXAS, ON).read_all()
    assert caught.value.exit_code == 1


def test_a_gate_publishes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(bloomjoin.GateError) as caught:
        bloomjoin.join_to(LOGS, TEXAS, ON, out=out, require_rows=10**9)
    assert caught.value.exit_code == 2
    assert not out.exists()


def test_a_store_that_refuses_is_retryable_and_no_secret_is_told() -> None:
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        options = {
            "endpoint": f"http://127.0.0.1:{unused.getsockname()[1]}",
            "region": "us-east-1",
            "key": "AKIDTEST",
            "secret": "very-secret-word",
            "retries": 0,
        }
        with pytest.raises(bloomjoin.RetryableError) as caught:
            bloomjoin.join("s3://bucket/logs/*.parquet", TEXAS, ON, storage_options=options)
    assert caught.value.exit_code == 75
    assert "very-secret-word" not in repr(caught.value) + " ".join(caught.value.command)


def stream() -> bytes:
    """Return a stream of two batches with its end marker."""
    sink = io.BytesIO()
    batch = pa.record_batch({"k": [1, 2, 3]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    data = sink.getvalue()
    assert data.endswith(END)
    return data


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], None]:
    """Return a function that puts in place of the command what prints bytes and exits."""

    def put(out: bytes, code: int, said: str = "") -> None:
        (tmp_path / "out").write_bytes(out)
        script = tmp_path / "fake"
        script.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"sys.stdout.buffer.write(open({str(tmp_path / 'out')!r}, 'rb').read())\n"
            f"sys.stdout.flush()\nsys.stderr.write({said!r})\nsys.exit({code})\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("BLOOMJOIN_BINARY", str(script))

    return put


def by_duckdb(reader: bloomjoin.Reader) -> object:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as con:
        con.register("answer", reader)
        return con.sql("SELECT count(k) FROM answer").fetchall()


def by_polars(reader: bloomjoin.Reader) -> object:
    return pytest.importorskip("polars").from_arrow(reader)


READ: dict[str, Callable[[Any], object]] = {
    "read_all": lambda reader: reader.read_all(),
    "iteration": list,
    "pandas": lambda reader: reader.read_pandas(),
    "c stream": lambda reader: pa.RecordBatchReader.from_stream(reader).read_all(),
    "duckdb": by_duckdb,
    "polars": by_polars,
}

BROKEN = {
    "complete, but failed": (stream(), 1),
    "between batches": (stream()[: -len(END)], 1),
    "without a marker, no error": (stream()[: -len(END)], 0),
    "within the marker": (stream()[:-3], 0),
    "within a batch": (stream()[:-30], 1),
}


@pytest.mark.skipif(sys.platform == "win32", reason="the fake command is a script")
@pytest.mark.parametrize("way", READ)
@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_that_breaks_off_is_an_error(
    how: str, way: str, fake: Callable[[bytes, int], None]
) -> None:
    if way in ("pandas", "duckdb", "polars"):
        pytest.importorskip(way)
    fake(*BROKEN[how])
    with pytest.raises(Exception) as caught:  # noqa: PT011 - libraries wrap it in their own
        READ[way](bloomjoin.join(LOGS, TEXAS, ON))
    if way in ("read_all", "iteration"):
        assert isinstance(caught.value, (bloomjoin.Error, OSError, pa.ArrowInvalid))


@pytest.mark.skipif(sys.platform == "win32", reason="the fake command is a script")
def test_data_that_looks_like_the_marker_is_data(fake: Callable[[bytes, int], None]) -> None:
    """A batch whose last bytes are those of the marker, and which ends a read."""
    values = pa.array([int.from_bytes(END, "little")] * 8, pa.uint64())
    batch = pa.record_batch({"k": values})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(3):
            writer.write_batch(batch)
    fake(sink.getvalue(), 0)
    assert bloomjoin.join(LOGS, TEXAS, ON).read_all() == pa.Table.from_batches([batch] * 3)
    fake(sink.getvalue()[: -len(END)], 1)
    with pytest.raises(bloomjoin.DataError, match="exit code 1"):
        bloomjoin.join(LOGS, TEXAS, ON).read_all()


@pytest.mark.skipif(sys.platform == "win32", reason="the fake command is a script")
@pytest.mark.parametrize(
    ("code", "said", "kind"),
    [
        (1, '{"level":"ERROR","msg":"no","exit_code":1,"class":"data"}\n', bloomjoin.DataError),
        (1, '{"level":"ERROR","msg":"no","class":"internal"}\n', bloomjoin.InternalError),
        (130, '{"level":"ERROR","msg":"no"}\n', bloomjoin.InterruptedRun),
        (3, "no\n", bloomjoin.InternalError),
    ],
)
def test_classes(code: int, said: str, kind: type, fake: Callable[..., None]) -> None:
    fake(b"", code, said)
    with pytest.raises(bloomjoin.Error) as caught:
        bloomjoin.plan(LOGS, TEXAS, ON)
    assert type(caught.value) is kind
    assert (str(caught.value), caught.value.exit_code) == ("no", code)


def test_warnings_are_at_the_line_of_the_caller() -> None:
    no_match = pa.table({"iata": ["no such airport"]})
    with pytest.warns(bloomjoin.BloomjoinWarning) as caught:
        bloomjoin.join(FLIGHTS / "logs" / "2001-06.arrow", no_match, ON).read_all()
    assert {one.filename for one in caught} == {__file__}
