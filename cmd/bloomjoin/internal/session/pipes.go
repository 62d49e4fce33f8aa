package session

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
)

// pipes replaces names that a shell gives to pipes, /dev/stdin and that of <(command), by "-", in
// the arguments and in flags that name IDs or a list, and reads standard input from there. One pipe can be
// read.
func (c *Session) pipes(cmd *cobra.Command, args []string) error {
	pipe := ""
	if f := cmd.Flags().Lookup("files-from"); f != nil && f.Changed {
		names := []string{f.Value.String()}
		var err error
		if pipe, err = c.pipesIn(cmd.Context(), names, pipe); err != nil {
			return err
		}
		c.namesPiped = names[0] == "-"
	}
	pipe, err := c.pipesIn(cmd.Context(), args, pipe)
	if err != nil {
		return err
	}
	for _, flag := range []string{"ids", "add", "remove"} {
		f := cmd.Flags().Lookup(flag)
		if f == nil || !f.Changed {
			continue
		}
		ids, ok := f.Value.(pflag.SliceValue)
		if !ok {
			continue
		}
		names := ids.GetSlice()
		if pipe, err = c.pipesIn(cmd.Context(), names, pipe); err != nil {
			return err
		}
		if err := ids.Replace(names); err != nil {
			return err
		}
	}
	return nil
}

// pipesIn replaces names, where pipe is the one that is read already, or "-", or empty, and returns
// what is read afterwards.
func (c *Session) pipesIn(ctx context.Context, names []string, pipe string) (string, error) {
	for i, name := range names {
		if name != "-" {
			if name != "/dev/stdin" && !strings.HasPrefix(name, "/dev/fd/") {
				continue
			}
			if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() || info.IsDir() {
				continue // a file, which can be read at any place
			}
			names[i] = "-"
		}
		if name == "/dev/stdin" || name == "/dev/fd/0" {
			name = "-"
		}
		if name == "-" && pipe == "-" {
			continue // a verb reads it once, or refuses
		}
		if pipe != "" {
			return "", flags.Usagef("%s: only one pipe can be read, and %s is one (write the other to a file first)", name, pipe)
		}
		if pipe = name; name == "-" {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		c.Stdin = &interruptibleReader{ctx: ctx, r: f}
	}
	return pipe, nil
}
