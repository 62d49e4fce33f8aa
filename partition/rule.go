package partition

import (
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// A rule by which strings are made alike is part of what a filter's keys are:
// whoever probes it does so under the filter's own rule, see [NewProber]. What
// a scan says its rule is must be the same, so that nobody takes rows for equal
// or different by a rule that they do not know of.

// checkRules compares the rule of the options with those of the filters.
func (o *ScanOptions) checkRules() error {
	got, err := keys.ParseRule(o.Normalize)
	if err != nil {
		return err
	}
	used := false
	for _, m := range o.Match {
		want, err := keys.RuleOf(m.Filter.Normal())
		if err != nil {
			return err
		}
		used = used || want == got
		if want != got && (want != 0 || concerned(m.Filter)) {
			return otherRule(m, want, got)
		}
	}
	if !used {
		return fault.Unsupported(fault.At{}, "--normalize %s of a key of class %s", got, strings.Join(o.Match[0].Filter.KeyClasses(), ", ")).
			WithHint("the rule is for strings: leave it out")
	}
	return nil
}

// concerned reports whether some rule could be that of the filter.
func concerned(f Filter) bool {
	var classes []keys.Class
	for _, c := range f.KeyClasses() {
		classes = append(classes, keys.Class(c))
	}
	return keys.UUID.Concerns(classes)
}

// otherRule says that a filter was built under the rule want, and is to be
// applied under got.
func otherRule(m Match, want, got keys.Rule) error {
	key := m.Key
	if key == "" {
		key = strings.Join(m.Filter.KeyNames(), ",")
	}
	e := fault.Mismatch(fault.At{Column: key}, "--normalize, by which the filter was built", want.Word(), got.Word())
	if want == 0 {
		return e.WithHint("leave --normalize out, or build the filter with --normalize %s", got)
	}
	return e.WithHint("say --normalize %s: both sides are normalised alike", want)
}

// CheckIDs makes the reading of a text file fail at a value that is no ID under
// the rule, with its line, which nobody knows any more when it is a key. Of
// other files it does nothing.
func (f *File) CheckIDs(columns []keys.Column, o keys.Options) {
	t, ok := f.table.(*text.Table)
	if !ok || o.Rule&keys.UUID == 0 {
		return
	}
	var names []string
	for _, c := range columns {
		if field, err := c.Resolve(f.Schema(), o.IgnoreCase); err == nil && c.Cast == nil {
			if class, err := keys.ClassOf(field.Type); err == nil && class == keys.Bytes {
				names = append(names, f.Schema().Field(field.Index[0]).Name)
			}
		}
	}
	f.table = t.WithCheck(names, o.Rule.Accepts, "a UUID, under --normalize uuid")
}
