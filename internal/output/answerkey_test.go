package output

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/pagecopy"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// PLAIN values, without lengths.
func i32(x int32) string      { return string(binary.LittleEndian.AppendUint32(nil, uint32(x))) }
func i64(x int64) string      { return string(binary.LittleEndian.AppendUint64(nil, uint64(x))) }
func f32(x float32) string    { return i32(int32(math.Float32bits(x))) }
func f64(x float64) string    { return i64(int64(math.Float64bits(x))) }
func be(b ...byte) string     { return string(b) }
func same(v string) [2]string { return [2]string{v, v} }

const misfit = "misfit"

// TestSharedKeys: IDs without a log row have their keys in the log's column, in its
// type. A key without an equal there is an error, and two types whose values are not
// simply each other's are left to records.
func TestSharedKeys(t *testing.T) {
	for _, c := range []struct {
		log, ids string      // leaves
		values   [][2]string // of the IDs, and what the log's column has
		unfit    bool
	}{
		{log: "int64 k", ids: "int64 k", values: [][2]string{same(i64(math.MinInt64))}},
		{log: "int64 k", ids: "int32 k", values: [][2]string{{i32(-5), i64(-5)}, {i32(math.MaxInt32), i64(math.MaxInt32)}}},
		{log: "int64 k", ids: "int32 k @UINT32", values: [][2]string{{i32(-1), i64(math.MaxUint32)}}},
		{log: "int32 k", ids: "int64 k", values: [][2]string{{i64(-5), i32(-5)}, {i64(math.MaxInt32), i32(math.MaxInt32)}}},
		{log: "int32 k", ids: "int64 k", values: [][2]string{{i64(math.MaxInt32 + 1), misfit}}},
		{log: "int32 k", ids: "int64 k", values: [][2]string{{i64(math.MinInt32 - 1), misfit}}},
		{log: "int32 k @INT8", ids: "int32 k", values: [][2]string{same(i32(-128)), same(i32(127))}},
		{log: "int32 k @INT8", ids: "int32 k", values: [][2]string{{i32(128), misfit}}},
		{log: "int32 k @UINT32", ids: "int64 k", values: [][2]string{{i64(math.MaxUint32), i32(-1)}}},
		{log: "int32 k @UINT32", ids: "int64 k", values: [][2]string{{i64(-1), misfit}}},
		{log: "int64 k @UINT64", ids: "int64 k", values: [][2]string{same(i64(math.MaxInt64))}},
		{log: "int64 k @UINT64", ids: "int64 k", values: [][2]string{{i64(-1), misfit}}},
		{log: "int64 k", ids: "int64 k @UINT64", values: [][2]string{same(i64(math.MaxInt64))}},
		{log: "int64 k", ids: "int64 k @UINT64", values: [][2]string{{i64(-1), misfit}}}, // 2^64-1

		{log: "binary k", ids: "binary k @STRING", values: [][2]string{same("a"), same("")}},
		{log: "binary k @STRING", ids: "binary k", values: [][2]string{same("\u00e9")}},
		{log: "binary k @STRING", ids: "binary k", values: [][2]string{{"\xff", misfit}}},
		{log: "binary k @STRING", ids: "binary k ~0", values: [][2]string{same("a")}},
		{log: "fixed:16 k", ids: "fixed:16 k @UUID", values: [][2]string{same("0123456789abcdef")}},
		{log: "fixed:2 k", ids: "binary k", unfit: true},
		{log: "boolean k", ids: "boolean k"},
		{log: "int32 k @DATE", ids: "int32 k @DATE", values: [][2]string{same(i32(1))}},

		{log: "double k", ids: "float k", values: [][2]string{{f32(1.5), f64(1.5)}}},
		{log: "float k", ids: "double k", values: [][2]string{{f64(1.5), f32(1.5)}, {f64(math.Inf(1)), f32(float32(math.Inf(1)))}}},
		{log: "float k", ids: "double k", values: [][2]string{{f64(0.1), misfit}}},
		{log: "float k", ids: "double k", values: [][2]string{{f64(1e300), misfit}}},

		{log: "int64 k @INSTANT(us)", ids: "int64 k @INSTANT(ms)", values: [][2]string{{i64(-7), i64(-7000)}}},
		{log: "int64 k @INSTANT(us)", ids: "int64 k @INSTANT(ms)", values: [][2]string{{i64(math.MaxInt64/1000 + 1), misfit}}},
		{log: "int64 k @INSTANT(ms)", ids: "int64 k @INSTANT(us)", values: [][2]string{{i64(-7000), i64(-7)}}},
		{log: "int64 k @INSTANT(ms)", ids: "int64 k @INSTANT(us)", values: [][2]string{{i64(1), misfit}}},
		{log: "int96 k", ids: "int96 k", values: [][2]string{same("0123456789ab")}},
		{log: "int96 k", ids: "int64 k @INSTANT(us)", unfit: true},

		{log: "fixed:4 k @DECIMAL(9,2)", ids: "int32 k @DECIMAL(9,2)", values: [][2]string{{i32(-2), be(255, 255, 255, 254)}}},
		{log: "fixed:4 k @DECIMAL(9,2)", ids: "fixed:9 k @DECIMAL(20,2)", values: [][2]string{{be(255, 255, 255, 255, 255, 255, 255, 255, 254), be(255, 255, 255, 254)}}},
		{log: "fixed:4 k @DECIMAL(9,2)", ids: "fixed:9 k @DECIMAL(20,2)", values: [][2]string{{be(0, 0, 0, 0, 128, 0, 0, 0, 0), misfit}}},
		{log: "fixed:9 k @DECIMAL(20,2)", ids: "binary k @DECIMAL(9,2)", values: [][2]string{{be(200), be(255, 255, 255, 255, 255, 255, 255, 255, 200)}}},
		{log: "binary k @DECIMAL(20,2)", ids: "int64 k @DECIMAL(9,2)", unfit: true}, // keys are cast as Arrow writes them
		{log: "int32 k @DECIMAL(9,2)", ids: "fixed:4 k @DECIMAL(9,2)", unfit: true},

		{log: "int64 k", ids: "int32 k @NULL"},
		{log: "int32 k @NULL", ids: "int64 k", unfit: true},
	} {
		t.Run(strings.ReplaceAll(c.log+" of "+c.ids, " k", ""), func(t *testing.T) {
			for _, repetition := range []string{"required ", "optional "} {
				log := emptyFile(t, schemaOf(t, "optional "+c.log), nil, nil)
				ids := emptyFile(t, schemaOf(t, repetition+c.ids), nil, nil)
				if strings.Contains(c.ids, "@NULL") && repetition == "required " {
					continue
				}
				checkSharedKey(t, log, ids, c.values, c.unfit)
			}
		})
	}
}

func checkSharedKey(t *testing.T, log, ids *source.File, values [][2]string, unfit bool) {
	t.Helper()
	p := pairsOf(t, log, "k", ids)
	p.KeepTable = true
	l, err := pagecopy.NewPairLayout(log, p, nil)
	if unfit {
		sourcetest.Says(t, "a key", err, nil, "the key k is")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	rest := l.Leaves[0].Rest
	sourcetest.Equal(t, "leaf", rest.Table, 0)
	sourcetest.Equal(t, "highest level", rest.As.MaxDef, 1)
	sourcetest.Equal(t, "shift", int(rest.As.Shift), 1-p.Of.Leaves[0].MaxDef)
	if rest.Cast == nil {
		for _, v := range values {
			sourcetest.Equal(t, "a key", v[1], v[0])
		}
		return
	}
	page, want := &parquet.Page{Values: len(values), Rows: len(values), NonNull: len(values), Def: bytes.Repeat([]byte{1}, len(values))}, ""
	plain := func(of *meta.Leaf, v string) string {
		if of.Width() == 0 {
			return i32(int32(len(v))) + v
		}
		sourcetest.Equal(t, "bytes of a value", len(v), of.Width())
		return v
	}
	fits := true
	for _, v := range values {
		page.Plain = append(page.Plain, plain(&p.Of.Leaves[0], v[0])...)
		if fits = v[1] != misfit; fits {
			want += plain(&log.Parquet().File().Leaves[0], v[1])
		}
	}
	for got, err := range rest.Cast.Pages(func(yield func(*parquet.Page, error) bool) { yield(page, nil) }) {
		if !fits {
			if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "an ID's key of type") {
				t.Errorf("a key that does not fit: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, "keys", string(got.Plain), want)
		sourcetest.Equal(t, "entries", got.Values, len(values))
	}
}
