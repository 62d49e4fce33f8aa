package keyscan

import (
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// A filter is always probed with the rule that it was built with. The options of a scan must
// name that rule, so that the user knows how strings are compared.

// checkRules compares the rule of the options with the filters' rules.
func (o *Options) checkRules() error {
	got, err := keys.ParseRule(o.Normalize)
	if err != nil {
		return err
	}
	if len(o.Match) == 0 && got != 0 {
		return faults.Of(cause.Normalized, faults.Unsupported(fault.At{}, "{Normalize %s} without a filter", got)).WithHint("leave it out: there is no key")
	}
	used := len(o.Match) == 0
	for _, m := range o.predicates() {
		want, err := keys.RuleOf(m.Members().Normal())
		if err != nil {
			return err
		}
		used = used || want == got
		if want != got && (want != 0 || keys.UUID.Concerns(keys.ClassesOf(m.Members().KeyClasses()))) {
			return otherRule(m, want, got)
		}
	}
	if !used {
		return faults.Unsupported(fault.At{}, "{Normalize %s} of a key of class %s", got, strings.Join(o.Match[0].Filter.KeyClasses(), ", ")).
			WithHint("the rule is for strings: leave it out")
	}
	return nil
}

// otherRule is the error for a filter that was built with the rule want, if the
// options name the rule got.
func otherRule(m Predicate, want, got keys.Rule) error {
	column := m.Key
	if column == "" {
		column = strings.Join(m.Filter.KeyNames(), ",")
	}
	e := faults.Of(cause.Normalized, faults.About(faults.Mismatch(fault.At{Column: column}, "", want.Word(), got.Word()), "{Normalize}, by which the filter was built"))
	if want == 0 {
		return e.WithHint("leave {Normalize} out, or build the filter with {Normalize %s}", got)
	}
	return e.WithHint("say {Normalize %s}: both sides are normalised alike", want)
}
