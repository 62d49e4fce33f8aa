package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/storage"
)

type probeFlags struct {
	filter, key, format, delimiter string
	by                             byte
	mask, invert                   bool
	keys                           flags.Keys
}

// Values of --format of probe.
const (
	probeArrow  = "arrow"
	probeNDJSON = "ndjson"
	probeLines  = "lines"
	probeCSV    = "csv"
	probeTSV    = "tsv"
)

var probeFormats = []string{probeArrow, probeCSV, probeLines, probeNDJSON, probeTSV}

func (c *cli) probeCmd() *cobra.Command {
	var o probeFlags
	cmd := &cobra.Command{
		Use:   "probe --filter FILTER [--key COL[,COL]] [--mask | --invert] [FILE]",
		Short: "Pass on the lines or rows that a filter lets through, as they come",
		Long:  `Pass on the lines or rows that a filter lets through, as they come: one key a line, CSV, TSV, NDJSON, or an Arrow stream, from standard input or a file. Each is answered at once, so a program can go on asking.`,
		Example: `  bloomjoin probe --filter bad-urls.bjf urls.txt >suspects.txt
  tail -f events.ndjson | bloomjoin probe --filter users.bjf --key user.id
  bloomjoin probe --filter users.bjf --key user_id::int64 --mask <rows.arrows`,
		Annotations: flags.Help("stdin"),
		Args:        oneInput,
		RunE:        func(cmd *cobra.Command, args []string) error { return c.probe(cmd.Context(), &o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.filter, "filter", "", "`FILE` the filter to apply")
	f.StringVar(&o.format, "format", "", "`FORMAT` lines, csv, tsv, ndjson or arrow")
	flags.AddDelimiter(f, &o.delimiter)
	flags.Group(f, flags.GroupInput)

	f.StringVar(&o.key, "key", "", "`COLUMNS` key columns; COL::TYPE casts (default: as in the filter)")
	o.keys.Add(f)
	flags.Group(f, flags.GroupKeys)

	f.BoolVar(&o.mask, "mask", false, "write whether each row passes, in place of the row")
	f.BoolVar(&o.invert, "invert", false, "pass on the other rows, surely not in the ID set")
	flags.Group(f, flags.GroupOutput)
	flags.Exclusive(cmd, "mask", "invert")
	of := c.common()
	of["format"] = flags.Choices(probeFormats...)
	c.Complete(cmd, of)
	return cmd
}

// oneInput refuses more than one argument.
func oneInput(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return flags.Usagef("%s: want one file or standard input, got %d arguments (pass several through a pipe: cat %s | ...)", cmd.CommandPath(), len(args), strings.Join(args[:2], " "))
}

// check checks the flags before anything is opened.
func (o *probeFlags) check() error {
	if o.filter == "" {
		return flags.Required("--filter FILE is required: name the filter to apply, which bloomjoin build makes")
	}
	var err error
	if o.by, err = flags.RowsDelimiter(o.delimiter, &o.format); err != nil {
		return err
	}
	if o.format != "" {
		if err := flags.OneOf("format", o.format, probeFormats...); err != nil {
			return err
		}
	}
	var columns []keys.Column
	if o.key != "" {
		if columns, err = keys.ParseColumns(o.key); err != nil {
			return flags.Usagef("--key: %w", err)
		}
	}
	return o.keys.Check(columns)
}

// probeReport is the JSON report of probe.
type probeReport struct {
	session.Head
	RowsIn   int64 `json:"rows_in"`
	RowsOut  int64 `json:"rows_out"` // that may match, also with --mask; with --invert the others
	KeysNull int64 `json:"keys_null"`
}

func (c *cli) probe(ctx context.Context, o *probeFlags, args []string) (err error) {
	start := time.Now()
	if err := o.check(); err != nil {
		return err
	}
	c.WatchReader(ctx, "-")
	in, name, err := c.probed(ctx, args)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // nothing was written
	p, err := c.newProber(ctx, o)
	if err != nil {
		return err
	}
	p.name = name
	defer func() {
		if p.filter != nil {
			err = errors.Join(err, p.filter.Close())
		}
	}()
	buffered := bufio.NewReaderSize(in, 64<<10)
	format, guessed, err := probeFormat(o.format, name, buffered)
	if err != nil {
		return err
	}
	if format == probeArrow && c.Shown {
		return flags.Usagef("standard output is a terminal, and the answer is an Arrow stream, which is not text: pipe it into a program, or send it to a file")
	}
	add, end := c.Progress("probing", nil)
	defer end()
	p.progress = add
	if format == probeArrow {
		err = p.arrow(ctx, buffered)
	} else {
		err = p.texts(ctx, buffered, format, guessed)
	}
	end()
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return err
	}
	rep := probeReport{RowsIn: p.rowsIn, RowsOut: p.rowsOut, KeysNull: p.keysNull}
	rep.Head = c.NewHead("probe", start)
	what := "may match"
	if o.invert {
		what = words.Number(rep.RowsOut, "does not match", "do not match")
	}
	c.Say("%s of %s %s (%s), in %.2f s", words.Count(rep.RowsOut), words.Things(rep.RowsIn, "row"), what, words.Percent(rep.RowsOut, rep.RowsIn), rep.Seconds)
	return c.Report(rep, "-")
}

// stdinName names standard input in errors.
const stdinName = "standard input"

// probed opens what is probed, and returns its name for errors.
func (c *cli) probed(ctx context.Context, args []string) (io.ReadCloser, string, error) {
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(c.Stdin), stdinName, nil
	}
	src, err := c.Store().Open(ctx, storage.Object{Name: args[0]})
	if err != nil {
		return nil, "", err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(src, 0, src.Object().Size), src}, args[0], nil
}

// probeFormat returns the format of the input: the one that was given, or that its name says,
// or that its first bytes have. It reads no more than it needs, since a program that waits
// for an answer may write nothing more. Lines are guessed if nothing says that they are
// something else.
func probeFormat(given, name string, in *bufio.Reader) (format string, guessed bool, err error) {
	if given != "" {
		return given, false, nil
	}
	if f, ok := text.FormatOf(address.WithoutQuery(name)); ok {
		for format, of := range textFormats {
			if of == f {
				return format, false, nil
			}
		}
		return probeNDJSON, false, nil
	}
	at := fault.At{File: name}
	for n := 1; ; n++ {
		head, err := in.Peek(n)
		switch {
		case err == io.EOF && n == 1:
			return "", false, faults.Of(cause.NoInputs, faults.Mismatch(at, "the rows", "lines, NDJSON or an Arrow IPC stream", "nothing")).
				WithHint("check that the program that writes them has not failed; if there may be none, name the format with --format")
		case err != nil && err != io.EOF:
			return "", false, err
		}
		for _, m := range probeMagic {
			switch {
			case string(head) == m.bytes && m.format == "":
				return "", false, faults.Of(cause.NotData, faults.Unsupported(at, "a file of Arrow or Parquet, which is read from its end")).WithHint("name it for bloomjoin scan, or write a stream")
			case string(head) == m.bytes:
				return m.format, false, nil
			}
		}
		if err == nil && slices.ContainsFunc(probeMagic, func(m magic) bool { return strings.HasPrefix(m.bytes, string(head)) }) {
			continue
		}
		head, _ = in.Peek(in.Buffered())
		if len(head) == 4 && head[2]|head[3] == 0 { // a length, and not text
			head, _ = in.Peek(8)
		}
		if sniff.OldArrow(head) {
			return probeArrow, false, nil
		}
		if text.StartsJSON(head) {
			return probeNDJSON, false, nil
		}
		return probeLines, true, nil
	}
}

// magic is how an input begins. Without a format it is not read.
type magic struct{ bytes, format string }

var probeMagic = []magic{{"\xff\xff\xff\xff", probeArrow}, {"ARROW1", ""}, {"PAR1", ""}}

// prober asks a filter about rows, in one goroutine.
type prober struct {
	filter  *filters.Filter
	name    string // of the input
	columns []keys.Column
	options keys.Options
	by      byte // between fields of CSV; 0: a comma
	mask    bool
	invert  bool
	memory  int64 // budget of the process in bytes; 0: no bound
	out     *bufio.Writer
	warn    func(format string, args ...any)

	progress                  func(rows int64) // nil: nothing is shown
	rowsIn, rowsOut, keysNull int64

	batch keys.Batch
	hits  []uint32
	rows  []int
}

// newProber loads the filter and checks that it can be asked.
func (c *cli) newProber(ctx context.Context, o *probeFlags) (*prober, error) {
	budget, err := c.Budget()
	if err != nil {
		return nil, err
	}
	bits, err := c.FilterBudget()
	if err != nil {
		return nil, err
	}
	total, err := c.Total()
	if err != nil {
		return nil, err
	}
	f, err := filters.Load(ctx, c.Store(), o.filter, filters.Limits{MaxBytes: uint64(budget), MaxBits: uint64(bits), Unread: true})
	if err != nil {
		return nil, err
	}
	p := &prober{filter: f, mask: o.mask, invert: o.invert, memory: total, out: bufio.NewWriterSize(c.Stdout, 64<<10), warn: c.Warn}
	if err := p.prepare(o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// prepare finds the key columns, and checks the rules of the filter as a scan does.
func (p *prober) prepare(o *probeFlags) (err error) {
	m := dataset.Match{Filter: (*codec.Filter)(p.filter), Key: o.key, IgnoreCase: o.keys.IgnoreCase, NullMisfits: o.keys.NullMisfits()}
	if _, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}, Normalize: o.keys.Normalize}}); err != nil {
		return err
	}
	if o.key != "" {
		if p.columns, err = keys.ParseColumns(o.key); err != nil {
			return err
		}
	} else {
		for _, name := range p.filter.KeyNames() {
			c, err := keys.ParseColumns(name)
			if err != nil {
				return err
			}
			p.columns = append(p.columns, c...)
		}
	}
	p.options, err = p.filter.KeyOptions()
	p.by = o.by
	p.options.IgnoreCase, p.options.NullMisfits = o.keys.IgnoreCase, o.keys.NullMisfits()
	return err
}

// close closes the filter. An error says that its file has changed while it was in use.
func (p *prober) close() error {
	f := p.filter
	p.filter = nil
	return f.Close()
}

// count counts answered rows.
func (p *prober) count(rows, pass int64) {
	p.rowsIn += rows
	p.rowsOut += pass
	if p.progress != nil {
		p.progress(rows)
	}
}
