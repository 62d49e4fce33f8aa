"""Lines as newcomers type them: right answers by pandas, or errors that say what to type."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import bloomjoin

LOG = pd.DataFrame(
    {
        "user_id": [1376, 7, 1376, 99, 12, 7, 5],
        "name": ["1376", "7", "1376", "99", "12", "7", "5"],
        "n": range(7),
    }
)
USERS = pd.DataFrame({"user_id": [1376, 5, 1000], "plan": ["gold", "tin", "new"]})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the log in two files, and IDs, which is the home directory, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("logs").mkdir()
    LOG[:4].to_parquet("logs/a.parquet")
    LOG[4:].to_parquet("logs/b.parquet")
    USERS.to_parquet("users.parquet")
    Path("users.txt").write_text("1376\n5\n1000\n")
    return tmp_path


def evaluated(line: str) -> Any:
    names: dict[str, Any] = {"log": LOG.copy(), "users": USERS.copy()}
    if "filter" in line:
        names["filter"] = bloomjoin.build(USERS["user_id"])
    if "reader" in line:
        names["reader"] = bloomjoin.join("logs", USERS, "user_id")
    libraries = {"bloomjoin": bloomjoin, "join": bloomjoin.join, "np": np, "pd": pd, "pl": pl}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bloomjoin.BloomjoinWarning)
        return eval(line, {**libraries, "pa": pa, "duckdb": duckdb, "Path": Path, **names})


def frame(answer: Any) -> pd.DataFrame:
    if isinstance(answer, bloomjoin.Reader):
        return answer.to_pandas()
    if isinstance(answer, pl.DataFrame):
        return answer.to_pandas()
    return answer if isinstance(answer, pd.DataFrame) else answer.to_pandas()


def rows(of: pd.DataFrame) -> list[tuple[Any, ...]]:
    columns = ["user_id", "name", "n"] + [c for c in of.columns if c == "plan"]
    plain = of[columns].astype(object).where(of[columns].notna(), None)
    return sorted(plain.itertuples(index=False, name=None), key=repr)


# Lines whose answer are the log's rows of these users.
THREE, TWO, ONE = [1376, 5, 1000], [1376, 5], [1376]
SEMI = {
    "join('logs', users.astype({'user_id': 'int32'}), 'user_id')": THREE,
    "join('logs', users.astype({'user_id': 'Int64'}), 'user_id')": THREE,
    "join('logs', pd.DataFrame({'user_id': [1376, np.nan, 5.0]}), 'user_id')": TWO,
    "join('logs', users.astype({'user_id': object}), 'user_id')": THREE,
    "join('logs', users.astype({'user_id': 'category'}), 'user_id')": THREE,
    "join('logs', np.array([1376, 5], 'uint64'), 'user_id')": TWO,
    "join('logs', users.user_id, 'user_id')": THREE,
    "join('logs', users.user_id.rename('id'), 'user_id')": THREE,
    "join('logs', users.set_index('plan').user_id, 'user_id')": THREE,
    "join('logs', users[users.plan != 'new'].user_id[1:], on='user_id')": [5],
    "join('logs', pl.Series('other', [1376, 5]), 'user_id')": TWO,
    "join('logs', users.set_index('user_id').reset_index(), 'user_id')": THREE,
    "join('logs', users.set_index('user_id').index, 'user_id')": THREE,
    "join('logs', [1376, 5], 'user_id')": TWO,
    "join('logs', (1376, 5), 'user_id')": TWO,
    "join('logs', {1376, 5}, 'user_id')": TWO,
    "join('logs', range(5, 6), 'user_id')": [5],
    "join('logs', (int(n) for n in ['1376', '5']), 'user_id')": TWO,
    "join('logs', [np.int64(1376)], 'user_id')": ONE,
    "join('logs', 1376, 'user_id')": ONE,
    "join('logs', np.int32(1376), 'user_id')": ONE,
    "join('logs', {'name': ['1376']}, 'name')": ONE,
    "join('logs', pd.Series(['1376']), 'name')": ONE,
    "join('logs', {'user_id': ['1376']}, 'user_id=user_id::int64')": ONE,
    "join('logs', {'name': '1376'}, 'name')": ONE,
    "join('logs', {'user_id': users.user_id, 'plan': users.plan}, 'user_id')": THREE,
    "join('logs', [None], 'user_id')": [],
    "join('logs', 'users.txt', 'user_id')": THREE,
    "join('logs', Path('users.parquet'), 'user_id')": THREE,
    "join('logs', '~/users.parquet', 'user_id')": THREE,
    "join('~/logs', '~/users.parquet', 'user_id')": THREE,
    "join('logs/*.parquet', users, 'user_id')": THREE,
    "join(Path('logs').glob('*.parquet'), users, 'user_id')": THREE,
    "join(sorted(Path('logs').iterdir()), Path().glob('users.p*'), 'user_id')": THREE,
    "join(duckdb.sql(\"FROM 'logs/*.parquet'\"), users, 'user_id')": THREE,
    "join(log, users, 'user_id')": THREE,
    "join('logs', users, 'user_id', progress=True)": THREE,
    "join('logs', users, 'user_id').read_pandas()": THREE,
    "pl.from_arrow(join('logs', users, 'user_id'))": THREE,
    "pl.DataFrame(reader)": THREE,
    "reader.to_pandas()": THREE,
    "reader.to_polars()": THREE,
    "reader.pl()": THREE,
    "reader.to_arrow()": THREE,
    "pa.table(reader)": THREE,
    "duckdb.from_arrow(reader).df()": THREE,
    "reader.head(100)": THREE,
    "log[filter.probe(log.user_id)]": THREE,
    "log[log.user_id.map(lambda u: u in filter)]": THREE,
    "log[filter.probe(log.user_id.tolist())]": THREE,
    "pl.from_pandas(log).filter(filter.probe(log.user_id.to_numpy()))": THREE,
    "bloomjoin.scan(filter, 'logs', 'user_id')": THREE,
    "bloomjoin.scan(bloomjoin.build([1376, 5], 'user_id'), 'logs')": TWO,
}


@pytest.mark.parametrize("line", SEMI)
def test_rows_of_ids(line: str) -> None:
    want = LOG[LOG.user_id.isin(SEMI[line])]
    assert rows(frame(evaluated(line))) == rows(want)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_merge(how: str) -> None:
    as_pandas: Any = "outer" if how == "full" else how
    want = LOG.merge(USERS, on="user_id", how=as_pandas)
    got = evaluated(f"join('logs', users, 'user_id', how={how!r}).to_pandas()")
    assert rows(got) == rows(want)


# Lines that cannot work, the exception, and what it says to type.
REFUSED = {
    "join('logs', users.set_index('user_id'), 'user_id')": (ValueError, r"ids\.reset_index\(\)"),
    "join(log.set_index('user_id'), users, 'user_id')": (ValueError, r"logs\.reset_index\(\)"),
    "join('logs', ['1376'], 'user_id')": (FileNotFoundError, r"{'user_id': \[\.\.\.\]}"),
    "join('logs', '1376', 'user_id')": (FileNotFoundError, r"{'user_id': \[\.\.\.\]}"),
    "join('logs', {'user_id': ['1376']}, 'user_id')": (bloomjoin.DataError, "::int64"),
    "join('logs', [1376, '5'], 'user_id')": (ValueError, "one type"),
    "join('logs', [(1376, 'a')], 'user_id')": (ValueError, "table"),
    "join('logs', {'user_id': [5], 'plan': ['a', 'b']}, 'user_id')": (ValueError, "one length"),
    "join('logs', [], 'user_id')": (ValueError, r"pyarrow\.array\(\[\], "),
    "join('logs', pd.Series([1376, 'x']), 'user_id')": (ValueError, "one type"),
    "join([1376], users, 'user_id')": (ValueError, "paths"),
    "join('logs', users, 'user_id', how='outer')": (ValueError, r"how='full'"),
    "join('logs', users, 'user_id', type='inner')": (TypeError, "how"),
    "join('logs', users, left_on='user_id', right_on='id')": (TypeError, r"on={'"),
    "join('logs', users, key='user_id')": (TypeError, r"\(did you mean on\?\)"),
    "join('logs', users, 'user_id', column=['n'])": (TypeError, "columns"),
    "join('logs', users)": (TypeError, "'on'"),
    "join('nowhere', users, 'user_id')": (FileNotFoundError, "nowhere"),
    "join('logs', 'nowhere/ids.csv', 'user_id')": (FileNotFoundError, r"ids\.csv"),
    "join('logs', 'uesrs.parquet', 'user_id')": (FileNotFoundError, r"did you mean users\.parquet"),
    "bloomjoin.Filter.load('nowhere.bjf')": (FileNotFoundError, r"nowhere\.bjf"),
    "bloomjoin.scan('nowhere.bjf', 'logs')": (FileNotFoundError, r"nowhere\.bjf"),
    "pd.DataFrame(reader)": (TypeError, "to_pandas"),
    "np.asarray(reader)": (TypeError, "to_pandas"),
    "(reader.read_all(), reader.read_all())": (ValueError, "read once"),
    "(list(reader), list(reader))": (ValueError, "read once"),
    "(reader.to_pandas(), pl.DataFrame(reader))": (ValueError, "read once"),
    "(reader.head(1), reader.to_pandas())": (ValueError, "read once"),
    "len(filter)": (TypeError, "keys"),
    "filter.probe(['x', 1])": (ValueError, "one type"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_to_type_instead(line: str) -> None:
    kind, says = REFUSED[line]
    with pytest.raises(kind, match=says) as raised:
        evaluated(line)
    if not isinstance(raised.value, TypeError):
        assert isinstance(raised.value, bloomjoin.Error)
        assert type(raised.value).__module__ == "bloomjoin"
        assert "1376" not in str(raised.value)


def test_a_second_reading_by_a_dataset_is_an_error() -> None:
    reader = evaluated("reader")
    assert ds.Scanner.from_batches(reader).to_table().num_rows == 3
    with pytest.raises(ValueError, match="read once"):
        ds.Scanner.from_batches(reader).to_table()


def test_head_ends_the_run() -> None:
    reader = evaluated("join('logs', users, 'user_id')")
    assert reader.head(2).num_rows == 2
    assert reader.report is None
    with pytest.raises(bloomjoin.UsageError):
        evaluated("reader.head(-1)")
    assert evaluated("reader.head(0)").column_names == ["user_id", "name", "n"]


def test_what_a_reader_shows() -> None:
    reader = evaluated("reader")
    shown = "<bloomjoin.Reader, {}>\nuser_id: int64\nname: string\nn: int64"
    assert repr(reader).replace("large_string", "string") == shown.format("not read to its end")
    reader.read_all()
    assert repr(reader).replace("large_string", "string") == shown.format("read")


@pytest.mark.parametrize("out", ["out.parquet", "out/", "~/out.arrow"])
@pytest.mark.parametrize("ids", ["users", "users.user_id", "[5, 1376]", "{5, 1376}", "'users.txt'"])
@pytest.mark.parametrize("logs", ["'logs/a.parquet'", "log"])
def test_a_cell_runs_twice(logs: str, ids: str, out: str) -> None:
    if logs == "log" and out == "out/":
        pytest.skip("a stream has no name for its file in a directory")
    line = f"bloomjoin.join_to({logs}, {ids}, 'user_id', out={out!r})"
    first, again = evaluated(line), evaluated(line)
    assert (first.already_done, again.already_done) == (False, True)
    assert first.rows_out == again.rows_out > 0
    with pytest.raises(bloomjoin.DataError, match=r"exists|other IDs"):
        evaluated(f"bloomjoin.join_to({logs}, [7], 'user_id', out={out!r})")


def test_filters_and_scans_run_twice() -> None:
    for line in (
        "bloomjoin.build(users, 'user_id', out='users.bjf')",
        "bloomjoin.scan_to(filter, log, 'user_id', out='rows.parquet').rows_out",
        "bloomjoin.build(range(9), against=range(20, 30), fpr=0.1, kind='bloom', out='k.bjf')",
    ):
        assert evaluated(line) == evaluated(line), line


def test_errors_are_of_one_family() -> None:
    for name in bloomjoin.__all__:
        one = getattr(bloomjoin, name)
        if isinstance(one, type) and issubclass(one, (bloomjoin.Error, Warning)):
            assert one.__module__ == "bloomjoin"
    error = bloomjoin.NotFoundError("a.parquet: no such file [E203]", exit_code=1)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.code, copy.exit_code, copy.errno) == (str(error), "E203", 1, 2)
    assert bloomjoin.DataError("no [E2] here").code is None
    assert bloomjoin.__version__.count(".") == 2


def test_help_has_a_line_for_each_parameter() -> None:
    import inspect

    for name in ("build", "join", "join_to", "scan", "scan_to", "plan", "merge", "inspect"):
        verb = getattr(bloomjoin, name)
        said = verb.__doc__.partition("Args:\n")[2]
        for parameter in inspect.signature(verb).parameters.values():
            assert f"    {parameter.name}: " in said, f"{name}({parameter.name})"
            assert parameter.annotation not in (parameter.empty, Any), f"{name}({parameter.name})"


def test_progress_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    evaluated("join('logs', users, 'user_id', progress=True).read_all()")
    said = capsys.readouterr().err
    assert "7 of 7 rows" in said
    assert said.endswith("\n")
    evaluated("join('logs', users, 'user_id', progress=False).read_all()")
    assert capsys.readouterr().err == ""


INTERRUPTED = """
import itertools, pyarrow as pa, bloomjoin
batch = pa.record_batch({"k": pa.array(range(10_000))})
logs = pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
print("go", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a group")
@pytest.mark.parametrize(
    "line",
    [
        "bloomjoin.join(logs, [1, 2], 'k').read_all()",
        "for _ in bloomjoin.join(logs, [1, 2], 'k'): pass",
        "bloomjoin.join_to(logs, [1, 2], 'k', out='out.parquet')",
    ],
)
def test_an_interrupt_says_little(line: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED + line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "go\n"
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(1)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does, to the command, too
        _, said = run.communicate(timeout=30)
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert said.count("KeyboardInterrupt") == 1
    assert len(said.splitlines()) < 8, said
    assert not Path("out.parquet").exists()
