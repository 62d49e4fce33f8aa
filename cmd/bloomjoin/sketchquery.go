package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/progress"
	"github.com/bloomjoin/bloomjoin/internal/sketches"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type queryFlags struct {
	values, ranges []string
	inner          string
	heavy          float64
	inputs         flags.Inputs
}

func (c *cli) sketchQueryCmd() *cobra.Command {
	var o queryFlags
	cmd := &cobra.Command{
		Use:   "query [--value KEY] [--range LO..HI] [--inner SKETCH] [--heavy SHARE] SKETCH [INPUTS...]",
		Short: "Ask a sketch how often keys occur",
		Example: `  bloomjoin sketch query --value 42 --value 43 users.bjs
  bloomjoin sketch query --inner orders.bjs users.bjs
  bloomjoin sketch query --heavy 0.01 users.bjs logs/`,
		Annotations: flags.Help("sketches"),
		Args:        flags.SomeArguments("SKETCH"),
		RunE:        withFlags(c.sketchQuery, &o),
	}
	f := cmd.Flags()
	o.inputs.Add(f)
	flags.Group(f, flags.GroupInput)

	f.StringArrayVar(&o.values, "value", nil, "`KEY` how often does it occur; several columns as CSV; repeatable")
	f.StringArrayVar(&o.ranges, "range", nil, "`LO..HI` how often do keys from LO to HI occur; repeatable")
	f.StringVar(&o.inner, "inner", "", "`SKETCH` how many rows would a join with its rows have")
	f.Float64Var(&o.heavy, "heavy", 0, "`SHARE` which keys have that share; exactly with INPUTS")
	flags.Group(f, flags.GroupKeys)
	return cmd
}

// check checks the flags and arguments before anything is opened.
func (o *queryFlags) check(cmd *cobra.Command, args []string) error {
	heavy := cmd.Flags().Changed("heavy")
	switch {
	case len(o.values)+len(o.ranges) == 0 && o.inner == "" && !heavy:
		return flags.Required("--value, --range, --inner or --heavy is required: ask one of these questions")
	case heavy && !(o.heavy > 0 && o.heavy < 1):
		return flags.Usagef("--heavy %v: want a share of the total between 0 and 1, as 0.01", o.heavy)
	case len(args) > 1 && !heavy:
		return flags.Usagef("%s: inputs are read for --heavy alone; a sketch is named last", args[1])
	}
	for _, r := range o.ranges {
		if lo, hi, ok := strings.Cut(r, ".."); !ok || lo == "" || hi == "" {
			return flags.Usagef("--range: want two keys and two dots between them, as 10..20")
		}
	}
	return o.inputs.Fill(new(source.Opening))
}

// queryReport is the JSON report of sketch query.
type queryReport struct {
	session.Head
	Sketch  string        `json:"sketch"`
	Unit    string        `json:"unit"` // what is counted: rows, or the column of weights
	Total   uint64        `json:"total"`
	KeyRows uint64        `json:"rows_with_key"`
	Delta   float64       `json:"delta"` // probability that an estimate is more than error too high
	Error   uint64        `json:"error"` // of the estimate of a value
	Values  []queryAnswer `json:"values,omitempty"`
	Ranges  []queryAnswer `json:"ranges,omitempty"`
	Inner   *queryAnswer  `json:"inner,omitempty"`
	Heavy   *heavyAnswer  `json:"heavy,omitempty"`
}

// queryAnswer is an estimate: the truth is from most-error to most.
type queryAnswer struct {
	Of    string `json:"of"` // the key, the range or the other sketch, as given
	Most  uint64 `json:"most"`
	Error uint64 `json:"error"`
	Unit  string `json:"unit,omitempty"` // of an inner product: rows, or the columns of weights multiplied
}

type heavyAnswer struct {
	Share    float64           `json:"share"`
	Least    uint64            `json:"least"` // that share of the total
	Exact    bool              `json:"exact"` // the counts are; otherwise each is at most Error too high
	Error    uint64            `json:"error"`
	RowsRead int64             `json:"rows_read,omitempty"`
	Keys     []sketches.Hitter `json:"keys"` // the heaviest first
}

func (c *cli) sketchQuery(cmd *cobra.Command, o *queryFlags, args []string) error {
	ctx, start, name := cmd.Context(), time.Now(), args[0]
	if err := o.check(cmd, args); err != nil {
		return err
	}
	budget, err := c.Budget()
	if err != nil {
		return err
	}
	s, err := sketches.Load(ctx, c.Store(), name, budget)
	if err != nil {
		return err
	}
	if budget > 0 { // else there is no limit
		budget = max(budget-int64(s.Spec().Bytes()), 1)
	}
	if err := s.Usable(fault.At{File: name}); err != nil {
		return err
	}
	r := queryReport{Sketch: name, Unit: unitOf(s.Spec().Weight, ""), Total: s.Total(), KeyRows: s.Rows(), Delta: s.Spec().Params.Delta(), Error: s.Bound(1)}
	if err := r.ask(s, o); err != nil {
		return err
	}
	if o.inner != "" {
		t, err := sketches.Load(ctx, c.Store(), o.inner, budget)
		if err != nil {
			return err
		}
		most, bound, err := sketches.Product(s, t, [2]string{name, o.inner})
		if err != nil {
			return err
		}
		r.Inner = &queryAnswer{o.inner, most, min(bound, most), unitOf(s.Spec().Weight, t.Spec().Weight)}
	}
	if o.heavy > 0 {
		if r.Heavy, err = c.heavy(cmd, s, o, name, args[1:], budget); err != nil {
			return err
		}
	}
	r.Head = c.NewHead("sketch query", start)
	if !c.JSON {
		r.print(words.Printable{Writer: c.Stdout}, c.Say)
	}
	return c.Report(r, "")
}

// ask answers what is asked of the sketch alone.
func (r *queryReport) ask(s *sketches.Sketch, o *queryFlags) error {
	for _, v := range o.values {
		b, err := keysOfTexts(s, "--value", v)
		if err != nil {
			return err
		}
		a := queryAnswer{Of: v, Error: r.Error}
		if len(b.Rows) > 0 { // else the value has no equal in the class of the keys
			a.Most = s.Estimate(b)[0]
		}
		a.Error = min(a.Error, a.Most)
		r.Values = append(r.Values, a)
	}
	for _, v := range o.ranges {
		lo, hi, _ := strings.Cut(v, "..")
		b, err := keysOfTexts(s, "--range", lo, hi)
		if err != nil {
			return err
		}
		if len(b.Rows) < 2 {
			return fmt.Errorf("--range: an end is not of the key's class %s", s.Facts().Key[0].Class)
		}
		most, nodes, err := s.Within(b)
		if err != nil {
			return fmt.Errorf("--range: %w", err)
		}
		r.Ranges = append(r.Ranges, queryAnswer{Of: v, Most: most, Error: min(s.Bound(nodes), most)})
	}
	return nil
}

// heavy finds heavy keys: in the inputs or, if none are named, in the sketch alone.
func (c *cli) heavy(cmd *cobra.Command, s *sketches.Sketch, o *queryFlags, name string, inputs []string, budget int64) (*heavyAnswer, error) {
	a := &heavyAnswer{Share: o.heavy, Least: s.Threshold(o.heavy), Error: s.Bound(1)}
	var found []sketches.Hitter
	var err error
	if len(inputs) == 0 {
		if found, err = s.Heavy(o.heavy); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	} else {
		open, err := keyOpening(s.Spec().Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		open.Stdin = c.Stdin
		plan, _, err := c.planOf(cmd, &buildFlags{key: s.Spec().Key, inputs: o.inputs}, inputs, s.Spec().PlanOptions(builds.Options{Normalize: s.Facts().Rule, Threads: c.Threads}), open)
		if err != nil {
			return nil, err
		}
		defer source.Close(plan.Files())
		add, end := c.Progress("counting rows", plan.Pieces())
		var rep sketches.Report
		found, rep, err = s.HeavyIn(progress.With(cmd.Context(), add), plan, o.heavy, sketches.Options{Threads: c.Threads, Memory: budget})
		end()
		if err != nil {
			return nil, err
		}
		a.Exact, a.Error, a.RowsRead = true, 0, rep.Rows
	}
	a.Keys = append([]sketches.Hitter{}, found...) // in JSON: never null
	return a, nil
}

// print prints the answers, a line each. What a list of keys has is said apart, so that w is a table.
func (r *queryReport) print(w io.Writer, say func(format string, args ...any)) {
	answers := slices.Concat(r.Values, r.Ranges)
	if a := r.Inner; a != nil {
		answers = append(answers, queryAnswer{"join with " + a.Of, a.Most, a.Error, a.Unit})
	}
	for _, a := range answers {
		fmt.Fprintf(w, "%s: at most %s %s, at least %s with probability %s\n", a.Of, words.Count(a.Most), cmp.Or(a.Unit, r.Unit), words.Count(a.Most-a.Error), r.sure())
	}
	if h := r.Heavy; h != nil {
		how := "at most; up to " + words.Count(h.Error) + " less with probability " + r.sure()
		if h.Exact {
			how = "exactly"
		}
		say("%s with %s %s or more (%v of %s), %s:", words.Things(len(h.Keys), "key"), words.Count(h.Least), r.Unit, h.Share, words.Count(r.Total), how)
		for _, k := range h.Keys {
			fmt.Fprintf(w, "%s\t%d\n", k.Key, k.Weight)
		}
	}
}

// unitOf returns the unit of an inner product of sketches with these columns of weights, or of one
// sketch.
func unitOf(a, b string) string {
	if a != "" && b != "" {
		return a + " × " + b
	}
	return cmp.Or(a, b, "rows")
}

// sure returns the probability that a bound holds.
func (r *queryReport) sure() string { return fmt.Sprintf("%.3g %%", 100*(1-r.Delta)) }

// keysOfTexts returns the keys that texts stand for, which a flag gave: text as it is, other
// values by the class of the sketch's keys. Those that equal no key of the class have no row.
func keysOfTexts(s *sketches.Sketch, flag string, texts ...string) (*keys.Batch, error) {
	options, err := s.KeyOptions()
	if err != nil {
		return nil, err
	}
	classes := strings.Join(s.Classes(), ", ")
	casts := make([]arrow.DataType, len(options.Classes))
	for i, class := range options.Classes {
		ok := class == keys.Null
		if !ok {
			casts[i], ok = keys.TextType(class, options.Rule)
		}
		if !ok {
			return nil, faults.Unsupported(fault.At{}, "%s of class %s", flag, classes)
		}
	}
	rows := make([][]string, len(texts))
	for i, text := range texts {
		if rows[i] = []string{text}; len(casts) > 1 {
			values, ok := valuesIn(text)
			if rows[i] = values; !ok || len(values) != len(casts) {
				return nil, faults.Mismatch(fault.At{}, flag, fmt.Sprintf("%d values as CSV, of class %s", len(casts), classes), "another text")
			}
		}
	}
	b, err := keys.FromTexts(casts, options, rows...)
	if err == nil && len(b.Misfits()) > 0 {
		err = faults.Mismatch(fault.At{}, flag, "a key of class "+classes+" (the sketch)", "other text")
	}
	return b, err
}
