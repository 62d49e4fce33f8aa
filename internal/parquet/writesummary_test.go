package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// group returns a schema element with children.
func group(name string, children int32, rep format.FieldRepetitionType) SchemaElement {
	return SchemaElement{Name: name, NumChildren: thrift.New(children), RepetitionType: thrift.New(rep)}
}

// writeGroups writes a file with one column and a row group of each list of values,
// of which nil is NULL.
func writeGroups(t *testing.T, e SchemaElement, createdBy string, groups [][][]byte) ([]byte, []LeafSummary) {
	t.Helper()
	e.RepetitionType.Set(format.Optional)
	var out bytes.Buffer
	w, err := NewWriter(&out, []SchemaElement{group("root", 1, format.Required), e}, nil, WriterOptions{CreatedBy: createdBy})
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range groups {
		p := Page{Values: len(values), Rows: len(values), Def: make([]byte, len(values))}
		var there [][]byte
		for i, v := range values {
			if v != nil {
				p.Def[i] = 1
				there = append(there, v)
			}
		}
		p.NonNull, p.Plain = len(there), plainOf(&w.leaves[0], there)
		cw := w.Chunk(0)
		if err := cw.Add(&p, nil); err != nil {
			t.Fatal(err)
		}
		chunk, err := cw.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RowGroup(int64(len(values)), []*EncodedChunk{chunk}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := w.Summaries()
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s
}

// copySummary returns the summary of a copy whose chunks are copied whole.
func copySummary(t *testing.T, b []byte) LeafSummary {
	t.Helper()
	f, err := openBytes(b, "input")
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(new(bytes.Buffer), f.Metadata.Schema, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for g := range f.RowGroups {
		chunk, why, err := w.CopyChunk(context.Background(), f, g, 0, 0, CopyOptions{})
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if err := w.RowGroup(f.RowGroups[g].Rows, []*EncodedChunk{chunk}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Summaries()
	if err != nil {
		t.Fatal(err)
	}
	return s[0]
}

// TestSummaries compares summaries of several row groups, encoded and copied, with
// the values themselves.
func TestSummaries(t *testing.T) {
	for _, c := range statsCases() {
		if c.name == "decimal without bytes" {
			continue // no order only where a value is empty
		}
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(21, 22))
			bounded, rounds := 0, cases.Count(15, 30, 60)
			for range rounds {
				groups := make([][][]byte, 1+rng.IntN(3))
				var all [][]byte
				nulls := int64(0)
				for g := range groups {
					null := rng.IntN(3) // none, some, all
					for range 1 + rng.IntN(8) {
						var v []byte
						if null == 0 || null == 1 && rng.IntN(2) == 0 {
							v = append([]byte{}, c.values(rng)...)
							all = append(all, v)
						} else {
							nulls++
						}
						groups[g] = append(groups[g], v)
					}
				}
				file, s := writeGroups(t, c.leaf(), "", groups)
				if len(s) != 1 {
					t.Fatalf("%d summaries", len(s))
				}
				bounded += c.checkSummary(t, s[0], all, nulls)
				c.checkSummary(t, copySummary(t, file), all, nulls)
			}
			if c.less != nil && c.name != "fixed 2000" && c.name != "ones" && bounded < rounds/3 {
				t.Errorf("%d of %d have bounds", bounded, rounds)
			}
		})
	}
}

// checkSummary returns 1 if the summary has bounds.
func (c *statsCase) checkSummary(t *testing.T, s LeafSummary, all [][]byte, nulls int64) int {
	t.Helper()
	if s.Nulls != nulls {
		t.Fatalf("%d NULLs, want %d", s.Nulls, nulls)
	}
	lo, hi, ok := c.extremesOf(all)
	if !ok {
		if s.Lower != nil || s.Upper != nil {
			t.Fatalf("bounds %x %x of %x", s.Lower, s.Upper, all)
		}
		return 0
	}
	if s.Lower == nil || s.Upper == nil {
		if max(len(lo), len(hi)) <= maxSummaryBound {
			t.Fatalf("no bounds of %x %x", lo, hi)
		}
		return 0
	}
	if c.less(lo, s.Lower) || c.less(s.Upper, hi) {
		t.Fatalf("bounds %x %x do not include %x %x", s.Lower, s.Upper, lo, hi)
	}
	has := func(v []byte) bool {
		for _, x := range all {
			if c.same(x, v) {
				return true
			}
		}
		return false
	}
	if s.ExactLower && !has(s.Lower) || s.ExactUpper && !has(s.Upper) {
		t.Fatalf("bounds %x %x, exact %v %v, of %x", s.Lower, s.Upper, s.ExactLower, s.ExactUpper, all)
	}
	if len(lo) > maxSummaryBound && c.typ == format.ByteArray && len(s.Lower) > maxSummaryBound {
		t.Fatalf("a bound of %d bytes", len(s.Lower))
	}
	return 1
}

// Bounds of integers and short strings are exact, and those of floats but for zeros.
func TestSummaryExact(t *testing.T) {
	double := func(bits uint64) []byte { return binary.LittleEndian.AppendUint64(nil, bits) }
	number, text := SchemaElement{Name: "x", Type: thrift.New(format.Double)}, SchemaElement{Name: "x", Type: thrift.New(format.ByteArray)}
	for _, c := range []struct {
		name   string
		leaf   SchemaElement
		groups [][][]byte
		lo, hi bool
	}{
		{"floats", number, [][][]byte{{double(0x3ff0000000000000)}, {double(0x4000000000000000)}}, true, true},
		{"from zero", number, [][][]byte{{double(0x3ff0000000000000)}, {double(0)}}, false, true},
		{"words", text, [][][]byte{{[]byte("b"), []byte("c")}, {[]byte("")}}, true, true},
		{"a long word", text, [][][]byte{{[]byte("b")}, {bytes.Repeat([]byte("c"), 33)}}, true, false},
	} {
		_, s := writeGroups(t, c.leaf, "", c.groups)
		if s[0].Lower == nil || s[0].ExactLower != c.lo || s[0].ExactUpper != c.hi {
			t.Errorf("%s: %+v", c.name, s[0])
		}
	}
}

// Arrow's Go writer leaves empty strings out of the bounds, which a copied chunk
// still has.
func TestSummaryOfCopiedEmpty(t *testing.T) {
	leaf := SchemaElement{Name: "x", Type: thrift.New(format.ByteArray)}
	for by, want := range map[string]string{"parquet-go version 15.0.2": "", "parquet-mr version 1.13.1": "b"} {
		b, _ := writeGroups(t, leaf, by, [][][]byte{{[]byte("b"), []byte("c")}})
		s := copySummary(t, b)
		if s.Lower == nil || string(s.Lower) != want || s.ExactLower != (want == "b") || string(s.Upper) != "c" {
			t.Errorf("%s: %q to %q, exact %v", by, s.Lower, s.Upper, s.ExactLower)
		}
	}
}

// Summaries leave out lists, leaves of annotated groups, and paths that two leaves
// share, and stop after 32.
func TestSummarisedLeaves(t *testing.T) {
	leaf := func(name string, rep format.FieldRepetitionType) SchemaElement {
		return SchemaElement{Name: name, Type: thrift.New(format.Int32), RepetitionType: thrift.New(rep), FieldID: thrift.New(int32(len(name)))}
	}
	variant := group("v", 1, format.Optional)
	variant.LogicalType.Set(format.LogicalType{Value: &format.VariantType{}})
	schema := []SchemaElement{
		group("root", 8, format.Required), leaf("a", format.Required),
		group("s", 2, format.Optional), leaf("b", format.Optional), leaf("many", format.Repeated),
		group("l", 1, format.Repeated), leaf("in", format.Optional),
		variant, leaf("value", format.Optional),
		leaf("twice", format.Optional), leaf("twice", format.Required),
		group("deep", 1, format.Required), group("er", 1, format.Optional), leaf("c", format.Required),
		group("wide", 40, format.Required),
	}
	for i := range 40 {
		schema = append(schema, leaf(fmt.Sprint("w", i), format.Optional))
	}
	w, err := NewWriter(new(bytes.Buffer), schema, nil, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	summaries, err := w.Summaries()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range summaries {
		got = append(got, fmt.Sprint(s.Leaf.Dotted, s.FieldID))
		if s.Lower != nil || s.Nulls != 0 {
			t.Errorf("of a file without rows: %+v", s)
		}
	}
	if len(got) != 32 || fmt.Sprint(got[:4]) != "[a1 s.b1 deep.er.c1 wide.w02]" {
		t.Errorf("%d leaves: %v", len(got), got)
	}
}
