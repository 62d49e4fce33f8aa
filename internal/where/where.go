// Package where evaluates conditions on the columns of a table, as they stand in
// SQL's WHERE:
//
//	ts >= '2024-05-01' AND (country IN ('DE', 'FR') OR user.age IS NULL)
//
// [Parse] reads the text. [Cond.Bind] finds the columns in a schema, gives the
// literals their types and returns a tree of predicates, each on one column. The
// caller evaluates each predicate where its column is at hand (rows, entries of a
// dictionary, bounds from statistics) and combines the results:
//
//	text ── Parse ──► Cond ── Bind(schema) ──► Bound ─┬─ Preds: Eval(values) ──► Combine ──► Truth of each row
//	                                                  └─ Preds: Possible(facts) ──► Possible ──► Truths of all rows
//
// The logic is SQL's, with three values: a comparison with NULL is Null, and a row is
// kept if the condition is True.
//
// The parser is written by hand. The SQL parsers of databases bring their own
// syntax trees, dialects and dozens of modules, and the libraries for expression
// languages do not spell conditions as SQL does.
package where

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// Truth is a value of SQL's logic. AND is the minimum, OR is the maximum.
type Truth uint8

// The values, in ascending order.
const (
	False Truth = iota
	Null
	True
)

// Set returns the set that contains t alone.
func (t Truth) Set() Truths { return 1 << t }

// String returns the value as SQL spells it.
func (t Truth) String() string { return [...]string{"FALSE", "NULL", "TRUE"}[t] }

// Truths is a set of truth values.
type Truths uint8

// All is the set of all three truth values.
const All Truths = 1<<False | 1<<Null | 1<<True

// Has reports whether the set contains t.
func (s Truths) Has(t Truth) bool { return s&t.Set() != 0 }

// Only reports whether the set contains t alone.
func (s Truths) Only(t Truth) bool { return s == t.Set() }

// Facts are known properties of the values of a column in a range of rows. The zero value
// knows none.
type Facts struct {
	// Range has two values, the inclusive lower and upper bound of the values that
	// are neither NULL nor, with NaN, NaN. nil: not known.
	Range arrow.Array
	// NoNulls: no value is NULL.
	NoNulls bool
	// AllNulls: all values are NULL.
	AllNulls bool
	// NaN: values may be NaN, even if NaN is outside Range.
	NaN bool
}

// Cond is a condition. It is immutable.
type Cond struct{ root *node }

// String returns the condition in a form that [Parse] reads back to the same
// condition. It does not depend on spaces, on the case of keywords, on needless
// parentheses, or on which of several spellings the text used (x <> 1, NOT x = 1).
func (c *Cond) String() string { return c.root.text() }

// Nested returns paths with those of the condition's columns that are in structs.
func (c *Cond) Nested(paths [][]string) [][]string {
	for _, t := range c.root.tests(nil) {
		if len(t.path) > 1 && !slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, t.path) }) {
			paths = append(slices.Clip(paths), t.path)
		}
	}
	return paths
}

// Bind finds the columns in a schema, ignoring the case of names if ignoreCase is
// set, and converts the literals to the types of the columns. Errors name at.File,
// the column, its type and the literal. A column of INT96 timestamps may
// have the type [keys.Int96].
func (c *Cond) Bind(at fault.At, schema *arrow.Schema, ignoreCase bool) (*Bound, error) {
	return c.bind(at, schema, ignoreCase, false)
}

// BindSome is like Bind with a schema of which only some columns are known. For a
// predicate on another column, Pred.Column returns -1 and Pred.Possible returns
// [All].
func (c *Cond) BindSome(at fault.At, schema *arrow.Schema, ignoreCase bool) (*Bound, error) {
	return c.bind(at, schema, ignoreCase, true)
}

// Bound is a condition on the columns of a schema. It is immutable and safe for
// concurrent use.
type Bound struct {
	root    *node
	columns []keys.Field
	preds   []*Pred
}

// Columns returns the columns of the condition, each once, in order of appearance:
// top-level columns or fields of structs.
func (b *Bound) Columns() []keys.Field { return b.columns }

// Preds returns the predicates of the condition, from left to right.
func (b *Bound) Preds() []*Pred { return b.preds }

// Combine appends the truth of the condition for each row. preds has the truths of
// each predicate, in the order of Preds, all of the same number of rows. A
// condition without predicates gives one truth.
func (b *Bound) Combine(dst []Truth, preds [][]Truth) []Truth {
	rows := 1
	if len(preds) > 0 {
		rows = len(preds[0])
	}
	dst, out := extend(dst, rows)
	next := 0
	b.root.combine(out, preds, &next)
	return dst
}

// extend returns dst with n more elements, and these.
func extend(dst []Truth, n int) (all, added []Truth) {
	first := len(dst)
	all = slices.Grow(dst, n)[:first+n]
	return all, all[first:]
}

// Possible returns the truth values that the condition may have for a row, given
// those that each predicate may have, in the order of Preds. If the sets given are
// supersets of the truth, so is the result.
func (b *Bound) Possible(preds []Truths) Truths {
	next := 0
	return b.root.possible(preds, &next)
}
