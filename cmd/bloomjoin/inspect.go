package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/look"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/each"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyindex"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/stopped"
	"github.com/bloomjoin/bloomjoin/storage"
)

func (c *cli) inspectCmd() *cobra.Command {
	var check, compare bool
	var head int
	var manifests, shard, delimiter string
	var from flags.Inputs
	cmd := &cobra.Command{
		Use:   "inspect [--check | --compare] [--shard I/N] FILE...",
		Short: "Describe filters and files with rows, or check them",
		Example: `  bloomjoin inspect users.bjf logs/
  bloomjoin inspect --check users.bjf rows.parquet
  bloomjoin inspect --compare monday.bjf tuesday.bjf`,
		Annotations: flags.Help("cli"),
		Args:        from.Arguments("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if compare {
				return c.compare(cmd, args)
			}
			by, err := flags.RowsDelimiter(delimiter, new(string))
			if err = errors.Join(err, look.Check(head, 0)); err != nil {
				return err
			}
			if c.JSON || check && !cmd.Flags().Changed("head") {
				head = 0
			}
			return c.inspect(cmd, check, head, manifests, shard, by, &from, args)
		},
	}
	f := cmd.Flags()
	from.AddFrom(f)
	f.StringVar(&shard, "shard", "", flags.ShardHelp)
	flags.AddDelimiter(f, &delimiter)
	flags.AddManifestDir(f, &manifests)
	flags.Group(f, flags.GroupInput)

	f.IntVar(&head, "head", 3, "`N` rows shown of each file")
	flags.Group(f, flags.GroupOutput)

	f.BoolVar(&check, "check", false, "read and verify every byte; exit with 1 if anything is damaged")
	f.BoolVar(&compare, "compare", false, "count the keys of two filters: in both, and in each alone")
	flags.Group(f, flags.GroupChecks)
	flags.Exclusive(cmd, "check", "compare")
	flags.Exclusive(cmd, "compare", "shard")
	flags.Exclusive(cmd, "head", "json")
	flags.Exclusive(cmd, "head", "compare")
	return cmd
}

// inspected is the report about one file.
type inspected struct {
	File    string       `json:"file"`
	Bytes   int64        `json:"bytes"`
	Checked bool         `json:"checked"` // read completely, without errors
	Filter  *filterFacts `json:"filter,omitempty"`
	Sketch  *sketchFacts `json:"sketch,omitempty"`
	Table   *tableFacts  `json:"table,omitempty"`
	Inputs  *listFacts   `json:"inputs,omitempty"`
	Index   *indexFacts  `json:"index,omitempty"`
	Notes   []string     `json:"notes,omitempty"` // what the file says wrongly and readers do not rely on
	name    string       // as given
	lines   [][2]string  // for people
	rows    *look.Table  // for people; nil: none
}

type filterFacts struct {
	Kind         string     `json:"kind"`
	Reveals      string     `json:"reveals"`
	Sealed       bool       `json:"sealed"`
	Shards       []uint32   `json:"shards,omitempty"`
	Of           uint32     `json:"of,omitempty"`
	Key          []keyFacts `json:"key"`
	NormalForm   string     `json:"normal_form"`
	Normalize    string     `json:"normalize,omitempty"` // rules that normalised strings
	Hash         string     `json:"hash"`
	Geometry     string     `json:"geometry"`
	Multiset     bool       `json:"multiset,omitempty"`
	Saturated    *uint64    `json:"saturated,omitempty"` // counters of a counting filter that never fall again
	Blocks       uint64     `json:"blocks"`
	Keys         uint64     `json:"keys"`
	Distinct     uint64     `json:"distinct_estimate,omitempty"` // from the registers, or from bits or members if checked
	Capacity     uint64     `json:"capacity,omitempty"`          // distinct keys that fit
	Parents      []string   `json:"parents,omitempty"`           // digests of the filters that were combined
	Exceptions   uint64     `json:"exceptions,omitempty"`        // hashes of keys that do not pass, although the bits have them
	KnownKeys    uint64     `json:"known_keys,omitempty"`        // that the filter was built against
	FPRAsked     float64    `json:"fpr_asked"`
	FPRPredicted *float64   `json:"fpr_predicted,omitempty"`
	PayloadBytes uint64     `json:"payload_bytes"`
	StoredBytes  uint64     `json:"stored_bytes"`
	BuildID      string     `json:"build_id"`
	Digest       string     `json:"digest"`
	Version      uint16     `json:"format_version"`
}

type keyFacts struct {
	Name  string `json:"name"`
	Class string `json:"class"`
}

type tableFacts struct {
	Format    string       `json:"format"`
	Rows      int64        `json:"rows"` // -1: unknown without reading the file
	RowGroups int          `json:"row_groups"`
	Codec     string       `json:"codec,omitempty"`
	Columns   []columnFact `json:"columns"`
	Result    string       `json:"result,omitempty"`
	Filter    string       `json:"filter_digest,omitempty"`
}

type columnFact struct {
	Name     string     `json:"name"`
	Type     string     `json:"type"`
	Nullable bool       `json:"nullable"`
	Keys     []look.Key `json:"keys,omitempty"` // that it, or fields of it, can be
}

func (c *cli) inspect(cmd *cobra.Command, check bool, head int, manifests, shard string, by byte, from *flags.Inputs, args []string) error {
	start := time.Now()
	var all roundRobin
	var err error
	if all.shard, err = c.ShardOf(shard); err != nil {
		return err
	}
	budget, err := c.Budget()
	if err != nil {
		return err
	}
	if args, err = c.inspectedNames(cmd, from, args); err != nil {
		return err
	}
	report := struct {
		session.Head
		Files       []inspected    `json:"files"`
		Directories []dirInspected `json:"directories,omitempty"` // outputs of runs

		Error *session.Failure `json:"error,omitempty"` // of other files
	}{Files: []inspected{}}
	var failed []error
	lim := filters.Limits{MaxBytes: uint64(budget)}
	for _, name := range args {
		if objects.IsDir(cmd.Context(), c.Store(), name) {
			found, err := c.inspectDir(cmd, name, check, &all, lim)
			report.Files, failed = append(report.Files, found...), append(failed, err)
			if all.shard.Index > 0 {
				continue // the first one compares the directory with its manifest
			}
			state, err := c.inspectState(cmd.Context(), name, manifests, check, found)
			if state != nil {
				report.Directories = append(report.Directories, *state)
			}
			failed = append(failed, err)
			continue
		}
		if !all.mine() {
			continue
		}
		named := source.Opening{OpenOptions: source.OpenOptions{Text: source.IsText(source.FormatByName(address.WithoutQuery(name)))}}
		if by != 0 && !flags.TypedName(name) {
			named.Text, named.TextFormat, named.Delimiter = true, dataset.CSV, by
		}
		i, err := c.inspectOne(cmd, name, check, head, named, lim)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		report.Files = append(report.Files, i)
		if !c.JSON {
			failed = append(failed, i.print(c.Stdout))
		}
	}
	report.Head = c.NewHead("inspect", start)
	if err = errors.Join(failed...); err != nil {
		report.Error = c.Failure(cmd.Context(), err)
	}
	return errors.Join(err, c.Report(report, ""))
}

// summary returns a description of a file in one line.
func (i *inspected) summary() string {
	checked := ""
	if i.Checked {
		checked = ", checked"
	}
	if len(i.Notes) > 0 {
		checked += " with " + words.Things(len(i.Notes), "note")
	}
	if i.Inputs != nil {
		return "a list of " + words.Things(i.Inputs.Inputs, "input") + checked
	}
	if s := i.Sketch; s != nil {
		return fmt.Sprintf("sketch, %s, %s%s", s.state(), i.Sketch.counted(), checked)
	}
	if i.Index != nil {
		return "an index of a list of " + words.Things(i.Index.Inputs, "input") + checked
	}
	if f := i.Filter; f != nil {
		state := "finished"
		if !f.Sealed {
			state = fmt.Sprintf("partial, %d of %d shards", len(f.Shards), f.Of)
		}
		return fmt.Sprintf("%s filter, %s, %s keys%s", f.Kind, state, words.Count(f.Keys), checked)
	}
	return fmt.Sprintf("%s, %s, %s%s", i.Table.Format, rowsCounted(i.Table.Rows), words.Things(len(i.Table.Columns), "column"), checked)
}

// rowsCounted names a number of rows, which is below 0 if it is not known.
func rowsCounted(n int64) string {
	if n < 0 {
		return "rows not counted"
	}
	return words.Count(n) + " rows"
}

// firstOf returns the first bytes of a file, by which its kind is known.
func firstOf(src storage.Reader) ([]byte, error) {
	first := make([]byte, min(64, src.Object().Size))
	_, err := src.ReadAt(first, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return first, err
}

// inspectOne describes a file. open says whether it may be text, head how many rows are shown.
func (c *cli) inspectOne(cmd *cobra.Command, name string, check bool, head int, open source.Opening, lim filters.Limits) (i inspected, err error) {
	src, err := c.Store().Open(cmd.Context(), storage.Object{Name: name})
	if err != nil {
		return i, err
	}
	defer faults.Join(&err, src.Close)
	i = inspected{File: publish.EscapeName(name), name: name, Bytes: src.Object().Size}
	first, err := firstOf(src)
	if err != nil {
		return i, err
	}
	if filters.IsFilter(first) {
		return i, i.filter(src, name, check, lim)
	}
	if sniff.Kind(first) == sniff.ASketch {
		return i, i.sketch(src, name, check)
	}
	if inputs.IsList(first) {
		return i, i.list(cmd.Context(), c.Store(), name, check)
	}
	if keyindex.Is(first) {
		return i, i.index(cmd.Context(), c.Store(), name, check)
	}
	open.Hive, open.Uncommitted = dataset.HiveOff, true
	files, err := c.Open(cmd, []string{name}, open)
	if errors.Is(err, source.ErrNoData) {
		return i, fmt.Errorf("%s: %w, nor a filter (name a file of one of these kinds)", name, source.ErrNoData)
	}
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, source.Close(files)) }()
	if err := i.table(cmd.Context(), files[0], check); err != nil || head == 0 {
		return i, err
	}
	i.rows = look.NewTable(head, c.Width())
	if err := i.rows.Read(cmd.Context(), files[0]); err != nil {
		if err := stopped.Err(cmd.Context()); err != nil {
			return i, err
		}
		i.rows = nil
		i.say("rows", "cannot be read: %s", words.Error(err)) // the description holds
	}
	return i, nil
}

func (i *inspected) say(name, format string, args ...any) {
	i.lines = append(i.lines, [2]string{name, fmt.Sprintf(format, args...)})
}

// key describes a key, and the rule that normalized it; "" if there is none.
func (i *inspected) key(columns []keyFacts, rule string) {
	for _, k := range columns {
		i.say("key", "%s, class %s", k.Name, k.Class)
	}
	if rule != "" {
		i.say("normalized by", "%s", rule)
	}
}

// keyOf returns the key of a filter or sketch.
func keyOf(f *filters.Facts) []keyFacts {
	return each.Slice(f.Key, func(k filters.KeyColumn) keyFacts { return keyFacts{k.Name, k.Class} })
}

// checked records that all of the file was read and is whole, unless there is an error.
func (i *inspected) checked(err error) error {
	if err == nil {
		i.Checked = true
		i.say("checked", "all checksums hold")
	}
	return err
}

func (i *inspected) print(w io.Writer) error {
	safe := words.Printable{Writer: w}
	fmt.Fprintf(safe, "%s: %s\n", i.name, words.Bytes(i.Bytes))
	for _, l := range i.lines {
		fmt.Fprintf(safe, "  %-15s %s\n", l[0], l[1])
	}
	if i.rows == nil {
		return nil
	}
	fmt.Fprintln(safe)
	return i.rows.Print(w, i.Table.Rows, "")
}

func (i *inspected) filter(src storage.Reader, name string, check bool, lim filters.Limits) error {
	h, err := filters.DecodeHeader(src, src.Object().Size, name)
	if err != nil {
		return err
	}
	f := h.Filter
	said := f.Facts()
	facts := &filterFacts{
		Kind: f.Kind().String(), Sealed: f.Sealed(), NormalForm: said.NormalForm, Normalize: said.Rule, Hash: said.Params.Hash.String(),
		Geometry: said.Params.Geometry.String(), Blocks: said.Params.Blocks, Keys: said.Keys, FPRAsked: said.FPRAsked,
		PayloadBytes: h.PayloadBytes, StoredBytes: h.StoredBytes, Version: h.Version,
		BuildID: fmt.Sprintf("%x", said.BuildID), Digest: fmt.Sprintf("%x", h.Digest()),
		Reveals: "membership: the file answers whether a key is in the set",
	}
	if f.Kind() == filters.KindExact {
		facts.Reveals = "the IDs themselves"
	}
	facts.Key = keyOf(said)
	i.key(facts.Key, said.Rule)
	i.Filter = facts
	state := "finished"
	if said.Partial != nil {
		facts.Shards, facts.Of = said.Partial.Held, said.Partial.Of
		state = fmt.Sprintf("partial: shards %v of %d", said.Partial.Held, said.Partial.Of)
	}
	i.say("filter", "%s, %s%s", facts.Kind, state, facts.counting(said.Counting))
	distinct := ""
	if len(said.Registers) == len(bloom.Registers{}) {
		facts.Distinct = uint64(math.Round((*bloom.Registers)(said.Registers).Estimate()))
		distinct = fmt.Sprintf(", about %s distinct (registers, ± 0.8 %%)", words.Count(facts.Distinct))
	}
	i.say("keys", "%s %s%s", words.Count(said.Keys), facts.keysAre(), distinct)
	if facts.Capacity = said.Capacity.Keys; facts.Capacity > 0 {
		i.say("capacity", "room for %s distinct keys%s", words.Count(facts.Capacity), facts.full())
	}
	i.against(f, facts)
	i.say("reveals", "%s", facts.revealsTo(f))
	if f.Kind() != filters.KindExact {
		i.say("geometry", "%s, %s blocks (%s), %s", facts.Geometry, words.Count(facts.Blocks), words.Bytes(h.PayloadBytes), facts.Hash)
	}
	if !check && f.Kind() != filters.KindExact && f.Sealed() {
		if err := i.rate(h, facts, lim); err != nil {
			return err
		}
	}
	i.say("digest", "%s", facts.Digest)
	i.say("build", "%s", facts.BuildID)
	for _, d := range said.Parents {
		facts.Parents = append(facts.Parents, fmt.Sprintf("%x", d))
		i.say("made from", "%x", d)
	}
	if !check {
		return nil
	}
	whole, err := h.Load(lim)
	if err != nil {
		return err
	}
	rep, p := builds.Count(whole), whole.FPR()
	facts.FPRPredicted = &p
	if facts.Distinct == 0 {
		facts.Distinct = rep.Distinct
	}
	i.say("false positives", "%.3g by the bits, %.3g asked for; about %s distinct keys%s", p, said.FPRAsked, words.Count(rep.Distinct), facts.full())
	return i.checked(nil)
}

// revealsTo returns what the file says of the IDs to those who have it.
func (f *filterFacts) revealsTo(of *filters.Filter) string {
	if of.Kind() == filters.KindExact {
		return f.Reveals + ": anyone with this file can list them"
	}
	s := f.Reveals + ", so anyone with this file can test any ID"
	if _, _, ok := of.KeyRange(0); ok {
		s += "; it holds the least and the largest key"
	}
	return s
}

// counting records what a counting filter says, and describes it; k is nil for other kinds.
func (f *filterFacts) counting(k *filters.Counting) string {
	if k == nil {
		return ""
	}
	f.Multiset, f.Saturated = k.Multiset, &k.Saturated
	return fmt.Sprintf(", %s; %s saturated", k.Mode(), words.Things(int(k.Saturated), "counter"))
}

// keysAre returns what the number of keys counts.
func (f *filterFacts) keysAre() string {
	if f.Saturated != nil {
		return "in"
	}
	return "added"
}

// against adds what the filter says of known good keys.
func (i *inspected) against(f *filters.Filter, facts *filterFacts) {
	e := f.Facts().Exceptions
	if e == nil {
		return
	}
	facts.KnownKeys = e.Known
	known := ""
	if e.Known > 0 {
		known = fmt.Sprintf(", built against %s known keys", words.Count(e.Known))
	}
	if !f.Sealed() {
		i.say("known keys", "%s, of which %s are in these shards; merge finds the exceptions", words.Count(e.Known), words.Count(e.Hashes.Len()))
		return
	}
	facts.Exceptions = e.Hashes.Len()
	i.say("exceptions", "%s%s", words.Count(facts.Exceptions), known)
}

// readForRate is the size of bits that are read for their false-positive rate.
const readForRate = 64 << 20

// rate adds the false-positive rate of a Bloom filter: from the estimated number of keys or,
// without an estimate, from the bits if these take at most readForRate bytes.
func (i *inspected) rate(h *filters.Header, facts *filterFacts, lim filters.Limits) error {
	params := h.Filter.Facts().Params
	p := params.Geometry.FPR(params.Blocks, facts.Distinct)
	if facts.Distinct == 0 {
		if params.Bytes() > readForRate {
			i.say("false positives", "%.3g asked for (--check reads the bits for the rate that they have)", facts.FPRAsked)
			return nil
		}
		whole, err := h.Load(lim)
		if err != nil {
			return err
		}
		p = whole.FPR()
	}
	facts.FPRPredicted = &p
	i.say("false positives", "%.3g predicted, %.3g asked for", p, facts.FPRAsked)
	return nil
}

// full returns how much of the capacity is used, or "" if that is unknown.
func (f *filterFacts) full() string {
	if f.Capacity == 0 || f.Distinct == 0 {
		return ""
	}
	return fmt.Sprintf(", %s used", words.Percent(int64(f.Distinct), int64(f.Capacity)))
}

func (i *inspected) table(ctx context.Context, f *source.File, check bool) error {
	md := f.Schema().Metadata()
	t := &tableFacts{Format: string(f.Format()), Rows: f.Rows(), RowGroups: f.NumGroups(), Codec: f.Codec()}
	t.Result, _ = md.GetValue(source.MetaResult)
	t.Filter, _ = md.GetValue(source.MetaFilter)
	i.Table = t
	format := fmt.Sprintf("%s, %s in %s", t.Format, rowsCounted(t.Rows), words.Things(t.RowGroups, "row group"))
	if t.Codec != "" {
		format += ", " + t.Codec
	}
	i.say("format", "%s", format)
	switch t.Result {
	case source.ResultCandidates:
		i.say("result", "candidates of filter %.16s…: false positives may be among the rows", t.Filter)
	case source.ResultExact:
		i.say("result", "exact answer of a join")
	case source.ResultFiltered:
		i.say("result", "rows of a log that satisfy a condition")
	}
	for n, c := range f.Schema().Fields() {
		of := look.KeysOf(f, n)
		t.Columns = append(t.Columns, columnFact{c.Name, c.Type.String(), c.Nullable, of})
		line := c.Name + " " + c.Type.String()
		if !c.Nullable {
			line += " not null"
		}
		nested := c.Type.ID() == arrow.STRUCT
		if len(of) == 1 && !nested {
			line += of[0].Of(c.Name)
		}
		i.say("column", "%s", line)
		for k := range of {
			if nested {
				i.say("  field", "%s", of[k].Of(c.Name))
			}
		}
	}
	if !check {
		return nil
	}
	groups := f.NumGroups()
	if f.Format() == dataset.ArrowFile {
		groups = max(groups, 1)
	}
	for g := range groups {
		if err := f.Check(ctx, g); err != nil {
			return err
		}
	}
	i.Checked = true
	said := "every page was decoded"
	if f.Parquet() != nil {
		said += "; the statistics, page indexes and Bloom filters that scans use agree with the values"
		i.Notes = f.Doubts()
	}
	for _, note := range i.Notes {
		said = "every page was decoded; see the notes"
		i.say("note", "%s", note)
	}
	i.say("checked", "%s", said)
	return nil
}
