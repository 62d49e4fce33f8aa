"""The C extension. It checks nothing: callers keep memory alive and know its size.

A set is (kind, address, second address, blocks, hash, seed, rule, portable):
kind 1 and 2 are Bloom filters with blocks of 256 and 512 bits, whose second address
is that of an index of hashes that do not pass, or 0; kind 3 is an exact set, whose
addresses are those of the indexes of the natural and of the negative numbers. Rule
has the bits trim, lower and Unicode; under the last, probes of text beyond ASCII raise
NotImplementedError. With portable, only portable code runs.

Rows are (number, address of the validity bitmap or 0, its offset in bits, address
of the results). The results are a bitmap without offset; NULL rows are 0 there.

A measure of a part of an exact payload is (members, first, last, words, size in
form 1, size in form 2).
"""

from typing import TypeAlias

_Set: TypeAlias = tuple[int, int, int, int, int, int, int, bool]
_Rows: TypeAlias = tuple[int, int, int, int]
_Measure: TypeAlias = tuple[int, int, int, int]

def xxh3(address: int, size: int, seed: int = 0, /) -> int: ...
def xxh64(address: int, size: int, /) -> int: ...
def probe_ints(of: _Set, rows: _Rows, values: int, width: int, is_signed: bool, /) -> None: ...
def probe_offsets(of: _Set, rows: _Rows, offsets: int, width: int, data: int, /) -> None: ...
def probe_fixed(of: _Set, rows: _Rows, data: int, width: int, /) -> None: ...
def probe_views(of: _Set, rows: _Rows, views: int, buffers: int, /) -> None:
    """Look up views; buffers is the address of an array of addresses."""

def bloom_fpr(of: _Set, /) -> float: ...
def counters(address: int, size: int, bits: int, /) -> int:
    """Write the bits of counters, size / 4 bytes; return the number of saturated ones."""

def exact_measure(address: int, size: int, negative: bool, /) -> _Measure:
    """Check a part, and raise ValueError with what is wrong with it."""

def index_bytes(kind: int, measure: _Measure, /) -> int: ...
def index_build(
    index: int,
    kind: int,
    measure: _Measure,
    address: int,
    size: int,
    negative: bool,
    /,
) -> None:
    """Build an index of kind 1 (flat bitmap) or 2 (hash table) in zeroed memory."""

def cpu() -> int:
    """Return the features that are used: 1 AVX2, 2 AVX-512."""
