// Command bloomjoin keeps the rows of a huge log whose key is in an ID set,
// and joins them: it builds Bloom filters or exact sets from the IDs, in
// parallel and over many machines, merges them into one, scans Parquet and
// Arrow files with it, and joins what is left.
//
// Each verb has its own file. A verb parses and checks its flags before it opens any
// input, does its work through the library, and ends with a report. What verbs share is
// in package session if it belongs to the run, in flags if it belongs to the command line,
// and in words if it is text. Errors of the library name options; words spells them as
// flags.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/help"
	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/session"
)

func main() {
	// Otherwise a write to a closed standard output would kill the process, which
	// would leave temporary files.
	signal.Ignore(syscall.SIGPIPE)
	session.PaceGC()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command line in this process and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return (&cli{}).run(args, stdin, stdout, stderr)
}

// cli is one run of the command, with its verbs.
type cli struct {
	session.Session
	mistyped error // an unknown command, detected by help
}

// run is [run] with the session of c.
func (c *cli) run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return c.Session.Run(args, stdin, stdout, stderr, func(ctx context.Context) error {
		root := c.root()
		root.SetArgs(args)
		root.SetIn(stdin)
		root.SetOut(c.Stdout)
		root.SetErr(c.Stderr)
		err := root.ExecuteContext(ctx)
		if err == nil {
			err = c.mistyped
		}
		return err
	})
}

// root returns the root command with all verbs.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bloomjoin",
		Short: "Keep the rows of a huge log whose key is in an ID set, and join them",
		Example: `  bloomjoin join --ids users.parquet --on user_id -o rows.parquet logs/
  bloomjoin plan --ids users.parquet --on user_id logs/
  bloomjoin build --key user_id -o users.bjf ids/
  bloomjoin scan --filter users.bjf -o candidates/ logs/`,
		Version:       version().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          flags.CheckCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("bloomjoin {{.Version}}\n")
	root.SetFlagErrorFunc(flags.Error)
	root.SetHelpFunc(c.help)
	root.SetHelpCommand(help.Command(&c.Session))
	c.CommonFlags(root)
	sketch := c.sketchCmd()
	root.AddCommand(c.joinCmd(), c.planCmd(), c.buildCmd(), c.mergeCmd(), c.updateCmd(), c.scanCmd(), c.probeCmd(), c.dedupCmd(), sketch, c.commitCmd(), c.inputsCmd(), c.findCmd(), c.inspectCmd(), c.sizeCmd(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.JSON {
				return c.Report(version(), "")
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "bloomjoin", version())
			return err
		},
	})
	for _, cmd := range append(slices.Concat(root.Commands(), sketch.Commands()), root) {
		flags.AddHelpAll(cmd)
		flags.AtMostOnce(cmd.Flags())
		flags.AtMostOnce(cmd.PersistentFlags())
	}
	return root
}

// release is the version of a build without version control, as in a Python
// wheel: go build -ldflags "-X main.release=v1.2.3".
var release string

// build is what the version command prints. Commit and Date are empty if the Go toolchain
// recorded no version control.
type build struct {
	session.Head
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date"` // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (b build) String() string { return fmt.Sprintf("%s (%s, %s)", b.Version, b.Go, b.Platform) }

// version returns what the Go toolchain recorded about this build.
func version() build {
	b := build{Head: session.Head{Verb: "version", SchemaVersion: 1}, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			}
		}
	}
	b.Version = cmp.Or(release, b.Version, "(devel)")
	return b
}

// help prints what a command does and its usage. Cobra calls it before it checks
// arguments, so help detects mistyped commands itself.
func (c *cli) help(cmd *cobra.Command, _ []string) {
	if !cmd.HasParent() {
		if c.mistyped = flags.CheckCommand(cmd, cmd.Flags().Args()); c.mistyped != nil {
			return
		}
	}
	_, _ = io.WriteString(c.Stdout, help.Of(cmd, c.LineWidth(), cmd.Flags().Changed(flags.AllFlag))) // the writer remembers a failure
}

// withFlags returns what a command runs: a verb, with its flags.
func withFlags[F any](verb func(*cobra.Command, *F, []string) error, f *F) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return verb(cmd, f, args) }
}
