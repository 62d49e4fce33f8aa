package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
)

type probeFlags struct {
	filter, key, normalize, format string
	mask                           bool
	keys                           flags.Keys
}

// Values of --format of probe.
const (
	probeArrow  = "arrow"
	probeNDJSON = "ndjson"
)

func (c *cli) probeCmd() *cobra.Command {
	var o probeFlags
	cmd := &cobra.Command{
		Use:   "probe --filter FILTER [--key COL[,COL]] [--mask]",
		Short: "Pass on the rows from standard input that a filter lets through, as they come",
		Long: `Pass on the rows from standard input that a filter lets through, as they come: an
Arrow stream or NDJSON, to standard output in the same format. Each batch is answered
before the next one is read, so that a program can ask a process that keeps running.`,
		Example: `  producer | bloomjoin probe --filter users.bjf | consumer
  tail -f events.ndjson | bloomjoin probe --filter users.bjf --key user.id
  producer | bloomjoin probe --filter users.bjf --key user_id::int64 --mask --json | consumer`,
		Annotations: flags.Docs("stdin.md#ask-a-filter"),
		Args:        fromStdin,
		RunE:        func(cmd *cobra.Command, _ []string) error { return c.probe(cmd.Context(), &o) },
	}
	all := cmd.Flags()
	flags.Group(all, flags.GroupInput, func(f *pflag.FlagSet) {
		f.StringVar(&o.filter, "filter", "", "`FILE` the filter to apply")
		f.StringVar(&o.format, "format", "", "`FORMAT` of standard input and output: arrow (a stream) or ndjson (default: by the first bytes)")
	})
	flags.Group(all, flags.GroupKeys, func(f *pflag.FlagSet) {
		f.StringVar(&o.key, "key", "", "`COLUMNS` key columns of the rows; COL::TYPE casts (default: the names in the filter)")
		f.StringVar(&o.normalize, "normalize", "", flags.NormalizeHelp+", as the filter was built")
		o.keys.Add(f)
	})
	flags.Group(all, flags.GroupOutput, func(f *pflag.FlagSet) {
		f.BoolVar(&o.mask, "mask", false, "write whether each row passes, instead of the rows: a column may_match, or true and false")
	})
	of := c.common()
	of["format"] = flags.Choices(probeArrow, probeNDJSON)
	flags.Complete(cmd, of)
	return cmd
}

// fromStdin refuses arguments of a command that reads standard input.
func fromStdin(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return flags.Usagef("%s reads standard input, and takes no arguments, got %s (give it as <%s)", cmd.CommandPath(), args[0], args[0])
}

// check checks the flags before anything is opened.
func (o *probeFlags) check() error {
	if o.filter == "" {
		return flags.Usagef("--filter FILE is required: name the filter to apply, which bloomjoin build makes")
	}
	if o.format != "" {
		if err := flags.OneOf("format", o.format, probeArrow, probeNDJSON); err != nil {
			return err
		}
	}
	if _, err := keys.ParseRule(o.normalize); err != nil {
		return flags.Usagef("--normalize %w", err)
	}
	var columns []keys.Column
	if o.key != "" {
		var err error
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
	RowsOut  int64 `json:"rows_out"` // that may match, also with --mask
	KeysNull int64 `json:"keys_null"`
}

func (c *cli) probe(ctx context.Context, o *probeFlags) (err error) {
	start := time.Now()
	if err := o.check(); err != nil {
		return err
	}
	c.WatchReader(ctx, "-")
	p, err := c.newProber(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if p.filter != nil {
			err = errors.Join(err, p.filter.Close())
		}
	}()
	in := bufio.NewReaderSize(c.Stdin, 64<<10)
	format, err := probeFormat(o.format, in)
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
		err = p.arrow(ctx, in)
	} else {
		err = p.ndjson(ctx, in)
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
	c.Say("%s of %s rows may match (%s), in %.2f s", words.Count(rep.RowsOut), words.Count(rep.RowsIn), words.Percent(rep.RowsOut, rep.RowsIn), rep.Seconds)
	return c.Report(rep, "-")
}

// stdinName names standard input in errors.
const stdinName = "standard input"

// probeFormat returns the format of standard input: the one that was given, or the one that
// its first bytes have. A JSON object shows in its first byte, after which a program that
// waits for an answer may write nothing more.
func probeFormat(given string, in *bufio.Reader) (string, error) {
	if given != "" {
		return given, nil
	}
	at := fault.At{File: stdinName}
	const want = "an Arrow IPC stream or NDJSON"
	head, err := in.Peek(1)
	if err == io.EOF {
		return "", faults.Mismatch(at, "the rows", want, "nothing").
			WithHint("check that the program that writes them has not failed; if there may be none, name the format with --format")
	}
	if err != nil {
		return "", err
	}
	switch head[0] {
	case '{', ' ', '\t', '\r', '\n':
		return probeNDJSON, nil
	}
	if head, err = in.Peek(4); err != nil && err != io.EOF {
		return "", err
	}
	switch string(head) {
	case "\xff\xff\xff\xff":
		return probeArrow, nil
	case "ARRO", "PAR1":
		return "", faults.Unsupported(at, "a file of Arrow or Parquet, which is read from its end").WithHint("name it for bloomjoin scan, or write a stream")
	}
	for _, text := range []string{"\xef\xbb\xbf", "\x1f\x8b", "\x28\xb5\x2f\xfd"} { // a byte order mark, gzip, zstd
		if len(head) >= len(text) && string(head[:len(text)]) == text {
			return probeNDJSON, nil
		}
	}
	return "", faults.Mismatch(at, "the rows", want, "something else").WithHint("convert them to one of these; docs/stdin.md shows how")
}

// prober asks a filter about the rows of standard input, in one goroutine.
type prober struct {
	filter  *filters.Filter
	columns []keys.Column
	options keys.Options
	mask    bool
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
	total, err := c.Total()
	if err != nil {
		return nil, err
	}
	f, err := filters.Load(ctx, c.Store(), o.filter, filters.Limits{MaxBytes: uint64(budget)})
	if err != nil {
		return nil, err
	}
	p := &prober{filter: f, mask: o.mask, memory: total, out: bufio.NewWriterSize(c.Stdout, 64<<10), warn: c.Warn}
	if err := p.prepare(o); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// prepare finds the key columns, and checks the rules of the filter as a scan does.
func (p *prober) prepare(o *probeFlags) (err error) {
	m := dataset.Match{Filter: (*codec.Filter)(p.filter), Key: o.key, IgnoreCase: o.keys.IgnoreCase, NullMisfits: o.keys.NullMisfits()}
	if _, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{m}, Normalize: o.normalize}}); err != nil {
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
