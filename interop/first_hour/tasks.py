"""What somebody tries in a first hour who has read the README alone: each task is right at once, or at the second try
by what the first one's message said. Answers are DuckDB's."""

import gzip
import itertools
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import time
import uuid
import zlib

import pandas as pd
import pyarrow as pa

from common import harness, tables

DAYS = ("2024-05-01", "2024-05-02")
IDS = [7, 57, 99, 1376, 123456]  # the last one has no row


class Hour:
    """The files of a first hour: a log in two days, plain and in directories, and its IDs as users have them."""

    def __init__(self, t):
        self.t, self.dir = t, t.path("hour")
        self.dir.mkdir()
        for d, day in enumerate(DAYS):
            ids = [(i * 7919 + d) % 2000 if i % 50 else IDS[i // 50 % 3] for i in range(2000)]
            log = pa.table({
                "user_id": pa.array(ids, pa.int64()), "url": [f"/page/{i % 17}" for i in range(2000)], "country": [("DE", "FR", None)[i % 3] for i in range(2000)],
                "ts": pa.array(pd.date_range(day, periods=2000, freq="30s")).cast(pa.timestamp("us")),
                "padded": [f"{i:08d}" for i in ids], "device": [str(uuid.UUID(int=0xABCDEF << 96 | i)) for i in ids],
            })  # fmt: skip
            for path in (self.dir / "logs" / f"{day}.parquet", self.dir / "hive" / f"dt={day}" / "part-0.parquet"):
                path.parent.mkdir(parents=True, exist_ok=True)
                tables.write(log, path)
        self.logs, self.hive = self.dir / "logs", self.dir / "hive"
        frame = pd.DataFrame({"user_id": IDS, "name": list("abcde")})
        frame.to_csv(self.dir / "users.csv", index=False)
        frame.to_csv(self.dir / "bare.csv", index=False, header=False)
        frame.to_csv(self.dir / "semicolons.csv", index=False, sep=";")
        frame.to_csv(self.dir / "index.csv")
        pd.DataFrame({"user_id": [7.0, None, 57.0]}).to_csv(self.dir / "floats.csv", index=False)
        (self.dir / "nested.ndjson").write_text("".join(f'{{"user":{{"id":{i}}},"n":1}}\n' for i in IDS))
        (self.dir / "devices.txt").write_text("".join(f"{uuid.UUID(int=0xABCDEF << 96 | i)}\n".upper() for i in IDS))
        (self.dir / "mails.csv").write_text("mail\nanna@example.org\nbert@example.org\n")
        tables.write(pa.table({"user_id": pa.array(IDS, pa.int64())}), self.dir / "ids.parquet")
        tables.write(pa.table({"user_id": [f"{i:08d}" for i in IDS]}), self.dir / "padded.parquet")
        self.users = self.dir / "users.csv"

    def sql(self, query):
        """The rows of a query over log and days (with dt)."""
        log = f"(select * from read_parquet('{self.logs}/*.parquet'))"
        days = f"(select * from read_parquet('{self.hive}/*/*.parquet', hive_partitioning=true))"
        return tables.sql(query.format(log=log, days=days, ids=f"({', '.join(map(str, IDS))})"))

    def count(self, where="user_id in {ids}"):
        return self.sql(f"select count(*) from {{log}} where {where}")[0][0]

    def run(self, *args, stdin=b""):
        return self.t.run(*args, want=None, stdin=stdin)

    def join(self, ids="users.csv", on="user_id", *options, logs=None, stdin=b""):
        """A join to a new file: its result, and the rows of the answer, if there is one."""
        out = self.t.path("answer.parquet")
        r = self.run("join", "--ids", self.dir / ids if (self.dir / ids).exists() else ids, "--on", on, *options, "-o", out, logs or self.logs, stdin=stdin)
        return r, tables.read(out) if out.exists() else None


def said(r, pattern):
    """What a message says: the part of the pattern in parentheses."""
    found = re.search(pattern, r.text)
    if not found:
        raise AssertionError(f"no {pattern!r} in {r}")
    return next(g for g in found.groups() if g is not None)


def ids(t):
    """2 to 9: IDs in the forms in which people have them."""
    h = Hour(t)
    want = h.count()
    t.equal("2 CSV with a header", h.join()[1].num_rows, want)
    r, _ = h.join("bare.csv")
    r, got = h.join("bare.csv", "user_id=" + said(r, "names the columns (1),"), said(r, "(--no-header)"))
    t.equal("3 CSV without a header", got and got.num_rows, want)
    r, _ = h.join("semicolons.csv")
    r, got = h.join("semicolons.csv", "user_id", "--delimiter", said(r, "--delimiter '(.)'"))
    t.equal("4 semicolons", got and got.num_rows, want)
    r, got = h.join("index.csv", "user_id", "--type", "inner")
    t.equal("5 the index of pandas", (got.num_rows, got.column_names[-2:]), (want, ["device", "name"]))
    r, got = h.join("nested.ndjson", "user_id=user.id", "--type", "inner")
    t.equal("6 a field in NDJSON", (got.num_rows, got.column_names[-2:]), (want, ["user", "n"]))
    r, got = h.join("devices.txt", "device")
    t.equal("7 UUIDs in upper case: none is equal", got.num_rows, 0)
    r, got = h.join("devices.txt", "device", "--normalize", said(r, r"--normalize (\S+) some have"))
    t.equal("7 UUIDs in upper case", got.num_rows, want)
    for name, file, on in (("the IDs", "padded.parquet", "user_id"), ("the log", "ids.parquet", "padded=user_id")):
        r, _ = h.join(file, on)
        cast, column = said(r, r"(::decimal\(20,0\))"), said(r, r"cast the (?:IDs|log's column): (\S+=[^\s,]+)")
        r, got = h.join(file, column.replace("::int64", cast))
        t.equal(f"8 leading zeros in {name}", got and got.num_rows, want)
    r, got = h.join("users.csv", "padded=user_id")
    r, got = h.join("users.csv", said(r, r"(KEY::[a-z0-9(,)]+)").replace("KEY", "padded") + "=user_id")
    t.equal("8 leading zeros in the log, IDs as text", got and got.num_rows, want)
    r, _ = h.join("floats.csv")
    r, got = h.join("floats.csv", "user_id", "--key-type", said(r, "--key-type (double)"))
    t.equal("9 floats with NaN", got and got.num_rows, h.count("user_id in (7, 57)"))


def joins(t):
    """10 to 16: which rows and columns."""
    h = Hour(t)
    h.dir.joinpath("pairs.csv").write_text("user_id,country\n7,DE\n57,FR\n99,DE\n")
    want = h.count("(user_id, country) in ((7, 'DE'), (57, 'FR'), (99, 'DE'))")
    t.equal("10 two keys", h.join("pairs.csv", "user_id,country")[1].num_rows, want)
    r, _ = h.join("pairs.csv", "user_id", "--on", "country")
    r, got = h.join("pairs.csv", said(r, "--on (a,b)").replace("a", "user_id").replace("b", "country"))
    t.equal("10 two keys, each with --on", got and got.num_rows, want)
    r, got = h.join("users.csv", "user_id", "--where", "dt = 2024-05-02", logs=h.hive)
    day = said(r, r"want a date in quotes, as ('\S+')").replace(DAYS[0], DAYS[1])
    r, got = h.join("users.csv", "user_id", "--where", f"dt = {day}", logs=h.hive)
    t.equal("11 a day of directories", got and got.num_rows, h.sql("select count(*) from {days} where dt = '2024-05-02' and user_id in {ids}")[0][0])
    both = ("--where", "country = 'DE'", "--where", "ts < '2024-05-02'")
    t.equal("12 two conditions", h.join("users.csv", "user_id", *both)[1].num_rows, h.count("user_id in {ids} and country = 'DE' and ts < '2024-05-02'"))
    r = h.run("join", "--ids", h.users, "--on", "user_id", "--count", h.logs)
    t.equal("13 a count", int(r.out), h.count())
    r, got = h.join("users.csv", "user_id", "--columns", "user_id", "--columns", "url")
    t.equal("14 columns", sorted(map(tuple, (d.values() for d in got.to_pylist()))), sorted(h.sql("select user_id, url from {log} where user_id in {ids}")))
    r, _ = h.join("users.csv", "user_id", "--how", "left")
    r, got = h.join("users.csv", "user_id", said(r, r"\(did you mean (--\w+)"), "left")
    t.equal("15 a left join", got and (got.num_rows, got["name"].null_count), (h.count("true"), h.count("user_id not in {ids}")))
    r, _ = h.join("1376")
    r, got = h.join(said(r, "with the name (-)"), stdin=b"1376\n")
    t.equal("16 one ID", got and got.num_rows, h.count("user_id = 1376"))


def filters(t):
    """17 to 20: filters, several of them, shards."""
    h = Hour(t)
    mails, users, others = h.dir / "mails.bjf", h.dir / "users.bjf", h.dir / "others.bjf"
    t.equal("17 a filter for others", h.run("build", "--key", "mail", "--fpr", "1%", "-o", mails, h.dir / "mails.csv").code, 0)
    t.ok("17 it has no key as it is", not re.search(b"anna|bert|example", mails.read_bytes()))
    h.dir.joinpath("others.txt").write_text("7\n99\n1000000\n")
    for out, file, key in ((users, h.users, ["--key", "user_id"]), (others, h.dir / "others.txt", [])):
        t.run("build", *key, "--key-type", "int64", "-o", out, file)
    r = h.run("scan", "--filter", users, "--filter", others, "--key", "user_id", "--count", h.logs)
    two = ["--filter", users, "--key", "user_id", said(r, "(--match) COL=FILTER"), f"user_id={others}"]
    for name, options, where in (
        ("18 two filters", two, "user_id in (7, 99)"),
        ("19 without those who opted out", ["--filter", users, "--key", "user_id", "--no-match", f"user_id={others}"], "user_id in (57, 1376)"),
    ):
        r = h.run("scan", *options, "--count", h.logs)
        t.equal(name, (r.code, r.out.strip()), (0, str(h.count(where)).encode()))
    scan = ["scan", "--filter", users, "--key", "user_id"]
    one, out = h.dir / "one.parquet", f"{h.dir}/shards/"
    t.run(*scan, "--shard", "0/2", "-o", one, h.logs)
    r = h.run(*scan, "--shard", "1/2", "-o", one, h.logs)
    t.ok("20 shards into one file: refused", r.code == 1 and said(r, "(directory/ for all)") and "--force" not in r.text, str(r))
    for i in range(2):
        t.run(*scan, "--shard", f"{i}/2", "-o", out, h.logs)
    t.equal("20 shards into a directory", tables.sql(f"select count(*) from read_parquet('{out}*.parquet')"), [(h.count(),)])


def runs(t):
    """21 to 26: again, on and on, and why."""
    h = Hour(t)
    join = ["join", "--ids", h.users, "--on", "user_id"]
    out = f"{h.dir}/out/"
    p = subprocess.Popen([t.tool, *join, "-o", out, h.hive], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.005)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    read = lambda: tables.sql(f"select count(*) from read_parquet('{out}**/*.parquet')")  # noqa: E731
    t.run(*join, "-o", out, h.hive)
    t.equal("21 again after a kill", read(), [(h.count(),)])
    new = h.hive / "dt=2024-05-03"
    shutil.copytree(h.hive / "dt=2024-05-02", new)
    t.run(*join, "-o", out, h.hive)
    t.equal("22 a new day", read(), h.sql("select count(*) from {days} where user_id in {ids}"))
    r = t.run(*join, "-o", "-", h.logs)
    t.equal("23 a stream for pandas", len(pa.ipc.open_stream(r.out).read_pandas()), h.count())
    r, seen = on_terminal(t, [*join, "-o", "-", h.logs])
    t.ok("23 no stream on a terminal", r == 64 and b"terminal" in seen, seen[:300])
    r = t.run(*join, "--json", "-o", t.path("figures.parquet"), h.logs).json
    missed = h.sql("select count(*) from (select unnest([{ids}]) as id) where id not in (select user_id from {log})".replace("[{ids}]", str(IDS)))
    t.equal("24 what was missed: IDs without a row", r["ids_total"] - r["ids_matched"], missed[0][0])
    t.ok("24 false positives", r["fpr_measured"] <= r["fpr_measured_bound"]["high"], r["fpr_measured"])
    r = t.run(*join, "--verbose", "-o", t.path("slow.parquet"), h.logs)
    t.ok("25 why was it slow", all(w in r.text for w in ("strategy", "expected to take", "it took")), r.text)
    r, _ = h.join("users.csv", "user_idd")
    r, got = h.join("users.csv", said(r, r"did you mean (\w+)\?"))
    t.equal("26 a wrong column", got and got.num_rows, h.count())
    r, _ = h.join("users.csv", "user_id", "--memory", "64")
    r, got = h.join("users.csv", "user_id", "--memory", said(r, r"did you mean (\w+)\?"))
    t.equal("26 little memory", got and got.num_rows, h.count())


def on_terminal(t, args):
    """The exit code of a run whose output goes to a terminal, and what is seen there."""
    ours, theirs = pty.openpty()
    p = subprocess.run([t.tool, *map(str, args)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, timeout=60)
    os.set_blocking(ours, False)
    seen = os.read(ours, 1 << 16)
    os.close(theirs)
    os.close(ours)
    return p.returncode, seen


def texts(t):
    """IDs as text that has two traits at once: marks, headers, delimiters, line ends, quotes, compression, pipes."""
    h = Hour(t)
    want, rows = h.count(), [["é", str(i)] for i in IDS] + [["ü", ""]]
    failed = []
    for case in itertools.product(",;\t|", (True, False), ("\n", "\r\n"), ("", '"'), ("utf-8", "utf-8-sig", "utf-16"), (False, True), ("file", "-", "/dev/stdin", "<(…)")):
        by, header, end, quote, encoding, packed, way = case
        if not harness.FULL and hash_of(case) % 16:
            continue
        lines = ([["name", "user_id"]] if header else []) + rows
        data = "".join(by.join(quote + v + quote for v in line) + end for line in lines).encode(encoding)
        file = h.dir / "ids.csv"
        file.write_bytes(gzip.compress(data) if packed else data)
        options = ["--on", "user_id" if header else "user_id=2", *([] if header else ["--no-header"])]
        options += ["--ids-format", "csv"] if by == "," else ["--delimiter", "tab" if by == "\t" else by]
        args = " ".join(shlex.quote(str(a)) for a in ["join", "--quiet", "--count", *options, h.logs])
        name = {"file": file, "<(…)": f"<(cat {file})"}.get(way, way)
        p = subprocess.run(["bash", "-c", f"{t.tool} {args} --ids {name}"], input=file.read_bytes(), capture_output=True, timeout=60)
        if (p.returncode, p.stdout.strip()) != (0, str(want).encode()):
            failed.append((case, p.stdout, p.stderr))
    t.equal("each two traits at once", failed[:5], [])
    names = "\r\n".join(str(h.logs / f"{day}.parquet") for day in DAYS)
    for mark in ("utf-8", "utf-8-sig"):
        for way in ("-", "<(cat)"):
            args = f"{t.tool} join --quiet --count --ids {h.users} --on user_id --files-from {way.replace('cat', 'cat -')}"
            p = subprocess.run(["bash", "-c", args], input=names.encode(mark), capture_output=True, timeout=60)
            t.equal(f"a list in {mark}, {way}", (p.returncode, p.stdout.strip(), p.stderr), (0, str(want).encode(), b""))


def hash_of(case):
    """A number for a case, the same in each run."""
    return zlib.crc32(repr(case).encode())


def times(t):
    """IDs that are dates or times are read as DuckDB casts them; those that it would change are refused."""
    moments = pd.date_range("2024-05-01", periods=48, freq="h")
    log = tables.write(pa.table({
        "ts": pa.array(moments).cast(pa.timestamp("us")), "tz": pa.array(moments.tz_localize("UTC")).cast(pa.timestamp("ms", "UTC")),
        "day": pa.array(moments.date, pa.date32()), "clock": pa.array(moments.time, pa.time64("us")),
    }), t.path("times.parquet"))  # fmt: skip
    spelled = {
        "ts": ["2024-05-01", "2024-05-01 03:00", "2024-05-01T04:00:00", "2024-05-02 05:00:00.000", "2020-01-01"],
        "tz": ["2024-05-01", "2024-05-01 03:00Z", "2024-05-01T06:00:00+02:00", "2024-05-01 07:00+02", "2024-05-02 00:00:00.000-0500"],
        "day": ["2024-05-01", "2024-06-01"],
        "clock": ["03:00", "04:00:00", "05:00:00.000", "06:30"],
    }
    for column, texts in spelled.items():
        kind = {"ts": "timestamp", "tz": "timestamptz", "day": "date", "clock": "time"}[column]
        want = tables.sql(f"select count(*) from read_parquet('{log}') where {column} in ({', '.join(f'{v!r}::{kind}' for v in texts)})")
        for name, text in {
            "ids.csv": f"{column},n\n" + "".join(f"{v},1\n" for v in texts), "ids.tsv": f"n\t{column}\r\n" + "".join(f"1\t{v}\r\n" for v in texts),
            "ids.ndjson": "".join(f'{{"{column}":"{v}"}}\n' for v in texts), "ids.txt": "\n".join(texts),
        }.items():  # fmt: skip
            path = t.path(name)
            path.write_text(text, newline="")
            r = t.run("join", "--ids", path, "--on", column, "--count", "--json", log)
            t.equal(f"{column}: {name}", r.json["rows_out"], want[0][0])
    for column, text in {"ts": "2024-05-01 03:00:00Z", "tz": "2024-05-01 03:00:00.0001Z", "day": "2024-05-01 03:00", "clock": "3:00"}.items():
        path = t.path("ids.txt")
        path.write_text(f"{text}\n")
        r = t.run("join", "--ids", path, "--on", column, "--count", log, want=1)
        t.ok(f"{column}: another form is refused", "line 1" in r.text and text not in r.text, str(r))


def nothing(t):
    """Inputs without a meaning that is sure: each says what happened."""
    h = Hour(t)
    (h.dir / "header.csv").write_text("user_id,name\n")
    (h.dir / "nothing.csv").write_text("")
    (h.dir / "nothing.txt").write_text("")
    for file in ("header.csv", "nothing.txt"):
        r, got = h.join(file, "user_id", "--type", "anti")
        t.ok(f"{file}: no ID", got.num_rows == h.count("true") and "there is no ID" in r.text, str(r))
        r = h.run("build", "--key", "user_id", "-o", t.path("none.bjf"), h.dir / file)
        t.ok(f"{file}: a filter of nothing", r.code == 0 and "there is no ID" in r.text, str(r))
    r, _ = h.join("nothing.csv")
    t.ok("nothing.csv: no names", r.code == 1 and "no row" in r.text, str(r))
    mixed = h.dir / "mixed"
    mixed.mkdir()
    shutil.copy(h.users, mixed)
    tables.write(pa.table({"user_id": pa.array([3], pa.int64())}), mixed / "zusers.parquet")
    t.equal("CSV and Parquet", h.join("mixed")[1].num_rows, h.count("user_id in {ids} or user_id = 3"))
    r, _ = h.join("mixed", "user_id", "--type", "inner")
    t.ok("CSV and Parquet with other columns: refused", r.code == 1 and "the same columns" in r.text, str(r))
    r, got = h.join("logs")
    t.ok("one file on both sides", got.num_rows == h.count("true") and "is an ID file and a log file" in r.text, str(r))


def run(t, _repository):
    t.group("first hour, IDs", ids)
    t.group("first hour, joins", joins)
    t.group("first hour, filters", filters)
    t.group("first hour, runs", runs)
    t.group("first hour, text", texts)
    t.group("first hour, times", times)
    t.group("first hour, nothing", nothing)
