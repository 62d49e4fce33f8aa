package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/quiet"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

type findFlags struct {
	keys              []string
	rowGroups, verify bool
}

func (c *cli) findCmd() *cobra.Command {
	var o findFlags
	cmd := &cobra.Command{
		Use:   "find --key VALUE[,VALUE] INPUTS.jsonl",
		Short: "Name the files that may hold a key, without scanning them",
		Long:  `Name the files of a list that may hold a key, by the index of the list, which bloomjoin inputs --index writes. A file that is not named does not hold it.`,
		Example: `  bloomjoin find --key 12345 inputs.jsonl
  bloomjoin find --key 12345 --key 678 --verify inputs.jsonl
  bloomjoin find --key 12345 inputs.jsonl | bloomjoin inspect --files-from -`,
		Annotations: flags.Help("find"),
		Args:        flags.SomeArguments("INPUTS.jsonl"),
		RunE:        withFlags(c.find, &o),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "`VALUE` key to find; several columns as CSV; repeatable")
	flags.Group(f, flags.GroupKeys)

	f.BoolVar(&o.verify, "verify", false, "read the keys of these files, and count the rows that have it")
	flags.Group(f, flags.GroupChecks)

	f.BoolVar(&o.rowGroups, "row-groups", false, "name row groups, too, counted from 0")
	flags.Group(f, flags.GroupOutput)
	c.Complete(cmd, c.common())
	return cmd
}

// findReport is the JSON report of find.
type findReport struct {
	session.Head
	Inputs     int         `json:"inputs"`
	Files      []foundFile `json:"files"` // that may hold a key, with --verify that do
	Candidates int         `json:"candidates"`
	Rows       *int64      `json:"rows,omitempty"` // with --verify
	FPR        float64     `json:"fpr"`
	IndexBytes int64       `json:"index_bytes"`
}

type foundFile struct {
	File      string `json:"file"`
	RowGroups []int  `json:"row_groups"` // of them; all, if the index has only files
	Rows      *int64 `json:"rows,omitempty"`

	input inputs.Input
}

func (c *cli) find(cmd *cobra.Command, o *findFlags, args []string) (err error) {
	ctx, start := cmd.Context(), time.Now()
	switch {
	case len(args) > 1:
		return flags.Usagef("%s: want one list of inputs, got another argument", args[1])
	case len(o.keys) == 0:
		return flags.Required("--key VALUE is required: name the key to find, as --key 12345")
	}
	if objects.IsDir(ctx, c.Store(), args[0]) {
		return flags.Usagef("%s: a directory, want a list of inputs with an index: bloomjoin inputs --index COL -o inputs.jsonl '%s'", args[0], strings.ReplaceAll(args[0], "'", `'\''`))
	}
	c.Lists(args[0])
	list, err := inputs.Read(ctx, c.Store(), args[0])
	if err != nil {
		return err
	}
	defer faults.Join(&err, list.Close)
	name := keyindex.NameOf(args[0])
	x, err := keyindex.Open(ctx, c.Store(), name)
	if errors.Is(err, fs.ErrNotExist) {
		err = cause.Mark(cause.Listed, fmt.Errorf("%s: the list has no index (make one with bloomjoin inputs --index COL)%w", name, quiet.Error{Err: err}))
	}
	if err != nil {
		return err
	}
	defer faults.Join(&err, x.Close)
	if err := x.Of(list); err != nil {
		return err
	}
	wanted, err := valuesOf(x, o.keys)
	if err != nil {
		return err
	}
	rep := findReport{Inputs: list.Len(), FPR: x.FPR, IndexBytes: x.Size(), Files: []foundFile{}}
	if rep.Files, err = c.candidates(ctx, list, x, wanted); err != nil {
		return err
	}
	rep.Candidates = len(rep.Files)
	if o.verify {
		if err := c.verifyFound(ctx, list, x, wanted, &rep); err != nil {
			return err
		}
	}
	rep.Head = c.NewHead("find", start)
	if err := c.sayFound(o, &rep); err != nil {
		return err
	}
	return c.Report(rep, "")
}

// valuesOf parses the keys to find. Errors do not repeat them.
func valuesOf(x *keyindex.Index, texts []string) (wanted []keyindex.Value, err error) {
	for i, text := range texts {
		parts := []string{text}
		if len(x.Classes) > 1 {
			var ok bool
			if parts, ok = valuesIn(text); !ok {
				return nil, fmt.Errorf("--key, number %d: want values separated by commas, each as it is or in double quotes, got another text", i+1)
			}
		}
		v, err := x.Parse(parts)
		if err != nil {
			return nil, fmt.Errorf("--key, number %d: %w", i+1, err)
		}
		wanted = append(wanted, v)
	}
	return wanted, nil
}

// valuesIn returns the values of a line of CSV. ok is false if the text is something else.
func valuesIn(text string) (values []string, ok bool) {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	return slices.Concat(lines...), err == nil && len(lines) < 2
}

// candidates returns the files that may hold one of the keys, also those of which the index does
// not know since they have changed.
func (c *cli) candidates(ctx context.Context, list *inputs.List, x *keyindex.Index, wanted []keyindex.Value) (found []foundFile, err error) {
	hashes := each.Slice(wanted, func(v keyindex.Value) uint64 { return v.Hash })
	units := make([]keyindex.Unit, x.Inputs)
	for i := range units {
		units[i] = x.File(i)
	}
	may, err := x.Probe(ctx, units, hashes)
	if err != nil {
		return nil, err
	}
	var all, some []inputs.Input
	for in, err := range list.Each(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, in)
	}
	changed, err := list.Differ(ctx, all, source.Opening{OpenOptions: source.OpenOptions{Store: c.Store()}}, true)
	if err != nil {
		return nil, err
	}
	for i, is := range may {
		if errors.Is(changed[i], fs.ErrNotExist) {
			changed[i] = nil // it holds no key
		}
		if is || changed[i] != nil {
			some = append(some, all[i])
		}
	}
	units = units[:0]
	for _, in := range some {
		if err := x.Agrees(&in); err != nil {
			return nil, err
		}
		for g := range in.Groups {
			units = append(units, x.Group(in.Number(), g))
		}
	}
	if may, err = x.Probe(ctx, units, hashes); err != nil {
		return nil, err
	}
	found = []foundFile{}
	for _, in := range some {
		f := foundFile{File: publish.EscapeName(in.Name), RowGroups: []int{}, input: in}
		for g := range in.Groups {
			if may[g] || changed[in.Number()] != nil {
				f.RowGroups = append(f.RowGroups, g)
			}
		}
		if may = may[len(in.Groups):]; len(f.RowGroups) > 0 || changed[in.Number()] != nil {
			found = append(found, f)
		}
	}
	return found, nil
}

// verifiedAtOnce is the number of files that verifyFound opens at once.
const verifiedAtOnce = 64

// verifyFound reads the keys of the files that may hold one, and leaves those that do.
func (c *cli) verifyFound(ctx context.Context, list *inputs.List, x *keyindex.Index, wanted []keyindex.Value, rep *findReport) error {
	var open source.Opening
	if err := c.Budgets(&open); err != nil {
		return err
	}
	is := map[string]bool{}
	for _, v := range wanted {
		is[v.Bytes] = true
	}
	total := int64(0)
	for some := range slices.Chunk(rep.Files, verifiedAtOnce) {
		counts, err := c.countFound(ctx, list, x, is, some, open)
		if err != nil {
			return err
		}
		for i := range some {
			rows := int64(0)
			some[i].RowGroups = slices.DeleteFunc(some[i].RowGroups, func(g int) bool {
				rows += counts[i][g]
				return counts[i][g] == 0
			})
			some[i].Rows, total = &rows, total+rows
		}
	}
	rep.Files = slices.DeleteFunc(rep.Files, func(f foundFile) bool { return *f.Rows == 0 })
	rep.Rows = &total
	return nil
}

// countFound returns the number of rows with one of the keys, by file and row group.
func (c *cli) countFound(ctx context.Context, list *inputs.List, x *keyindex.Index, is map[string]bool, some []foundFile, open source.Opening) (counts []map[int]int64, err error) {
	var pieces []inputs.Piece
	for i := range some {
		pieces = append(pieces, inputs.Piece{Input: some[i].input})
	}
	files, _, err := list.Open(ctx, pieces, open)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close(files)) }()
	number := map[*source.File]int{}
	var read []source.Piece
	for i, f := range files {
		number[f], counts = i, append(counts, map[int]int64{})
		for _, g := range some[i].RowGroups {
			read = append(read, source.Piece{File: f, Lo: g, Hi: g + 1})
		}
	}
	var mu sync.Mutex
	o := keyscan.ReadOptions{Key: x.Key, Options: keys.Options{Rule: x.Rule()}, Distinct: true, Threads: c.Threads}
	_, _, err = keyscan.Read(ctx, read, o, func() (func(*keyscan.Keys) error, error) {
		var key []byte
		return func(k *keyscan.Keys) error {
			rows := int64(0)
			for i := range k.Batch.Rows {
				if key = k.Batch.Append(key[:0], i); is[string(key)] {
					rows += k.RowsOf(i)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			counts[number[k.Piece.File]][k.Piece.Lo] += rows
			return nil
		}, nil
	})
	return counts, err
}

// sayFound prints the files, and a summary.
func (c *cli) sayFound(o *findFlags, r *findReport) error {
	var b strings.Builder
	for _, f := range r.Files {
		b.WriteString(f.input.Name)
		if o.rowGroups {
			b.WriteString("\t" + strings.Trim(strings.ReplaceAll(fmt.Sprint(f.RowGroups), " ", ","), "[]"))
		}
		if f.Rows != nil {
			fmt.Fprintf(&b, "\t%d", *f.Rows)
		}
		b.WriteByte('\n')
	}
	if !c.JSON {
		to := c.Stdout
		if c.Shown {
			to = words.Printable{Writer: c.Stdout}
		}
		if _, err := io.WriteString(to, b.String()); err != nil {
			return err
		}
	}
	of := words.Things(r.Inputs, "file")
	if r.Rows != nil {
		c.Say("%s of %s %s it: %s; the index named %s", words.Count(len(r.Files)), of, words.Number(len(r.Files), "holds", "hold"), words.Things(*r.Rows, "row"), words.Count(r.Candidates))
		return nil
	}
	c.Say("%s of %s may hold it", words.Count(len(r.Files)), of)
	return nil
}
