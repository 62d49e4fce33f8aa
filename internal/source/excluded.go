package source

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// satisfying returns the listed objects whose rows may satisfy the condition, by the values of
// their directories. If none is left, the first one is kept for its columns. some reports for
// each list whether an object was left out.
func (o *Opening) satisfying(bound *where.Bound, lists [][]Entry) (kept [][]Entry, some []bool, err error) {
	some = make([]bool, len(lists))
	inTables := func(list []Entry) bool { return len(list) > 0 && list[0].Of != nil }
	if o.Condition == nil || bound == nil && !slices.ContainsFunc(lists, inTables) {
		return lists, some, nil
	}
	left := 0
	var first *Entry
	firstOf := 0
	for i, list := range lists {
		some[i] = inTables(list) && list[0].Of.Table.excluded > 0
		var of []Entry
		for k, e := range list {
			if o.maybeNone(e) {
				of = append(of, e) // find reports it
				continue
			}
			parts, err := o.PartsOf(e)
			if err != nil {
				return nil, nil, err
			}
			switch {
			case e.Of != nil || bound == nil || o.MayHold(bound, parts): // tableFiles has chosen those of tables
				of = append(of, e)
				left++
			case first == nil:
				first, firstOf = &list[k], i
				fallthrough
			default:
				some[i] = true
			}
		}
		kept = append(kept, of)
	}
	if left == 0 && first != nil {
		kept[firstOf] = append(kept[firstOf], *first)
	}
	for i, list := range lists {
		in := map[string]bool{}
		for _, e := range kept[i] {
			in[e.Name] = true
		}
		for _, e := range list {
			if !in[e.Name] {
				o.unsatisfying(e)
			}
		}
	}
	return kept, some, nil
}

// unsatisfying records one.
func (o *Opening) unsatisfying(e Entry) {
	if o.leaveOut(e); e.Of != nil {
		e.Of.Table.excluded++
	}
	if o.Excluded != nil {
		o.Excluded(e.Name)
	}
}

// OfPartitions returns the condition bound to the partition columns alone, or nil if it names
// none of them.
func (o *Opening) OfPartitions() *where.Bound {
	if o.Condition == nil || o.Layout == nil {
		return nil
	}
	var fields []arrow.Field
	for _, c := range o.Layout.Columns {
		fields = append(fields, arrow.Field{Name: c.Name, Type: c.Type, Nullable: true})
	}
	bound, err := o.Condition.BindSome(fault.At{}, arrow.NewSchema(fields, nil), o.IgnoreCase)
	if err != nil || !slices.ContainsFunc(bound.Preds(), func(p *where.Pred) bool { return p.Column() >= 0 }) {
		return nil // opening the first file returns the error again
	}
	return bound
}

// MayHold reports whether a file in the given directories may have a row that satisfies
// the condition.
func (o *Opening) MayHold(bound *where.Bound, parts []hive.Part) bool {
	facts := make([]where.Facts, len(bound.Columns()))
	for i, field := range bound.Columns() {
		c := o.Layout.Columns[field.Index[0]]
		at := slices.IndexFunc(parts, func(p hive.Part) bool { return p.Name == c.Name })
		if at < 0 {
			continue // opening the file returns the error
		}
		facts[i] = factsOf(parts[at], c.Type)
	}
	return possible(bound, facts)
}

// factsOf returns what is known of a column of which all rows have the value of a directory. If the
// value does not have the type, opening the file returns an error.
func factsOf(p hive.Part, t arrow.DataType) where.Facts {
	if p.IsNull(t) {
		return where.Facts{AllNulls: true}
	}
	return where.Facts{Range: between(p.Text, p.Text, t), NoNulls: true}
}

// between returns two values of a type, nil if the texts are none.
func between(least, most string, t arrow.DataType) arrow.Array {
	a, ok := hive.Value(hive.Part{Text: least}, t)
	b, too := a, ok
	if most != least {
		b, too = hive.Value(hive.Part{Text: most}, t)
	}
	if !ok || !too {
		return nil
	}
	both, err := array.Concatenate([]arrow.Array{a, b}, memory.DefaultAllocator)
	if err != nil {
		return nil
	}
	return both
}

// possible reports whether rows of which facts are known by column may satisfy a condition.
func possible(bound *where.Bound, facts []where.Facts) bool {
	var sets []where.Truths
	for _, p := range bound.Preds() {
		set := where.All
		if c := p.Column(); c >= 0 {
			set = p.Possible(facts[c])
		}
		sets = append(sets, set)
	}
	return bound.Possible(sets).Has(where.True)
}

// CheckStored returns an error if the file stores a column that excluded files have in their
// paths, and its type could change what the condition means.
func (f *File) CheckStored(layout *HiveLayout, bound *where.Bound, ignoreCase bool) error {
	for _, field := range bound.Columns() {
		c := layout.Columns[field.Index[0]]
		for _, stored := range f.Schema().Fields()[:f.StoredColumns()] {
			if (stored.Name == c.Name || ignoreCase && strings.EqualFold(stored.Name, c.Name)) && !where.Alike(stored.Type, c.Type) {
				e := faults.Mismatch(fault.At{File: f.name, Column: stored.Name}, "", keys.TypeName(c.Type)+" as in the path", stored.Type)
				return faults.About(e, "the type of a column of {Where} that is both in the file and in its path").
					WithHint("give the path's column the file's type with {HiveTypes}, or use {Hive off}")
			}
		}
	}
	return nil
}
