package session

import (
	"context"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
)

// pipes replaces names that a shell gives to pipes, /dev/stdin and that of <(command), by "-", in
// the arguments and in --ids, and reads standard input from there. One pipe can be read.
func (c *Session) pipes(cmd *cobra.Command, args []string) error {
	pipe, err := c.pipesIn(cmd.Context(), args, "")
	if err != nil {
		return err
	}
	f := cmd.Flags().Lookup("ids")
	if f == nil || !f.Changed {
		return nil
	}
	ids, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return nil
	}
	names := ids.GetSlice()
	if _, err := c.pipesIn(cmd.Context(), names, pipe); err != nil {
		return err
	}
	return ids.Replace(names)
}

// pipesIn replaces names, where taken is the name of a pipe that is read already, and returns that
// of the one that is read afterwards.
func (c *Session) pipesIn(ctx context.Context, names []string, taken string) (string, error) {
	for i, name := range names {
		if name != "/dev/stdin" && !strings.HasPrefix(name, "/dev/fd/") {
			continue
		}
		if info, err := os.Stat(name); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			continue // a file, which can be read at any place
		}
		names[i] = "-"
		if name == "/dev/stdin" || name == "/dev/fd/0" {
			continue
		}
		if taken != "" {
			return "", flags.Usagef("%s: only one pipe can be read, and %s is one (write the other to a file first)", name, taken)
		}
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		taken, c.Stdin = name, &interruptibleReader{ctx: ctx, r: f}
	}
	return taken, nil
}
