package prune

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/exact"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
)

// vector is a file that can be pruned, and a fault that would lose rows if it were
// pruned nevertheless. Left and kept are the rows that remain without and with the
// fault.
type vector struct {
	name  string
	spec  spec
	left  string
	fault func(s *spec)
	kept  string
}

const everything = "0-300"

var threePages = []specPage{
	{rows: 100, min: i64(0), max: i64(99)}, {rows: 100, min: i64(100), max: i64(199)}, {rows: 100, min: i64(200), max: i64(299)},
}

func vectors() []vector {
	integer := []keys.Class{keys.Integer}
	text := []keys.Class{keys.Bytes}
	flat := spec{leaf: leaf(format.Int64, false, nil), classes: integer, stats: bounds(i64(0), i64(299)), set: ints(1000)}.base()
	paged := spec{leaf: leaf(format.Int64, false, nil), classes: integer, stats: bounds(i64(0), i64(299)), set: ints(150), pages: threePages}.base()
	words := spec{leaf: leaf(format.ByteArray, false, new(format.StringType)), classes: text,
		stats: bounds([]byte("ab"), []byte("b")), lo: []byte("c"), hi: []byte("d")}.base()
	wide := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00} // -256
	return []vector{
		{"bounds of the wrong name", flat, "", func(s *spec) {
			s.stats = meta.Statistics{Min: s.stats.MinValue, Max: s.stats.MaxValue}
		}, everything},
		{"no column orders", flat, "", func(s *spec) { s.orders = nil }, "all"},
		{"an unknown column order", flat, "", func(s *spec) { s.orders = []format.ColumnOrder{{}} }, "all"},
		{"more column orders than columns", flat, "", func(s *spec) { s.orders = append(s.orders, typed) }, "all"},
		{"a writer that cuts bounds off", flat, "", func(s *spec) { s.by = "hyparquet" }, "all"},
		{"swapped bounds", flat, "", func(s *spec) {
			s.stats = bounds(i64(2000), i64(5)) // in an order of the writer's own
		}, everything},
		{"no upper bound", flat, "", func(s *spec) { s.stats.MaxValue.Valid = false }, everything},
		{"no lower bound", with(flat, func(s *spec) { s.set = ints(-1) }), "", func(s *spec) { s.stats.MinValue.Valid = false }, everything},
		{"a bound too short", flat, "", func(s *spec) { s.stats.MaxValue.V = i32(299) }, everything},
		{"an empty bound", flat, "", func(s *spec) { s.stats.MaxValue.V = nil }, everything},
		{"members on both sides", flat, "", func(s *spec) { s.set = ints(-1, 5, 1000) }, everything},

		// Integers of every kind, by value.
		{"int64 in the low bits of int32", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = leaf(format.Int32, false, nil), bounds(i32(0), i32(10)), ints(1<<32+5)
		}), "", func(s *spec) { s.set = ints(1<<32+5, 7) }, everything},
		{"-1 is not 2^64-1", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = unsignedLeaf(64, false), bounds(i64(5), i64(-1)), ints(-1)
		}), "", func(s *spec) { s.set = naturals(math.MaxUint64) }, everything},
		{"2^64-1 is not -1", with(flat, func(s *spec) {
			s.stats, s.set = bounds(i64(-5), i64(-1)), naturals(math.MaxUint64)
		}), "", func(s *spec) { s.set = ints(-1) }, everything},
		{"unsigned bounds in signed order", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = unsignedLeaf(32, false), bounds(i32(1), i32(9)), naturals(3_000_000_000)
		}), "", func(s *spec) { s.stats = bounds(i32(-1_294_967_296), i32(9)) }, everything},
		{"unsigned bounds merged in signed order", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = unsignedLeaf(32, false), bounds(i32(1), i32(9)), naturals(3_000_000_000)
		}), "", func(s *spec) { s.by = "Polars" }, "all"},
		{"unsigned NULLs taken for zeros", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = unsignedLeaf(64, true), bounds(i64(1), i64(9)), naturals(12)
			s.by = "parquet-go version 18.1.0"
		}), "", func(s *spec) { s.by = "parquet-go version 15.0.2" }, "all"},
		{"a value outside of a byte", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = unsignedLeaf(8, false), bounds(i32(1), i32(9)), ints(12)
		}), "", func(s *spec) { s.stats = bounds(i32(-1), i32(9)) }, everything},

		// Time, by instant or clock.
		{"milliseconds are not nanoseconds", with(flat, func(s *spec) {
			s.leaf, s.stats = stampLeaf(new(format.MilliSeconds), true), bounds(i64(1000), i64(2000))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Instant}, stamp(2, 1), stamp(900, 0), nil
		}), "", func(s *spec) { s.lo, s.hi = stamp(1, 500_000_000), stamp(1, 500_000_000) }, everything},
		{"before 1970 the fraction counts up", with(flat, func(s *spec) {
			s.leaf, s.stats = stampLeaf(new(format.MicroSeconds), false), bounds(i64(-1_500_000), i64(-1_400_000))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Timestamp}, stamp(-2, 600_000_001), stamp(-1, 0), nil
		}), "", func(s *spec) { s.lo, s.hi = stamp(-2, 550_000_000), stamp(-2, 550_000_000) }, everything},
		{"a second that no column of nanoseconds holds", with(flat, func(s *spec) {
			s.leaf, s.stats = stampLeaf(new(format.NanoSeconds), false), bounds(i64(math.MinInt64), i64(math.MaxInt64))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Timestamp}, stamp(1<<40, 0), stamp(1<<41, 0), nil
		}), "", func(s *spec) { s.lo = stamp(9_000_000_000, 0) }, everything},
		{"INT96 has no order", with(flat, func(s *spec) {
			s.leaf, s.stats = stampLeaf(new(format.NanoSeconds), false), bounds(i64(0), i64(9))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Timestamp}, stamp(1, 0), stamp(1, 0), nil
		}), "", func(s *spec) {
			s.leaf, s.stats = leaf(format.Int96, false, nil), bounds(make([]byte, 12), make([]byte, 12))
		}, "all"},
		{"dates are days", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int32, false, new(format.DateType)), bounds(i32(-3), i32(9))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Date}, i64(10), i64(86400), nil
		}), "", func(s *spec) { s.lo, s.hi = i64(-3), i64(-3) }, everything},

		// Decimals, by value.
		{"1.5 and 1.50", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, false, decimalType(18, 2)), bounds(i64(100), i64(200))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(3, 0x07, 0xd1), decimal(-1, 3), nil // 2.001, 30
		}), "", func(s *spec) { s.lo, s.hi = decimal(1, 15), decimal(1, 15) }, everything},
		{"between two decimals there are more", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int32, false, decimalType(9, 0)), bounds(i32(1), i32(2))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(1, 15), decimal(1, 15), nil // 1.5, which is not an integer
		}), "", func(s *spec) { s.hi = decimal(0, 2) }, everything},
		{"negative decimals of 16 bytes", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(16, decimalType(38, 2)), bounds(wide, make([]byte, 16)) // -2.56, 0
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(2, 1), decimal(0, 1), nil
		}), "", func(s *spec) { s.lo = decimal(0, 0xfe) }, everything},
		{"decimals compared without their sign", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(16, decimalType(38, 2)), bounds(make([]byte, 16), wide[:16])
			s.stats = bounds(make([]byte, 16), append(make([]byte, 15), 9))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(0, 0xff), decimal(0, 0xff), nil
		}), "", func(s *spec) { s.by = "parquet-cpp version 1.5.1-SNAPSHOT" }, "all"},
		{"a scale too large to expand", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, false, decimalType(18, 2)), bounds(i64(100), i64(200))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(0, 9), decimal(0, 9), nil
		}), "", func(s *spec) { s.lo = decimal(math.MinInt32, 9) }, "all"},
		{"decimals of any length", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(1, decimalType(2, 0)), bounds([]byte{1}, []byte{2})
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Decimal}, decimal(0, 9), decimal(0, 9), nil
		}), "", func(s *spec) { s.leaf = leaf(format.ByteArray, false, decimalType(2, 0)) }, "all"},

		// Floats: NaN and both zeros.
		{"NaN in the bounds", flat, "", func(s *spec) {
			s.leaf, s.stats = leaf(format.Double, false, nil), bounds(f64(math.NaN()), f64(math.NaN()))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Float}, f64(1), f64(1), nil
		}, "all"},
		{"-0 is 0", flat, "", func(s *spec) {
			s.leaf, s.stats = leaf(format.Double, false, nil), bounds(f64(math.Copysign(0, -1)), f64(math.Copysign(0, -1)))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Float}, f64(0), f64(0), nil
		}, "all"},

		// Strings, by unsigned bytes.
		{"a lower bound that was cut off", words, "", func(s *spec) { s.lo = []byte("ab") }, everything},
		{"an upper bound that was cut off and raised", words, "", func(s *spec) { s.lo = []byte("azz") }, everything},
		{"an upper bound that could not be raised", with(words, func(s *spec) {
			s.stats.MaxValue.V, s.lo, s.hi = []byte("\xff\xfe"), []byte("\xff\xff"), []byte("\xff\xff\x01")
		}), "", func(s *spec) { s.stats.MaxValue.V = []byte("\xff\xff") }, everything},
		{"bytes have no sign", with(words, func(s *spec) {
			s.lo, s.hi = []byte("z"), []byte("zz")
		}), "", func(s *spec) { s.stats = bounds([]byte("\xc3\xa9"), []byte("b")) }, everything},
		{"empty values that the minimum left out", with(words, func(s *spec) {
			s.lo, s.hi = []byte("a"), []byte("aa")
		}), "", func(s *spec) { s.lo = []byte{} }, "all"},
		{"strings of an unknown writer", words, "", func(s *spec) { s.by = "Parquet.Net version 6.0.3" }, "all"},
		{"strings without a writer", words, "", func(s *spec) { s.by = " " }, "all"},
		{"UUIDs compared wrong", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(16, new(format.UUIDType)), bounds(make([]byte, 16), bytes.Repeat([]byte{3}, 16))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Fixed(16)}, bytes.Repeat([]byte{4}, 16), bytes.Repeat([]byte{5}, 16), nil
		}), "", func(s *spec) { s.by = "github.com/parquet-go/parquet-go version 0.32.0(build )" }, "all"},
		{"strings compared by their length first", words, "", func(s *spec) { s.by = "parquet-rs version 5.0.0 (build 1)" }, "all"},
		{"bounds in reused memory", words, "", func(s *spec) { s.by = "github.com/segmentio/parquet-go version 0.1.0(build )" }, "all"},
		{"fixed width, a bound cut off", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(3, nil), bounds([]byte("abc"), []byte("abd"))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Fixed(3)}, []byte("abe"), []byte("abf"), nil
		}), "", func(s *spec) { s.stats.MaxValue.V = []byte("ab") }, everything},
		{"an interval has no order", with(flat, func(s *spec) {
			s.leaf, s.stats = fixedLeaf(12, nil), bounds(make([]byte, 12), make([]byte, 12))
			s.classes, s.lo, s.hi, s.set = []keys.Class{keys.Fixed(12)}, bytes.Repeat([]byte{1}, 12), bytes.Repeat([]byte{2}, 12), nil
		}), "", func(s *spec) { s.leaf.ConvertedType = thrift.New(deprecated.Interval) }, "all"},

		// NULLs.
		{"an unknown number of NULLs", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, true, nil), meta.Statistics{NullCount: thrift.New[int64](300)}
		}), "", func(s *spec) { s.stats.NullCount.Valid = false }, everything},
		{"one value among NULLs", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, true, nil), meta.Statistics{NullCount: thrift.New[int64](300)}
		}), "", func(s *spec) { s.stats.NullCount.V = 299 }, everything},
		{"NULLs in a column that has none", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, true, nil), meta.Statistics{NullCount: thrift.New[int64](300)}
		}), "", func(s *spec) { s.leaf = leaf(format.Int64, false, nil) }, everything},
		{"NULLs only, and bounds", with(flat, func(s *spec) {
			s.leaf, s.stats = leaf(format.Int64, true, nil), meta.Statistics{NullCount: thrift.New[int64](300)}
		}), "", func(s *spec) {
			s.stats = bounds(i64(999), i64(1001))
			s.stats.NullCount = thrift.New[int64](300)
		}, everything},
		{"a page of NULLs with a count of none", nullPages(paged), "100-200", func(s *spec) { s.pages[0].nulls = 0 }, "0-200"},
		{"a page of unknown NULLs", nullPages(paged), "100-200", func(s *spec) { s.pages[0].nulls = -1 }, "0-200"},
		{"pages of NULLs, uncounted", nullPages(paged), "100-200", func(s *spec) { s.counts = false }, "0-200"},
		{"pages of NULLs in a column that has none", nullPages(paged), "100-200", func(s *spec) { s.leaf = leaf(format.Int64, false, nil) }, "0-200"},

		// Pages.
		{"an order that the pages do not have", paged, "100-200", func(s *spec) {
			s.claim = format.Ascending
			s.pages = []specPage{threePages[1], threePages[0], threePages[1]}
		}, "0-100 200-300"},
		{"a page's swapped bounds", paged, "100-200", func(s *spec) { s.pages[0].min = i64(1000) }, "0-200"},
		{"a page without bounds", paged, "100-200", func(s *spec) { s.pages[2].min, s.pages[2].max = nil, nil }, "100-300"},
		{"a page whose bound is too short", paged, "100-200", func(s *spec) { s.pages[2].min = []byte{0} }, "100-300"},
		{"a string page without an upper bound", with(words, func(s *spec) {
			s.stats = meta.Statistics{}
			s.pages = []specPage{{rows: 100, min: []byte("a"), max: []byte("b")}, {rows: 200, min: []byte("c"), max: []byte("d")}}
		}), "100-300", func(s *spec) { s.pages[0].max = nil }, everything},
		{"a string page that may be empty", with(words, func(s *spec) {
			s.stats = meta.Statistics{}
			s.pages = []specPage{{rows: 100, min: []byte(""), max: []byte("b")}, {rows: 200, min: []byte("c"), max: []byte("d")}}
		}), "100-300", func(s *spec) { s.pages[0].max = nil }, everything},
		{"pages in an unknown order", paged, "100-200", func(s *spec) { s.orders = nil }, "all"},

		// Parquet's Bloom filters.
		{"hashes of 32 bits", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = leaf(format.Int32, false, nil), bounds(i32(0), i32(299)), ints(7)
			s.bloom = parquetBloom(i32(8), i32(-9))
		}), "", func(s *spec) { s.bloom = parquetBloom(i32(7)) }, everything},
		{"a negative member of 32 bits", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = leaf(format.Int32, false, nil), bounds(i32(-300), i32(299)), ints(-9)
			s.bloom = parquetBloom(i32(8))
		}), "", func(s *spec) { s.bloom = parquetBloom(i32(-9)) }, everything},
		{"hashes of 64 bits", with(flat, func(s *spec) {
			s.set, s.bloom = ints(7), parquetBloom(i32(7), i64(8))
		}), "", func(s *spec) { s.bloom = parquetBloom(i64(7)) }, everything},
		{"hashes of what was stored in 32 bits", with(flat, func(s *spec) {
			s.leaf, s.stats, s.set = leaf(format.Int32, false, nil), bounds(i32(0), i32(99)), ints(7)
			s.bloom = parquetBloom([]byte{7})
		}), "", func(s *spec) { s.leaf = unsignedLeaf(8, false) }, everything},
		{"a Bloom filter written from freed memory", with(flat, func(s *spec) {
			s.set, s.bloom = ints(7), parquetBloom()
		}), "", func(s *spec) { s.by = "parquet-go version 18.4.0" }, everything},
		{"a Bloom filter, and swapped bounds", with(flat, func(s *spec) {
			s.set, s.bloom = ints(7, 1000), parquetBloom(i64(8))
		}), "", func(s *spec) { s.stats, s.bloom = bounds(i64(2000), i64(8)), parquetBloom(i64(1000)) }, everything},
		{"a Bloom filter with one of two members", with(paged, func(s *spec) {
			s.set, s.bloom = ints(7, 250), parquetBloom(i64(250))
		}), "200-300", func(s *spec) { s.bloom = parquetBloom(i64(250), i64(7)) }, "0-100 200-300"},
	}
}

func with(s spec, change func(s *spec)) spec {
	s.pages = slices.Clone(s.pages)
	change(&s)
	return s
}

func nullPages(s spec) spec {
	return with(s, func(s *spec) {
		s.leaf = leaf(format.Int64, true, nil)
		s.pages[0] = specPage{rows: 100, null: true, nulls: 100}
	})
}

// parquetBloom returns a Parquet Bloom filter of plain values.
func parquetBloom(values ...[]byte) []byte {
	hash := bloom.Hash{ID: bloom.XXH64}
	f, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: hash, Blocks: 64})
	if err != nil {
		panic(err)
	}
	for _, v := range values {
		f.Add([]uint64{hash.Sum(v)})
	}
	return f.AppendBlocks(nil, 0, 64)
}

func TestPrune(t *testing.T) {
	for _, v := range vectors() {
		t.Run(strings.ReplaceAll(v.name, " ", "_"), func(t *testing.T) {
			got, _, err := pruned(t, v.spec.file(t), v.spec.members())
			if err != nil || got != v.left {
				t.Errorf("without the fault: %q left, %v, want %q", got, err, v.left)
			}
			s := with(v.spec, v.fault)
			got, _, err = pruned(t, s.file(t), s.members())
			if err != nil || got != v.kept {
				t.Errorf("with the fault: %q left, %v, want %q", got, err, v.kept)
			}
		})
	}
}

// parquet-mr marks pages full of values as pages of NULLs if it got them without
// statistics.
func TestPruneKeepsFalseNullPages(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("../parquet/testdata", "datapage_v1-snappy-compressed-checksum.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	s := spec{classes: []keys.Class{keys.Integer}, set: ints(12345678)}
	m := s.members()
	m.columns = "a"
	got, nulls, err := pruned(t, file, m)
	if got != "0-5120" || nulls != 0 || err != nil {
		t.Errorf("%q left, %d NULLs outside, %v", got, nulls, err)
	}
}

// The number of pruned rows whose key is NULL is correct or unknown.
func TestPruneNulls(t *testing.T) {
	base := spec{leaf: leaf(format.Int64, true, nil), classes: []keys.Class{keys.Integer}, set: ints(150), pages: threePages,
		stats: bounds(i64(0), i64(299))}.base()
	for _, c := range []struct {
		name   string
		change func(s *spec)
		left   string
		nulls  int64
	}{
		{"pages", func(s *spec) { s.pages[0].nulls, s.pages[1].nulls, s.pages[2].nulls = 3, 50, 4 }, "100-200", 7},
		{"one page uncounted", func(s *spec) { s.pages[0].nulls, s.pages[2].nulls = -1, 4 }, "100-200", -1},
		{"the remaining page uncounted", func(s *spec) { s.pages[1].nulls = -1 }, "100-200", 0},
		{"uncounted", func(s *spec) { s.counts = false }, "100-200", -1},
		{"none in the chunk", func(s *spec) { s.counts, s.stats.NullCount = false, thrift.New[int64](0) }, "100-200", 0},
		{"the whole chunk", func(s *spec) { s.set, s.stats.NullCount = ints(-5), thrift.New[int64](17) }, "", 17},
		{"the whole chunk uncounted", func(s *spec) { s.set, s.counts = ints(-5), false }, "", -1},
		{"more than there are rows", func(s *spec) { s.set, s.pages, s.stats.NullCount = ints(-5), nil, thrift.New[int64](301) }, "", -1},
		{"a negative number", func(s *spec) { s.set, s.pages, s.stats.NullCount = ints(-5), nil, thrift.New[int64](-1) }, "", -1},
		{"required", func(s *spec) { s.set, s.leaf = ints(-5), leaf(format.Int64, false, nil) }, "", 0},
		{"nothing outside", func(s *spec) { s.set, s.counts = ints(50, 150, 250), false }, "0-300", 0},
		{"no members at all", func(s *spec) { s.set, s.stats.NullCount = exact.New(), thrift.New[int64](17) }, "", 17},
	} {
		s := with(base, c.change)
		left, nulls, err := pruned(t, s.file(t), s.members())
		if left != c.left || nulls != c.nulls || err != nil {
			t.Errorf("%s: %q left, %d NULLs outside, %v, want %q and %d", c.name, left, nulls, err, c.left, c.nulls)
		}
	}
}

// An index that contradicts the format is corrupt, and is not used for pruning.
func TestPruneBrokenIndex(t *testing.T) {
	base := spec{leaf: leaf(format.Int64, false, nil), classes: []keys.Class{keys.Integer}, set: ints(150), pages: threePages}.base()
	for name, change := range map[string]func(s *spec){
		"a row in two pages":         func(s *spec) { s.pages[0].rows, s.rows = 0, 300 },
		"a page after the rows":      func(s *spec) { s.rows = 200 },
		"more NULLs than rows":       func(s *spec) { s.leaf, s.pages[0].nulls = leaf(format.Int64, true, nil), 101 },
		"a negative number of NULLs": func(s *spec) { s.pages[0].nulls = -2 },
		"pages outside the chunk": func(s *spec) {
			s.rows, s.pages = 1000, slices.Repeat([]specPage{{rows: 1, min: i64(0), max: i64(1)}}, 700)
		},
	} {
		s := with(base, change)
		_, _, err := pruned(t, s.file(t), s.members())
		var f *fault.Error
		if !errors.Is(err, fault.ErrCorrupt) || !errors.As(err, &f) || f.At.RowGroup != 1 || f.At.Column != "k" || f.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
