package where

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/float16"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
)

// column returns an array of a type from JSON.
func column(t *testing.T, typ arrow.DataType, json string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(json))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return a
}

// truthsOf evaluates a condition on one column, x.
func truthsOf(t *testing.T, text string, a arrow.Array) string {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		return err.Error()
	}
	b, err := c.Bind(fault.At{File: "f"}, arrow.NewSchema([]arrow.Field{{Name: "x", Type: a.DataType(), Nullable: true}}, nil), false)
	if err != nil {
		return err.Error()
	}
	var preds [][]Truth
	for _, p := range b.Preds() {
		preds = append(preds, p.Eval(nil, a))
	}
	out := ""
	for _, truth := range b.Combine(nil, preds) {
		out += truth.String()[:1]
	}
	return out
}

// Values recorded from DuckDB, except for the cases with a comment.
func TestEval(t *testing.T) {
	ints := `[null, -1, 0, 1, 2, 100]`
	for _, c := range []struct {
		typ  arrow.DataType
		json string
		want map[string]string
	}{
		{arrow.PrimitiveTypes.Int8, ints, map[string]string{
			"x = 1": "NFFTFF", "x <> 1": "NTTFTT", "x < 1.5": "NTTTFF", "x = 1.5": "NFFFFF", "x <> 1.5": "NTTTTT", "x >= 1000": "NFFFFF", "x > -1e400": "NTTTTT",
			"x < 1e-400": "NTTFFF", "x IN (1, 2, NULL)": "NNNTTN", "x NOT IN (1, NULL)": "NNNFNN", "x IS NULL": "TFFFFF", "x IS DISTINCT FROM 1": "TTTFTT",
			"x IS NOT DISTINCT FROM NULL": "TFFFFF", "x = NULL": "NNNNNN", "x = '1'": "NFFTFF", "x BETWEEN 0 AND 1.5": "NFTTFF", "x NOT BETWEEN 0 AND NULL": "NTNNNN",
			"(x = 1) IS NULL": "TFFFFF", "(x > 0) IS NOT TRUE": "TTTFFF", "x > 0 OR NULL": "NNNTTT", "x > 0 AND NULL": "NFFNNN", "TRUE": "T", "1 < x": "NFFFTT",
		}},
		{arrow.PrimitiveTypes.Uint64, `["0", "9223372036854775807", "9223372036854775808", "18446744073709551615"]`, map[string]string{
			"x > -1": "TTTT", "x = 18446744073709551615": "FFFT", "x >= 9223372036854775808": "FFTT", "x < 9223372036854775807.5": "TTFF", "x < 99999999999999999999": "TTTT",
		}},
		{arrow.FixedWidthTypes.Timestamp_ms, `["2024-05-01T00:00:00Z", "2024-05-01T10:00:00.123Z", null]`, map[string]string{
			"x >= '2024-05-01 00:00:00.001'": "FTN", "x = DATE '2024-05-01'": "TFN", "x = '2024-05-01 12:00:00.123+02'": "FTN", "x > TIMESTAMP '2024-05-01 10:00'": "FTN",
		}},
		{arrow.BinaryTypes.String, `["", "a", "ab", "a_", "äb", "%", null]`, map[string]string{
			"x LIKE 'a%'": "FTTTFFN", "x LIKE '_b'": "FFTFTFN", "x LIKE '%'": "TTTTTTN", "x LIKE ''": "TFFFFFN", "x NOT LIKE 'a%'": "TFFFTTN", "x LIKE '%b%'": "FFTFTFN",
			"x LIKE '%_b'": "FFTFTFN", "x > 'a'": "FFTTTFN", "x IN ('a', 'äb', 'c')": "FTFFTFN", "x LIKE NULL": "NNNNNNN", "x < 'b'": "TTTTFTN",
		}},
		{arrow.FixedWidthTypes.Boolean, `[true, false, null]`, map[string]string{"x": "TFN", "NOT x": "FTN", "x = TRUE": "TFN", "x > FALSE": "TFN", "x IS NOT FALSE": "TFT", "x = 'false'": "FTN"}},
	} {
		a := column(t, c.typ, c.json)
		for text, want := range c.want {
			if got := truthsOf(t, text, a); got != want {
				t.Errorf("%s: %s: got %s, want %s", c.typ, text, got, want)
			}
		}
	}
	if got := fmt.Sprint(False, Null, True); got != "FALSE NULL TRUE" {
		t.Error(got)
	}
}

// Dictionaries and runs give what their values give, and NULLs where these are.
func TestEvalEncoded(t *testing.T) {
	entries := column(t, arrow.BinaryTypes.String, `["a", null, "b"]`)
	indices := column(t, arrow.PrimitiveTypes.Int8, `[2, 0, null, 1, 0]`)
	dictionary := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, indices, entries)
	runs := array.NewRunEndEncodedArray(column(t, arrow.PrimitiveTypes.Int32, `[1, 3, 6]`), entries, 6, 0)
	for _, c := range []struct {
		a    arrow.Array
		want map[string]string
	}{
		{dictionary, map[string]string{"x = 'a'": "FTNNT", "x IS NULL": "FFTTF", "x < 'b'": "FTNNT"}},
		{array.NewSlice(dictionary, 1, 4), map[string]string{"x = 'a'": "TNN"}},
		{runs, map[string]string{"x = 'a'": "TNNFFF", "x IS NULL": "FTTFFF"}},
		{array.NewSlice(runs, 2, 5), map[string]string{"x = 'b'": "NTT", "x IS NOT NULL": "FTT"}},
		{array.NewSlice(entries, 1, 3), map[string]string{"x = 'b'": "NT"}},
	} {
		for text, want := range c.want {
			if got := truthsOf(t, text, c.a); got != want {
				t.Errorf("%s: %s of %v: got %s, want %s", c.a.DataType(), text, c.a, got, want)
			}
		}
	}
}

// TestHalfPrecision: each float16 is compared by its value, by IEEE 754's definition.
func TestHalfPrecision(t *testing.T) {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	want := make([]float64, 0x7c00) // all that are finite and not negative
	for bits := range want {
		b.Append(float16.FromBits(uint16(bits)))
		exp, frac := bits>>10, float64(bits&0x3ff)/1024
		if want[bits] = math.Pow(2, float64(exp-15)) * (1 + frac); exp == 0 {
			want[bits] = math.Pow(2, -14) * frac
		}
	}
	a := b.NewArray()
	for _, limit := range []float64{3e-8, 1e-7, 6e-5, 6.2e-5, 1, 65000} {
		got := truthsOf(t, fmt.Sprintf("x < %g", limit), a)
		for i, v := range want {
			if (v < limit) != (got[i] == 'T') {
				t.Fatalf("the float16 %#04x, %g, < %g is %c", i, v, limit, got[i])
			}
		}
	}
}
