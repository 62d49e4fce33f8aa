package where

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
)

// Possible returns exactly the truth values that the bounds allow, not a larger set.
func TestPossibleExactly(t *testing.T) {
	for _, c := range []struct {
		typ    arrow.DataType
		bounds string // of values without NULL or NaN
		want   map[string]string
	}{
		{arrow.PrimitiveTypes.Int64, "[10, 20]", map[string]string{
			"x < 10": "F", "x <= 10": "TF", "x > 20": "F", "x >= 20": "TF", "x >= 10": "T", "x = 9": "F", "x = 10": "TF", "x IN (1, 21)": "F", "x IN (1, 15)": "TF",
			"x BETWEEN 10 AND 20": "T", "x BETWEEN 21 AND 30": "F", "x <> 9": "T", "x IS NULL": "F", "x IS DISTINCT FROM 9": "T", "x = NULL": "N", "x IN (9, NULL)": "N",
			"x > 20.5": "F", "x < 20.5": "T", "NOT x < 10": "T", "x < 10 OR x > 15": "TF", "x < 10 AND x > 15": "F", "x = 5 IS FALSE": "T",
		}},
		{arrow.PrimitiveTypes.Int64, "[10, 10]", map[string]string{"x = 10": "T", "x <> 10": "F", "x IN (10, 11)": "T", "x NOT IN (10, NULL)": "F"}},
		{arrow.BinaryTypes.String, `["ab", "ad"]`, map[string]string{
			"x LIKE 'a%'": "T", "x LIKE 'b%'": "F", "x LIKE 'ac%'": "TF", "x LIKE '_b'": "TF", "x LIKE 'b_'": "F", "x = 'aa'": "F", "x >= 'ab'": "T", "x LIKE 'ab'": "TF",
		}},
		{arrow.PrimitiveTypes.Float64, "[-0.5, 0.5]", map[string]string{"x < -0.5": "F", "x <= 0.5": "T", "x = 'nan'": "F", "x > 0.5": "F"}},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, `["1.00", "2.00"]`, map[string]string{"x < 1": "F", "x = 1.005": "F", "x > 0.999": "T"}},
	} {
		bounds := column(t, c.typ, c.bounds)
		for text, want := range c.want {
			cond, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			b, err := cond.Bind(fault.At{}, arrow.NewSchema([]arrow.Field{{Name: "x", Type: c.typ}}, nil), false)
			if err != nil {
				t.Fatal(err)
			}
			var sets []Truths
			for _, p := range b.Preds() {
				sets = append(sets, p.Possible(Facts{Range: bounds, NoNulls: true}))
			}
			got := ""
			for _, truth := range []Truth{True, Null, False} {
				if b.Possible(sets).Has(truth) {
					got += truth.String()[:1]
				}
			}
			if got != want {
				t.Errorf("%s: %s in %s: got %s, want %s", c.typ, text, c.bounds, got, want)
			}
		}
	}
}

// With some columns known, others may be anything.
func TestBindSome(t *testing.T) {
	c, err := Parse("dt = '2024-05-01' AND x = 1")
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "dt", Type: arrow.FixedWidthTypes.Date32}}, nil)
	b, err := c.BindSome(fault.At{}, schema, false)
	if err != nil {
		t.Fatal(err)
	}
	dt, x := b.Preds()[0], b.Preds()[1]
	if dt.Column() != 0 || x.Column() != -1 || len(b.Columns()) != 1 || x.Possible(Facts{NoNulls: true}) != All {
		t.Errorf("columns %d and %d", dt.Column(), x.Column())
	}
	for day, want := range map[string]Truths{"2024-05-01": All, "2024-05-02": False.Set()} {
		value := column(t, schema.Field(0).Type, `["`+day+`", "`+day+`"]`)
		sets := []Truths{dt.Possible(Facts{Range: value, NoNulls: true}), x.Possible(Facts{})}
		if got := b.Possible(sets); got != want {
			t.Errorf("%s: got %b, want %b", day, got, want)
		}
	}
	if _, err := c.Bind(fault.At{File: "f"}, schema, false); err == nil || !strings.Contains(err.Error(), `f: condition: no column "x"`) {
		t.Errorf("got %v", err)
	}
}
