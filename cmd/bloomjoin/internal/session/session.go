package session

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/storage"
	"github.com/bloomjoin/bloomjoin/storage/cloud"
)

// Session is one run of the command. The zero value is ready for Run. Messages and progress
// are safe for concurrent use.
type Session struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	terminal       io.Writer               // standard error, without escaping
	Shown          bool                    // standard output is a terminal
	screen         *os.File                // which is this
	cancel         context.CancelCauseFunc // ends the run

	Stored        storage.Storage // see Store
	closeStore    func() error    // nil: the store is the caller's
	storeOptions  cloud.Options
	storeSettings []string // --store-option
	remote        bool     // the command line names URLs
	filterAlone   bool     // the memory is that of one filter
	Planned       bool     // the memory is that of a run elsewhere

	listed                          string // --files-from, if it is a list of inputs
	namesPiped                      bool   // --files-from is a pipe, which Stdin reads
	JSON, quiet, Verbose, Force     bool
	Threads                         int
	memory, progressMode, logFormat string
	progressEvery                   time.Duration // interval of progress lines

	verb     string                   // after the command line was parsed
	owner    func(flag string) string // of a flag that an error names, see [words.ErrorOf]
	dataTo   string                   // the output, "-" if data goes to standard output; empty until the command line was parsed
	reported bool                     // the report was printed
	Shard    string                   // of this worker, after --shard was parsed
	jsonLog  bool                     // --log-format json
	shell    bool                     // the shell asks for completions
	digest   []byte                   // --stdin-digest

	notes  []string // what is remarkable about the names of inputs
	tables []source.TableRead

	args    []string
	metrics string     // file of --metrics
	journal *os.File   // of --log; nil: none
	rest    func()     // stops the writing of metrics; nil: there is none
	final   any        // the report
	staging sync.Mutex // of stages
	stages  []*meter   // that have begun

	started time.Time
	reading atomic.Int64 // time of reads of inputs, in ns
}

// Complete registers completions by the name of their flag, if the shell asks for some: Cobra
// keeps them, and with them the command, as long as the process lives. Flags that the command does
// not have are ignored.
func (c *Session) Complete(cmd *cobra.Command, of map[string]flags.Completion) {
	if !c.shell {
		return
	}
	for name, f := range of {
		_ = cmd.RegisterFlagCompletionFunc(name, f) // an error means that the command lacks the flag
	}
}

// CommonFlags adds the flags of all verbs, and checks them before a verb starts.
func (c *Session) CommonFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringArrayVar(&c.storeSettings, "store-option", nil, "`NAME=VALUE` setting for URLs, as region=eu-central-1; repeatable")
	flags.Group(f, flags.GroupStorage)

	f.StringVar(&c.memory, "memory", "", "`SIZE` memory budget, as 3GiB (default: nine tenths of all)")
	f.IntVar(&c.Threads, "threads", 0, "`N` number of workers (default: one a processor)")
	flags.Group(f, flags.GroupMemory)

	f.BoolVar(&c.JSON, "json", false, "end with a JSON object of the figures")
	f.StringVar(&c.logFormat, "log-format", logText, "`FORMAT` format of messages: text, or json (an object a line)")
	f.StringVar(&c.progressMode, "progress", "auto", progressHelp)
	f.DurationVar(&c.progressEvery, "progress-interval", progressEvery, "`DURATION` time between lines of progress, as 200ms")
	f.String("metrics", "", "`FILE` write the figures, as OpenMetrics")
	f.String("log", "", "`FILE` append messages and events, as JSON lines")
	f.BoolVar(&c.quiet, "quiet", false, "print warnings and errors only")
	f.BoolVar(&c.Verbose, "verbose", false, "report how files were read, which were skipped, what took time")
	f.BytesHexVar(&c.digest, "stdin-digest", nil, "`HEX` digest of standard input, by which a rerun is recognised")
	f.Lookup("stdin-digest").Hidden = true // for programs that compute it, as the Python package
	flags.Group(f, flags.GroupReports)
	c.Complete(root, map[string]flags.Completion{"progress": flags.Choices("auto", "lines", "none"), "log-format": flags.Choices(logText, logJSON), "store-option": flags.CompleteStore})
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		c.verb = strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")
		c.owner, c.dataTo = flags.Owner(cmd), "none"
		if out := cmd.Flag("output"); out != nil && out.Changed {
			c.dataTo = out.Value.String()
		} else if c.verb == "probe" || c.verb == "dedup" {
			c.dataTo = "-"
		}
		if err := cmp.Or(flags.CheckExclusive(cmd), c.checkCommon()); err != nil {
			return err
		}
		shard, _ := cmd.Flags().GetString("shard")
		if err := c.startReports(root.Version, shard); err != nil {
			return err
		}
		if raw, _ := cmd.Flags().GetBool(flags.RawFiles); raw || c.verb == "inspect" {
			cmd.SetContext(hive.Looking(cmd.Context(), true))
		}
		return c.pipes(cmd, args)
	}
}

// AddForce adds the flag of verbs that write an output.
func (c *Session) AddForce(f *pflag.FlagSet) {
	f.BoolVar(&c.Force, "force", false, "replace an existing output")
}

func (c *Session) checkCommon() error {
	if c.Threads < 0 {
		return flags.Usagef("--threads %d: want 1 or more", c.Threads)
	}
	if c.quiet && c.Verbose {
		return flags.Usagef("--quiet and --verbose exclude each other: give one of them")
	}
	if err := cmp.Or(flags.OneOf("progress", c.progressMode, "auto", "lines", "none"), flags.OneOf("log-format", c.logFormat, logText, logJSON)); err != nil {
		return err
	}
	if c.progressEvery < minProgress {
		return flags.Usagef("--progress-interval %v: want %v or more, as 1s", c.progressEvery, minProgress)
	}
	if len(c.digest) > 0 {
		c.Stdin = source.Known{Reader: c.Stdin, Digest: c.digest}
	}
	total, err := c.Total()
	if err != nil {
		return err
	}
	if total > 0 {
		// The collector works harder near this limit. It must not be lower than the
		// live heap, or the collector would run all the time.
		debug.SetMemoryLimit(max(total-outsideHeap, minLimit))
		garbageRoom.Store(min(max(total/roomPart, minRoom), maxRoom))
	}
	return c.CheckStore()
}

// ShardOf parses --shard and stores it for the report.
func (c *Session) ShardOf(s string) (dataset.Shard, error) {
	if s == "" {
		return dataset.Shard{}, nil
	}
	shard, err := flags.ParseShard(s)
	if err == nil && c.Shard != shard.String() { // metrics read it at any time
		c.Shard = shard.String()
	}
	return shard, err
}
