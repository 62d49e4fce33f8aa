// Command bloomjoin keeps the rows of a huge log whose key is in an ID set,
// and joins them: it builds Bloom filters or exact sets from the IDs, in
// parallel and over many machines, merges them into one, scans Parquet and
// Arrow files with it, and joins what is left.
//
// Each verb has its own file. A verb parses and checks its flags before it opens any
// input, does its work through the library, and ends with a report. Errors of the
// library name options; wording.go spells them as flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Exit codes, by which batch systems decide whether another attempt makes sense.
const (
	exitDone     = 0
	exitFailed   = 1   // would fail again
	exitGate     = 2   // a --require-* or --max-* condition is not met
	exitUsage    = 64  // wrong usage, detected before any input was opened
	exitTryAgain = 75  // may succeed another time
	exitSignal   = 128 // plus its number: 129 SIGHUP, 130 SIGINT, 143 SIGTERM
)

func main() {
	// Otherwise a write to a closed standard output would kill the process, which
	// would leave temporary files.
	signal.Ignore(syscall.SIGPIPE)
	if os.Getenv("GOGC") == "" {
		// Live memory is a few large buffers that are reused, so frequent
		// collections are cheap and keep the peak low.
		debug.SetGCPercent(20)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command line in this process and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&cli{}).run(args, stdin, stdout, stderr)
}

func (c *cli) run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := untilSignal(context.Background())
	defer cancel(nil)
	c.cancel = cancel
	data := &interruptibleWriter{ctx: ctx, w: stdout}
	c.stdin, c.stdout = &interruptibleReader{ctx: ctx, r: stdin}, data
	c.stderr, c.terminal = printable{stderr}, stderr
	if f, ok := stdout.(*os.File); ok {
		c.shown = term.IsTerminal(int(f.Fd()))
	}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(data)
	root.SetErr(c.stderr)
	c.remote = slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "://") }) // also in --ids=URL
	c.jsonLog = wantsJSONLog(args)
	err := guarded(func() error { return root.ExecuteContext(ctx) })
	if c.closeStore != nil {
		_ = c.closeStore() // connections are idle
	}
	if err == nil {
		err = c.mistyped
	}
	if err == nil {
		err = data.err // of a report that could not be written
	}
	if err == nil {
		return exitDone
	}
	said := c.explain(err)
	if cause := context.Cause(ctx); cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		said = cause
	}
	code := exitCode(ctx, err)
	if code == exitTryAgain {
		said = fmt.Errorf("%w%s", said, passes(err))
	}
	c.logError(code, err, worded(said))
	return code
}

// errInternal reports a panic.
var errInternal = errors.New("internal error")

// guarded turns a panic, which is always a bug, into an error, so that unfinished
// outputs are removed.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errInternal, r, debug.Stack())
		}
	}()
	return f()
}

// usageError reports wrong usage, detected before any input was opened.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// exitCode returns the exit code for an error.
func exitCode(ctx context.Context, err error) int {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(context.Cause(ctx), errClosed): // whatever the error
		return exitFailed
	case ctx.Err() != nil: // likewise
		var by signalError
		if errors.As(context.Cause(ctx), &by) {
			return exitSignal + int(by.Signal)
		}
		return exitSignal + int(syscall.SIGINT)
	case passing(err):
		return exitTryAgain
	case errors.Is(err, join.ErrRequire):
		return exitGate
	}
	return exitFailed
}

// passes returns the hint for an error that may not recur.
func passes(err error) string {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return " (free some space, then run it again)"
	}
	return " (this may pass: run it again)"
}

// passing reports whether the cause of an error may not recur: a full disk, the
// network, an interruption of storage.
func passing(err error) bool {
	if errors.Is(err, inputs.ErrOutdated) { // until the inputs are listed again
		return false
	}
	for _, e := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ESTALE,
		syscall.EMFILE, syscall.ENFILE, os.ErrDeadlineExceeded, storage.ErrChanged, storage.ErrAgain,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// root returns the root command with all verbs.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bloomjoin",
		Short: "Keep the rows of a huge log whose key is in an ID set, and join them",
		Example: `  bloomjoin join --ids users.parquet --on user_id -o rows.parquet logs/
  bloomjoin plan --ids users.parquet --on user_id logs/
  bloomjoin build --key user_id -o users.bjf ids/ && bloomjoin scan --filter users.bjf -o candidates/ logs/`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          commands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("bloomjoin {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(c.help)
	root.SetHelpCommand(helpCmd())
	root.SetUsageFunc(usage)
	c.commonFlags(root)
	root.AddCommand(c.joinCmd(), c.planCmd(), c.buildCmd(), c.mergeCmd(), c.scanCmd(), c.probeCmd(), c.commitCmd(), c.inputsCmd(), c.inspectCmd(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "bloomjoin", version())
			return err
		},
	})
	for _, cmd := range append(root.Commands(), root) {
		atMostOnce(cmd.Flags())
		atMostOnce(cmd.PersistentFlags())
	}
	return root
}

// release is the version of a build without version control, as in a Python
// wheel: go build -ldflags "-X main.release=v1.2.3".
var release string

// version returns the module's version as recorded by the Go toolchain, the
// toolchain's version and the target platform.
func version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	if release != "" {
		v = release
	}
	return fmt.Sprintf("%s (%s, %s/%s)", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
