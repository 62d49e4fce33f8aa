package source

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// A column may have other names in some files: see OpenOptions.OtherNames. It is renamed when its file is
// opened, before any name is looked up.

// same reports whether two names mean one column.
func (o *Opening) same(a, b string) bool { return a == b || o.IgnoreCase && strings.EqualFold(a, b) }

// first returns the name that a column is read by.
func (o *Opening) first(name string) string {
	for _, g := range o.others {
		is := func(other string) bool { return o.same(other, name) }
		if !is(g[0]) && slices.ContainsFunc(g, is) {
			return g[0]
		}
	}
	return name
}

// renaming returns a function that returns the names that a file's columns are read by; nil if they
// are their own. The function is nil without other names.
func (o *Opening) renaming(file string) func(names []string) ([]string, error) {
	if o.others == nil {
		return nil
	}
	return func(names []string) ([]string, error) {
		to := each.Slice(names, o.first)
		for _, g := range o.others {
			of := slices.IndexFunc(to, func(name string) bool { return o.same(name, g[0]) })
			for i := of + 1; of >= 0 && i < len(to); i++ {
				if o.same(to[i], g[0]) && names[i] != names[of] {
					return nil, o.twice(file, g[0], names[of], names[i])
				}
			}
		}
		if slices.Equal(to, names) {
			return nil, nil
		}
		return to, nil
	}
}

// twice returns an error for a file with two columns of one name.
func (o *Opening) twice(file, name, a, b string) error {
	return faults.Of(cause.NoColumn, faults.Mismatch(fault.At{File: file}, "columns that are read as "+name, "one", a+" and "+b)).
		WithHint("leave one of them out of {OtherNames}")
}

// renamed returns a table that is not Parquet with the names that names returns.
func renamed(t Table, names func([]string) ([]string, error)) (Table, error) {
	if names == nil {
		return t, nil
	}
	fields := slices.Clone(t.Schema().Fields())
	to, err := names(each.Slice(fields, func(f arrow.Field) string { return f.Name }))
	if err != nil || to == nil {
		return t, err
	}
	for i := range fields {
		fields[i].Name = to[i]
	}
	md := t.Schema().Metadata()
	return &constantTable{Table: t, schema: take.WithoutKeys(arrow.NewSchema(fields, &md), take.Describing...)}, nil
}
