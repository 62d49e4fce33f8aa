"""Filter.probe: every type of column, against Python sets and the command."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden
import pyarrow as pa
import pytest

import bloomjoin
from bloomjoin import _keys, _native, _process
from bloomjoin._errors import DataError
from bloomjoin._filter import Filter

N = 3000
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTEGERS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
TEXTS += [t() for t in (getattr(pa, n, None) for n in ("string_view", "binary_view")) if t]
KINDS = {
    "split-256": ["--kind", "bloom", "--geometry", "split-256", "--fpr", "0.01"],
    "split-512": ["--kind", "bloom", "--geometry", "split-512", "--fpr", "0.01"],
    "exact": ["--kind", "exact"],
    "counting": ["--kind", "counting", "--fpr", "0.01"],
}


@pytest.fixture(scope="module", params=KINDS)
def integers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filter:
    """A filter of every third integer, from -3000 to 6000."""
    ids = pa.array(range(-N, 2 * N, 3))
    directory = tmp_path_factory.mktemp("integers")
    return Filter.load(golden.build(directory, ids, *KINDS[request.param]))


@pytest.fixture(scope="module", params=["split-256", "split-512", "counting"])
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Filter:
    """A filter of strings of 0 to 300 bytes."""
    ids = pa.array([text(i) for i in range(0, N, 3)])
    directory = tmp_path_factory.mktemp("texts")
    return Filter.load(golden.build(directory, ids, *KINDS[request.param]))


def text(i: int) -> str:
    return "" if i == 0 else f"é{i}-" * (i % 60)


def check(tmp_path: Path, f: Filter, array: pa.Array, members: set[Any]) -> list[bool]:
    """Compare a probe with the command's scan and a set; return the answers."""
    mask = f.probe(array)
    assert isinstance(mask, pa.BooleanArray)
    assert mask.null_count == 0
    mask.validate(full=True)
    got = mask.to_pylist()
    assert got == golden.scanned(tmp_path, f, pa.table({"k": array}), "k")
    for value, answer in zip(array.to_pylist(), got, strict=True):
        if value in members:
            assert answer
        elif f.kind == "exact" or value is None:
            assert not answer
    return got


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers(tmp_path: Path, integers: Filter, kind: pa.DataType) -> None:
    r = random.Random(str(kind))
    low = -(1 << kind.bit_width - 1) if pa.types.is_signed_integer(kind) else 0
    high = low + (1 << kind.bit_width) - 1
    values = [v for v in [r.randint(-N, 2 * N) for _ in range(2500)] if low <= v <= high]
    values += [low, high, *(None for _ in range(99))]
    r.shuffle(values)
    got = check(tmp_path, integers, pa.array(values, kind), set(range(-N, 2 * N, 3)))
    assert 0.05 < sum(got) / len(got) < 0.5


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_texts(tmp_path: Path, texts: Filter, kind: pa.DataType) -> None:
    r = random.Random(str(kind))
    values: list[Any] = [text(r.randrange(N)) for _ in range(2500)] + [None] * 50
    r.shuffle(values)
    if "binary" in str(kind):
        values = [None if v is None else v.encode() for v in values]
    array = pa.array(values, kind)
    mask = texts.probe(array).to_pylist()
    members = {text(i) for i in range(0, N, 3)} | {text(i).encode() for i in range(0, N, 3)}
    assert all(m for v, m in zip(values, mask, strict=True) if v in members)
    assert not any(m for v, m in zip(values, mask, strict=True) if v is None)
    plain = array.cast(pa.large_binary() if "binary" in str(kind) else pa.large_string())
    assert mask == check(tmp_path, texts, plain, members)


@pytest.mark.parametrize("width", [1, 16, 100])
@pytest.mark.parametrize("kind", ["split-256", "split-512"])
def test_fixed_width(tmp_path: Path, width: int, kind: str) -> None:
    r = random.Random(width)
    values = [r.randbytes(width) for _ in range(2000)]
    of = pa.binary(width)
    f = Filter.load(golden.build(tmp_path, pa.array(values[:500], of), *KINDS[kind]))
    check(tmp_path, f, pa.array([*values, None], of), set(values[:500]))


SLICES: list[tuple[int, int]] = [(0, 0), (0, 1), (1, 63), (7, 64), (13, 1000), (64, 1025), (999, 0)]
SLICES += [(3, 2000), (1023, 1024), (2030, 19)]


@pytest.mark.parametrize("at", SLICES)
def test_slices(integers: Filter, texts: Filter, at: tuple[int, int]) -> None:
    numbers = [None if i % 7 == 5 else i for i in range(2049)]
    strings = [None if i % 7 == 5 else text(i) for i in range(2049)]
    start, size = at
    for f, values, kinds in ((integers, numbers, INTEGERS[1:4]), (texts, strings, TEXTS)):
        for kind in kinds:
            if "binary" in str(kind):
                array = pa.array([v if v is None else v.encode() for v in values], kind)
            else:
                array = pa.array(values, kind)
            part = f.probe(array.slice(start, size))
            assert part.equals(f.probe(array).slice(start, size))
            assert len(part) == min(size, 2049 - start)


def test_dictionaries(integers: Filter, texts: Filter) -> None:
    r = random.Random(4)
    for f, plain in (
        (integers, pa.array([r.choice([None, *range(300)]) for _ in range(2000)])),
        (texts, pa.array([r.choice([None, *map(text, range(300))]) for _ in range(2000)])),
    ):
        want = f.probe(plain)
        array = plain.dictionary_encode()
        assert f.probe(array).equals(want)
        assert f.probe(array.slice(100, 50)).equals(want.slice(100, 50))
        assert f.probe(array.slice(100, 0)).to_pylist() == []
        with_null = pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None]), pa.array([None, plain[1]])
        )
        assert f.probe(with_null).to_pylist() == [False, f.probe(plain)[1].as_py(), False]


def test_run_end_encoded(integers: Filter) -> None:
    array = pa.RunEndEncodedArray.from_arrays([3, 5, 6], pa.array([3, None, 4]))
    want = [True, True, True, False, False, integers.probe(pa.array([4]))[0].as_py()]
    assert integers.probe(array).to_pylist() == want


def test_extension_types(tmp_path: Path) -> None:
    r = random.Random(5)
    ids = [r.randbytes(16) for _ in range(100)]
    f = Filter.load(golden.build(tmp_path, pa.array(ids, pa.binary(16)), *KINDS["split-256"]))
    if hasattr(pa, "uuid"):
        array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([*ids, None], pa.binary(16)))
        assert f.probe(array).to_pylist() == [True] * 100 + [False]


def test_chunks_and_nothing(integers: Filter) -> None:
    chunks = integers.probe(pa.chunked_array([[0, 1], [], [None, 3]], pa.int64()))
    assert isinstance(chunks, pa.ChunkedArray)
    assert [len(c) for c in chunks.chunks] == [2, 0, 2]
    assert chunks.to_pylist()[::3] == [True, True]
    assert integers.probe(pa.chunked_array([], pa.int64())).to_pylist() == []
    assert integers.probe(pa.array([], pa.int16())).to_pylist() == []
    assert integers.probe(pa.nulls(3)).to_pylist() == [False] * 3
    assert integers.probe(pa.nulls(3, pa.int64())).to_pylist() == [False] * 3


def test_answers_are_like_questions(integers: Filter) -> None:
    np, pd, pl = (pytest.importorskip(m) for m in ("numpy", "pandas", "polars"))
    want = [True, True, False, False]
    values = [0, 3, 1, 2**40]
    values[2] = next(n for n in range(1, N) if n % 3 and not integers.probe(n))
    values[3] = next(n for n in range(2**40, 2**41) if not integers.probe(n))
    for library, of in {"numpy": np.array, "pandas": pd.Series}.items():
        mask = integers.probe(of(values))
        assert type(mask) is np.ndarray, library
        assert mask.dtype == bool
        assert mask.tolist() == want
    for series in (pl.Series(values), pl.concat([pl.Series([v]) for v in values], rechunk=False)):
        assert integers.probe(series).equals(pl.Series(want))
    frame = pd.DataFrame({"id": values, "x": 1}, index=[5, 6, 7, 8])
    assert frame[integers.probe(frame["id"])].index.tolist() == [5, 6]
    assert frame[~integers.probe(frame)]["id"].tolist() == values[2:]
    frame = pl.from_pandas(frame)
    assert frame.filter(integers.probe(frame))["id"].to_list() == values[:2]
    for python in (values, tuple(values), iter(values), dict.fromkeys(values).keys()):
        assert integers.probe(python) == want
    assert integers.probe(range(0)) == []
    assert [v in integers for v in values] == [integers.probe(np.int64(v)) for v in values] == want
    assert (None in integers, pa.scalar(3) in integers) == (False, True)


def test_what_is_no_question(integers: Filter) -> None:
    with pytest.raises(bloomjoin.UsageError, match="one type") as raised:
        integers.probe([0, "secret"])
    assert "secret" not in str(raised.value)
    with pytest.raises(bloomjoin.DataError, match="text"):
        integers.probe("secret")
    with pytest.raises(TypeError, match="one key"):
        [0] in integers  # noqa: B015
    with pytest.raises(TypeError, match="keys"):
        len(integers)
    with pytest.raises(TypeError, match="want"):
        integers.probe(object())
    assert integers


def test_tuples_are_keys_of_several_columns() -> None:
    f = bloomjoin.build({"a": [1, 2], "b": ["x", "y"]}, ["a", "b"], kind="bloom", fpr=1e-9)
    assert f.probe([(1, "x"), (1, "y"), (2, None)]) == [True, False, False]
    assert (f.probe((2, "y")), (2, "x") in f, f.probe([])) == (True, False, [])
    for wrong in ([1], [(1,)], [(1, "x", 0)]):
        with pytest.raises(bloomjoin.UsageError, match="tuples of 2"):
            f.probe(wrong)


def test_text_of_data_frames(texts: Filter) -> None:
    pd, pl = (pytest.importorskip(m) for m in ("pandas", "polars"))
    values = [text(3), None, text(30), text(3)]
    for kind in (pl.String, pl.Categorical, pl.Enum([text(3), text(30)])):
        assert texts.probe(pl.Series(values, dtype=kind)).to_list() == [True, False, True, True]
    for kind in ("object", "string", "category"):
        assert texts.probe(pd.Series(values, dtype=kind)).tolist() == [True, False, True, True]
    frame = pd.DataFrame({"id": values, "x": 1}, index=[5, 6, 7, 8])
    assert texts.probe(frame).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    "rule", ["trim", "lower", "trim,lower", "trim,ascii-only", "trim,lower,ascii-only"]
)
def test_rules(tmp_path: Path, rule: str) -> None:
    ids = [" Anna ", "OTTO\t", "müller", "ÄRGER", "A" * 5000, "", "\u2003x\xa0", "Ⱥ"]
    f = Filter.load(golden.build(tmp_path, pa.array(ids), "--normalize", rule))
    assert f.rule == rule
    values = [v for i in ids for v in (i, i.strip(), i.lower(), i.upper(), i.strip().lower())]
    values += [None, "\v\f\r\n x", "Anna", "\x85anna", "x"]
    ascii_only = [v for v in values if v is None or v.isascii()]
    for column in (values, ascii_only):
        table = pa.table({"k": column})
        run = golden.scanned(tmp_path, f, table, "k")
        of = table["k"].chunk(0)
        for array in (of, of.dictionary_encode(), of.cast(pa.binary()), of.cast(pa.string_view())):
            assert f.probe(array).to_pylist() == run
        assert sum(run) >= len(ids) // 2


def test_text_beyond_ascii_under_a_rule(tmp_path: Path) -> None:
    values = ["MÜLLER@example.de", "Ok@example.com", "müller@example.de"]
    for rule, want in (
        ("trim,lower", [True, False, True]),
        ("trim,lower,ascii-only", [False, False, True]),
    ):
        f = Filter.load(golden.build(tmp_path, pa.array(values[2:]), "--normalize", rule))
        assert f.probe(pa.array(values)).to_pylist() == want
        assert [v in f for v in values] == want
    kept = golden.TESTDATA / "golden" / "rule-lower.bjf"  # of a version that knew ASCII alone
    f = Filter.load(kept)
    assert f.rule == "lower,ascii-only"
    assert f.probe(pa.array(["Ärger", "ärger", "ÄRGER", "MÜLLER\t"])).to_pylist() == [
        True,
        False,
        True,
        False,
    ]


def test_table_of_one_column_key(integers: Filter) -> None:
    table = pa.table({"id": [0, 1], "other": ["a", "b"]})
    assert integers.probe(table).to_pylist()[0] is True
    assert integers.probe(table.to_batches()[0]).to_pylist()[0] is True
    structs = pa.array([{"id": 0, "x": "a"}, None, {"id": None, "x": "b"}])
    assert integers.probe(structs).to_pylist() == [True, False, False]
    with pytest.raises(DataError, match="no column 'id'"):
        integers.probe(pa.table({"a": [1], "b": [2]}))


def test_paths_of_columns() -> None:
    table = pa.table({"a": [{"b": 1}, None], "c.d": [3, 4]})
    names = ("a.b", '"c.d"')
    assert _keys.select(table, names).to_pydict() == {"a.b": [1, None], '"c.d"': [3, 4]}
    assert _keys.select(table, ("c.d", "a.b")).column(0).to_pylist() == [3, 4]
    for missing in ("a.x", "c", "c.d.e", ""):
        with pytest.raises(DataError, match="no column"):
            _keys.select(table, ("a.b", missing))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pa.array(["1"]), ["integer (the filter)", "text or binary (string)", "pa.int64()"]),
        (pa.array([b"1"], pa.binary(1)), ["fixed[1]"]),
        (pa.array([True]), ["boolean"]),
        (pa.array([0], pa.timestamp("s")), ["timestamp"]),
        (pa.array([[1]]), ["list<item: int64>", "cannot be keys"]),
    ],
    ids=str,
)
def test_wrong_class(integers: Filter, values: pa.Array, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        integers.probe(values)
    for word in ["key 'id'", *words]:
        assert word in str(caught.value)


def test_portable_code_gives_the_same_answers(integers: Filter, texts: Filter) -> None:
    r = random.Random(6)
    numbers = pa.array([r.randint(-N, 2 * N) for _ in range(5001)])
    strings = pa.array([text(r.randrange(N)) for _ in range(5001)])
    for f, key_class, array in ((integers, "integer", numbers), (texts, "bytes", strings)):
        held = f._held()
        masks = [_keys.probe(held, key_class, array, portable=p) for p in (False, True)]
        assert masks[0].equals(masks[1])
        assert masks[0].equals(f.probe(array))


def test_hash_of_eight_bytes_is_that_of_the_library(tmp_path: Path) -> None:
    """The loop over integers spells XXH3 out: it must agree with the one over bytes."""
    r = random.Random(7)
    values = [r.getrandbits(64) for _ in range(4099)]
    numbers = pa.array(values, pa.uint64())
    eight = pa.Array.from_buffers(pa.binary(8), len(numbers), [None, numbers.buffers()[1]])
    held = Filter.load(golden.build(tmp_path, numbers.slice(0, 2000), *KINDS["split-512"]))._held()
    assert _native.cpu() in (0, 1, 3)
    for seed in (0, 7, (1 << 64) - 1):
        for portable in (False, True):
            of = list(held.native(portable=portable))
            of[5] = seed
            masks = [_keys._probe_plain(tuple(of), a) for a in (numbers, eight)]
            assert masks[0].equals(masks[1])
            assert 0 < masks[0].true_count < 4099


def test_partial_filter_loads_but_does_not_answer() -> None:
    f = Filter.load(golden.TESTDATA / "golden/bloom-partial.bjf")
    assert not f.sealed
    assert "shards 4 of 19" in repr(f)
    with pytest.raises(DataError, match="merge all partial filters"):
        f.probe(pa.array([1]))


@pytest.mark.parametrize("path", golden.FILES, ids=golden.name_of)
def test_golden_filters_answer_as_a_scan(tmp_path: Path, path: Path) -> None:
    f = Filter.load(path)
    if not f.sealed or len(f.key_names) > 1:
        pytest.skip("no key of one column, or a partial filter")
    r = random.Random(path.stem)
    for values in VALUES[f.key_classes[0]](r):
        got = f.probe(values).to_pylist()
        table = pa.table({"k": values})
        assert got == golden.scanned(tmp_path, f, table, "k")


def numbers_to_look_up(r: random.Random) -> list[pa.Array]:
    near = [r.randint(-600, 1200) for _ in range(5000)] + [1 << 40, -(1 << 63), (1 << 63) - 1]
    near += [(1 << 16) * r.randint(0, 5) + r.randint(0, 70_000) for _ in range(20_000)]
    far = [r.getrandbits(r.choice([17, 40, 64])) for _ in range(20_000)] + [(1 << 64) - 1, 1 << 63]
    return [pa.array(near), pa.array(far, pa.uint64())]


def strings_to_look_up(r: random.Random) -> list[pa.Array]:
    known = ["hello", "anna@example.com", "MÜLLER\t", "müller\t", " ANNA@example.com", "Ärger"]
    return [pa.array(known + [f"{r.getrandbits(40):x}" for _ in range(20_000)])]


VALUES: dict[str, Callable[[random.Random], list[pa.Array]]] = {
    "integer": numbers_to_look_up,
    "bytes": strings_to_look_up,
}


class TestFile:
    """What a filter does with its file."""

    def test_pickle(self, tmp_path: Path) -> None:
        path = golden.build(tmp_path, pa.array([1, 2, 3]))
        f = Filter.load(path)
        again = pickle.loads(pickle.dumps(f))
        assert again == f
        assert again.path == str(path)
        assert len(pickle.dumps(f)) < 400
        assert again.probe(pa.array([2, 9])).to_pylist() == [True, False]
        golden.build(tmp_path, pa.array([4]))
        with pytest.raises(DataError, match="replaced"):
            pickle.loads(pickle.dumps(f))
        assert f.probe(pa.array([2, 9])).to_pylist() == [True, False]

    def test_filter_outlives_its_file(self, tmp_path: Path) -> None:
        path = golden.build(tmp_path, pa.array([1, 2, 3]))
        f = Filter._open(str(path))
        path.unlink()
        assert f.probe(pa.array([2, 9])).to_pylist() == [True, False]
        with f._file() as own:
            assert Filter.load(own) == f
            assert Path(own).stat().st_mode & 0o777 == 0o600
        assert not Path(own).parent.exists()

    def test_merge(self, tmp_path: Path) -> None:
        a = Filter.load(golden.build(tmp_path, pa.array([1, 2]), "--kind", "exact", name="a"))
        b = Filter.load(golden.build(tmp_path, pa.array([2, 3]), "--kind", "exact", name="b"))
        numbers = pa.array([1, 2, 3, 4])
        union, common = a.merge(b), a.merge(b, how="intersect")
        assert union.probe(numbers).to_pylist() == [True, True, True, False]
        assert common.probe(numbers).to_pylist() == [False, True, False, False]
        assert union.path is None
        restored = pickle.loads(pickle.dumps(union))
        assert restored.probe(numbers).equals(union.probe(numbers))
        directory = Path(union._data.name).parent
        assert directory.exists()
        del union
        assert not directory.exists()

    def test_partials(self, tmp_path: Path) -> None:
        golden.write_arrow(tmp_path / "ids.arrow", pa.table({"id": range(1000)}))
        parts = []
        for shard in ("0/2", "1/2"):
            out = tmp_path / f"part{shard[0]}.bjf"
            args = ["build", "--key", "id", "--shard", shard, "-o", str(out)]
            _process.run([*args, str(tmp_path / "ids.arrow")])
            parts.append(Filter.load(out))
        whole = parts[0].merge(parts[1], how="partials")
        assert whole.sealed
        assert whole.probe(pa.array(range(1000))).true_count == 1000

    def test_threads_may_read_the_payload_at_once(self, tmp_path: Path) -> None:
        from concurrent.futures import ThreadPoolExecutor

        path = str(golden.build(tmp_path, pa.array(range(0, 10**6, 3)), "--kind", "bloom"))
        for _ in range(5):
            f = Filter._open(path)
            with ThreadPoolExecutor(8) as pool:
                masks = list(pool.map(lambda _, f=f: f.probe(pa.array([0, 3, 6])), range(8)))
            assert all(m.to_pylist() == [True] * 3 for m in masks)

    def test_uncompressed_file_is_mapped(self, tmp_path: Path) -> None:
        ids = pa.array(range(0, 10**6, 3))
        args = ["--kind", "bloom", "--fpr", "0.01"]
        packed = Filter.load(golden.build(tmp_path, ids.slice(0, 9), "--capacity", "99999", *args))
        mapped = Filter.load(golden.build(tmp_path, ids, "--uncompressed", *args, name="raw"))
        assert not packed._held().mapped
        assert mapped._held().mapped
        assert mapped.probe(ids).true_count == len(ids)

    def test_notebook_table_escapes_names(self, tmp_path: Path) -> None:
        golden.write_arrow(tmp_path / "x.arrow", pa.table({"<b>": [1]}))
        out = tmp_path / "<i>.bjf"
        _process.run(["build", "--key", "<b>", "-o", str(out), str(tmp_path / "x.arrow")])
        shown = Filter.load(out)._repr_html_()
        assert "&lt;b&gt;" in shown
        assert "<b>" not in shown
        assert "<i>" not in shown
