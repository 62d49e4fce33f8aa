package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/filters"
)

// compareReport is the JSON report of inspect --compare.
type compareReport struct {
	session.Head
	Files  []string      `json:"files"` // A and B
	Method builds.Method `json:"method"`
	A      sizeFact      `json:"a"`
	B      sizeFact      `json:"b"`
	Union  sizeFact      `json:"union"`
	Both   sizeFact      `json:"intersection"`
	OnlyA  sizeFact      `json:"a_without_b"`
	OnlyB  sizeFact      `json:"b_without_a"`
}

type sizeFact struct {
	Keys          uint64  `json:"keys"`
	StandardError float64 `json:"standard_error"`
}

func (c *cli) compare(cmd *cobra.Command, args []string) error {
	start := time.Now()
	if len(args) != 2 {
		return flags.Usagef("--compare: want two filters, got %d", len(args))
	}
	budget, err := c.Budget()
	if err != nil {
		return err
	}
	sets, method, err := builds.Compare(cmd.Context(), c.Store(), args[0], args[1], filters.Limits{MaxBytes: uint64(budget)})
	if err != nil {
		return err
	}
	r := compareReport{Files: args, Method: method}
	how := map[builds.Method]string{
		builds.Counted:   "exact: both filters hold their IDs",
		builds.Sketched:  "estimated from the filters' HyperLogLog registers",
		builds.Estimated: "estimated from the filters' bits and members",
	}[method]
	if !c.JSON {
		fmt.Fprintf(words.Printable{Writer: c.Stdout}, "A = %s, B = %s: %s\n", args[0], args[1], how)
	}
	for _, s := range []struct {
		name string
		of   bloom.Cardinality
		to   *sizeFact
	}{
		{"|A|", sets.A, &r.A}, {"|B|", sets.B, &r.B}, {"|A ∪ B|", sets.Union, &r.Union},
		{"|A ∩ B|", sets.Both, &r.Both}, {"|A \\ B|", sets.OnlyA, &r.OnlyA}, {"|B \\ A|", sets.OnlyB, &r.OnlyB},
	} {
		*s.to = sizeFact{uint64(math.Round(s.of.Keys)), s.of.StdErr}
		if c.JSON {
			continue
		}
		line := fmt.Sprintf("  %-8s %15s", s.name, words.Count(s.to.Keys))
		if method != builds.Counted {
			line += fmt.Sprintf(" ± %s", words.Count(uint64(math.Ceil(s.of.StdErr))))
		}
		fmt.Fprintln(words.Printable{Writer: c.Stdout}, line)
	}
	r.Head = c.NewHead("inspect", start)
	return c.Report(r, "")
}
