package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/objects"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// cli holds the streams and flags that all verbs share.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       io.Writer               // standard error, without escaping
	shown          bool                    // standard output is a terminal
	cancel         context.CancelCauseFunc // ends the run

	stored        storage.Storage // see store
	closeStore    func() error    // nil: the store is the caller's
	storeOptions  cloud.Options
	storeSettings []string // --store-option
	remote        bool     // the command line names URLs

	listed                          string // --files-from, if it is a list of inputs
	json, quiet, verbose, force     bool
	threads                         int
	memory, progressMode, logFormat string
	progressEvery                   time.Duration // interval of progress lines

	verb    string // after the command line was parsed
	shard   string // of this worker, after --shard was parsed
	jsonLog bool   // --log-format json

	mistyped error // an unknown command, detected by help

	notes []string // what is remarkable about the names of inputs
}

func (c *cli) commonFlags(root *cobra.Command) {
	flagGroup(root.PersistentFlags(), groupStorage, c.addStore)
	flagGroup(root.PersistentFlags(), groupMemory, func(f *pflag.FlagSet) {
		f.StringVar(&c.memory, "memory", "", "`SIZE` memory budget, as 3GiB (default: nine tenths of what the container or machine has)")
		f.IntVar(&c.threads, "threads", 0, "`N` number of workers (default: the processors that the container allows)")
	})
	flagGroup(root.PersistentFlags(), groupReports, func(f *pflag.FlagSet) {
		f.BoolVar(&c.json, "json", false, "print a JSON object with the figures at the end")
		f.StringVar(&c.logFormat, "log-format", logText, "`FORMAT` of messages on standard error: text, or json (an object a line)")
		f.StringVar(&c.progressMode, "progress", "auto", progressHelp)
		f.DurationVar(&c.progressEvery, "progress-interval", progressEvery, "`DURATION` time between lines of progress, as 200ms or 1m")
		f.BoolVar(&c.quiet, "quiet", false, "print warnings and errors only")
		f.BoolVar(&c.verbose, "verbose", false, "print more: how each file was read, which files were passed over")
	})
	complete(root, map[string]completion{"progress": words("auto", "lines", "none"), "log-format": words(logText, logJSON), "store-option": completeStore})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		c.verb = cmd.Name()
		if err := checkExclusive(cmd); err != nil {
			return err
		}
		return c.checkCommon()
	}
}

// addForce adds the flag of verbs that write an output.
func (c *cli) addForce(f *pflag.FlagSet) {
	f.BoolVar(&c.force, "force", false, "replace an output that exists; in a directory, the outputs of the inputs named")
}

func (c *cli) checkCommon() error {
	if c.threads < 0 {
		return usagef("--threads %d: want 1 or more", c.threads)
	}
	if c.quiet && c.verbose {
		return usagef("--quiet and --verbose exclude each other: give one of them")
	}
	if err := oneOf("progress", c.progressMode, "auto", "lines", "none"); err != nil {
		return err
	}
	if err := oneOf("log-format", c.logFormat, logText, logJSON); err != nil {
		return err
	}
	if c.progressEvery < leastProgress {
		return usagef("--progress-interval %v: want %v or more, as 1s", c.progressEvery, leastProgress)
	}
	total, err := c.total()
	if err != nil {
		return err
	}
	if total > 0 {
		// The collector works harder near this limit. It must not be lower than the
		// live heap, or the collector would run all the time.
		debug.SetMemoryLimit(max(total-outsideHeap, leastLimit))
	}
	return c.checkStore()
}

// minMemory is the smallest --memory in bytes. It suffices for the program itself,
// pages of a few columns, and a small filter.
const minMemory = 16 << 20

// Parts of --memory. The remainder, a tenth or more, is for garbage that has not been
// collected yet.
const (
	leastLimit   = 112 << 20 // lower bound of the heap limit: a join of a dozen columns needs it
	outsideHeap  = 3 << 20   // the program's data outside the heap
	programs     = 10 << 20  // outsideHeap, and memory of the runtime and libraries
	forTables    = 2         // tables and filters get 1/forTables of the rest
	forPages     = 0.4       // pages, records and row groups in flight get this fraction of the rest
	outputsPages = 4         // unfinished row groups of the output get 1/outputsPages of that
)

// total returns the memory in bytes that the process may take: --memory, or nine tenths
// of what the container or the machine has; 0 if unknown.
func (c *cli) total() (int64, error) {
	if c.memory != "" {
		n, err := parseSize(c.memory)
		if err != nil {
			return 0, usagef("--memory: %w", err)
		}
		if n < minMemory {
			return 0, usagef("--memory %s: want %s or more", c.memory, bytesOf(uint64(minMemory)))
		}
		if limit := memoryThere(); limit > 0 {
			n = min(n, limit)
		}
		return int64(n), nil
	}
	return int64(memoryThere() / 10 * 9), nil
}

// memoryThere returns the memory of the container or the machine in bytes; 0: unknown.
func memoryThere() uint64 {
	for _, source := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := source(); err == nil && n > 0 && n < math.MaxInt64 {
			return n
		}
	}
	return 0
}

// budget returns the memory for tables and filters in bytes.
func (c *cli) budget() (int64, error) {
	n, err := c.total()
	return tablesOf(n), err
}

// tablesOf returns the memory for tables and filters, out of a total: half of what the
// program leaves, but at least a quarter of the total.
func tablesOf(total int64) int64 { return max((total-programs)/forTables, total/4) }

// inFlight returns the memory for pages, records and row groups in flight, in bytes; 0:
// no bound. What the store may hold is subtracted.
func (c *cli) inFlight() int64 {
	n := c.allInFlight()
	if c.remote && n > 0 {
		n = max(n-fetched(n), n/4)
	}
	return n
}

// allInFlight returns what inFlight returns, and what the store may hold.
func (c *cli) allInFlight() int64 {
	n, err := c.total()
	if err != nil || n == 0 {
		return 0 // checkCommon has reported the error
	}
	return int64(float64(max(n-programs, 0)) * forPages)
}

// explain adds to errors about the budget how it follows from --memory, and to those about
// a list of inputs how to renew it.
func (c *cli) explain(err error) error {
	if errors.Is(err, inputs.ErrOutdated) && c.listed != "" {
		return fmt.Errorf("%w: bloomjoin inputs --update %s opens only what has changed", err, c.listed)
	}
	if !errors.Is(err, fault.ErrMemory) && !errors.Is(err, filters.ErrLimit) {
		return err
	}
	if input := (*fault.Error)(nil); errors.As(err, &input) && errors.Is(input, fault.ErrMemory) {
		return err // about an input, with a sufficient budget
	}
	total, unknown := c.total()
	if unknown != nil || total == 0 {
		return err
	}
	given := "the --memory of " + c.memory
	if c.memory == "" {
		given = "the default --memory, " + bytesOf(total)
	}
	return fmt.Errorf("%w (of %s, tables and filters may take %s)", err, given, bytesOf(tablesOf(total)))
}

// parseSize parses a size such as 64MiB, 3GiB or 100MB, in bytes.
func parseSize(s string) (uint64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("size %q: want one such as 64MiB, 3GiB or 100MB", s)
	}
	return n, nil
}

// checkRate returns an error if --fpr is given and not a rate.
func checkRate(cmd *cobra.Command, p float64) error {
	if cmd.Flags().Changed("fpr") && !(p > 0 && p < 1) { // true for NaN, too
		return usagef("--fpr %v: want more than 0 and less than 1, as 0.01", p)
	}
	return nil
}

// report prints a report as one line of JSON, with --json only: on standard output, or
// on standard error if the data goes to standard output.
func (c *cli) report(v any, output string) error {
	c.sayStorage()
	if !c.json {
		return nil
	}
	w := c.stdout
	if output == "-" {
		w = c.stderr
	}
	b, err := json.Marshal(v)
	if err == nil && bytes.Contains(b, []byte("://")) {
		b, err = redacted(v)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

// redacted returns v as JSON in which no URL has credentials.
func redacted(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the parameters of a query are separated by &
	err := e.Encode(v)
	return []byte(cloud.Redact(strings.TrimSuffix(b.String(), "\n"))), err
}

// head is the start of every report.
type head struct {
	Verb          string  `json:"verb"`
	SchemaVersion int     `json:"schema_version"` // of the report; a version may get more fields
	Seconds       float64 `json:"seconds"`
	Shard         string  `json:"shard,omitempty"` // of this worker, as "3/16"
	AlreadyDone   bool    `json:"already_done,omitempty"`
	Message       string  `json:"message,omitempty"` // with AlreadyDone, what is printed

	Notes []string `json:"notes,omitempty"` // as printed, about inputs and options

	Storage *cloud.Stats `json:"storage,omitempty"` // requests to object stores and web servers
}

func (c *cli) newHead(verb string, start time.Time) head {
	return head{Verb: verb, SchemaVersion: 1, Seconds: time.Since(start).Seconds(), Shard: c.shard, Notes: c.notes, Storage: c.storageFacts()}
}

// done reports that there is nothing left to do; why wraps partition.ErrDone. It removes
// temporary files, which a process that was killed after publishing the output may have
// left.
func (c *cli) done(ctx context.Context, verb, output string, start time.Time, why error) error {
	if err := objects.Sweep(ctx, c.store(), output); err != nil {
		return err
	}
	h := c.newHead(verb, start)
	h.AlreadyDone, h.Message = true, worded(why)
	c.say("%s: %s", output, h.Message)
	return c.report(h, output)
}

// count formats a number with commas.
func count[T int64 | uint64 | int](n T) string { return humanize.Comma(int64(n)) }

// percent formats a share.
func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(whole))
}

// bytesOf formats a size in bytes.
func bytesOf[T int64 | uint64](n T) string { return humanize.IBytes(uint64(n)) }

// splitColumn splits COL[,COL]=REST at the first equals sign outside quotes.
func splitColumn(s string) (columns, rest string, ok bool) {
	quoted := false
	for i, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '=' && !quoted:
			return s[:i], s[i+1:], i > 0 && i+1 < len(s)
		}
	}
	return s, "", false
}

// sayNotes prints warnings about the files of an output directory.
func (c *cli) sayNotes(output string, w dataset.Written) {
	for _, n := range w.Notes {
		c.warn("%s: %s", output, n)
	}
}

// open opens input files by name, with the budgets of --memory.
func (c *cli) open(cmd *cobra.Command, names []string, opts source.Opening) ([]*source.File, error) {
	if err := c.budgets(&opts); err != nil {
		return nil, err
	}
	return source.Open(cmd.Context(), names, opts)
}

// budgets completes the options for opening files.
func (c *cli) budgets(opts *source.Opening) error {
	total, err := c.total()
	if err != nil {
		return err
	}
	opts.Store, opts.Memory, opts.InFlight = c.store(), total, c.inFlight()
	opts.Note = c.noteInput
	if c.verbose {
		opts.PassedOver = func(name, why string) { c.say("  %s: passed over: %s", name, why) }
	}
	return nil
}

// pathOf is a file and the way in which it was read, for --json.
type pathOf struct {
	File   string `json:"file"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func pathsOf(pieces []source.Piece, of func(*source.File) (path, why string)) []pathOf {
	out := []pathOf{}
	for _, p := range pieces {
		path, why := of(p.File)
		out = append(out, pathOf{publish.EscapeName(p.File.Name()), path, why})
	}
	return out
}

// bytesRead returns the number of bytes read from files.
func bytesRead(files []*source.File) int64 {
	var n int64
	for _, f := range files {
		n += f.BytesRead()
	}
	return n
}
