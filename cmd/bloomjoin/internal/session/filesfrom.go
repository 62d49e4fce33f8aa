package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/flags"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/storage"
)

// maxNamed is the size in bytes up to which a file of names, or a list on standard
// input, is read.
const maxNamed = 1 << 30

// FilesFrom returns the names that stand for the inputs, which are args without
// --files-from. If that flag names a list of inputs, the caller closes it.
func (c *Session) FilesFrom(cmd *cobra.Command, o *flags.Inputs, args []string) (names []string, list *inputs.List, err error) {
	if o.FilesFrom == "" {
		return args, nil, nil
	}
	if names, list, err = c.readNames(cmd.Context(), o.FilesFrom); err != nil {
		return nil, nil, err
	}
	if list == nil {
		c.remote = c.remote || slices.ContainsFunc(names, address.IsURL)
		if len(names) == 0 && !o.AllowEmpty {
			return nil, nil, fmt.Errorf("--files-from %s: it names no inputs: want one path a line", o.FilesFrom)
		}
		return names, nil, nil
	}
	for _, flag := range []string{"include", "exclude", "base", "hive-partitioning", "hive-types", "ids-format"} {
		ofIDs := cmd.Flags().Lookup("ids") != nil && (flag == "ids-format" || strings.HasPrefix(flag, "hive") && len(list.Hive()) == 0)
		if cmd.Flags().Changed(flag) && !ofIDs {
			err := flags.Usagef("--files-from %s: --%s was decided when the inputs were listed (remove it, or give it to bloomjoin inputs)", o.FilesFrom, flag)
			return nil, nil, errors.Join(err, list.Close())
		}
	}
	c.remote = c.remote || slices.ContainsFunc(list.Arguments(), address.IsURL)
	if o.FilesFrom != "-" {
		c.Lists(o.FilesFrom)
	}
	return nil, list, nil
}

// Lists names the list of inputs that the command reads, for errors about it.
func (c *Session) Lists(name string) { c.listed = name }

// readNames reads a file of names, one a line, or opens a list of inputs.
func (c *Session) readNames(ctx context.Context, from string) (names []string, list *inputs.List, err error) {
	if c.namesPiped {
		b, err := io.ReadAll(io.LimitReader(c.Stdin, maxNamed+1))
		if err != nil {
			return nil, nil, fmt.Errorf("standard input: %w", err)
		}
		if inputs.IsList(b) {
			list, err = inputs.Parse("standard input", b)
			return nil, list, err
		}
		names, err = namesIn("standard input", b)
		return names, nil, err
	}
	r, err := c.Store().Open(ctx, storage.Object{Name: from})
	if err != nil {
		return nil, nil, err
	}
	defer faults.Join(&err, r.Close)
	size := r.Object().Size
	first := make([]byte, min(size, 64))
	if err := readAt(r, first); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from, err)
	}
	if inputs.IsList(first) {
		list, err = inputs.Read(ctx, c.Store(), from)
		return nil, list, err
	}
	if filters.IsFilter(first) || bytes.HasPrefix(first, []byte(sniff.Sketch)) || bytes.HasPrefix(first, []byte("PAR1")) || bytes.HasPrefix(first, []byte("ARROW1")) {
		return nil, nil, fmt.Errorf("--files-from %s: want a file of paths or a list of inputs, got data (name it as an argument)", from)
	}
	b := make([]byte, min(size, maxNamed+1))
	if err := readAt(r, b); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", from, err)
	}
	names, err = namesIn(from, b)
	return names, nil, err
}

// readAt reads the beginning of an object.
func readAt(r io.ReaderAt, b []byte) error {
	if n, err := r.ReadAt(b, 0); n < len(b) {
		return errors.Join(err, io.ErrUnexpectedEOF)
	}
	return nil
}

// namesIn returns the lines of a file of names, without empty ones.
func namesIn(from string, b []byte) (names []string, err error) {
	if len(b) > maxNamed {
		return nil, fmt.Errorf("--files-from %s: want at most 1 GiB of paths, got more", from)
	}
	if bytes.HasPrefix(b, []byte("\xFF\xFE")) || bytes.HasPrefix(b, []byte("\xFE\xFF")) {
		return nil, fmt.Errorf("--files-from %s: want UTF-8, got UTF-16 (convert it: iconv -f UTF-16 -t UTF-8)", from)
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\uFEFF")) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		switch {
		case line == "":
			continue
		case line == "-":
			return nil, fmt.Errorf("--files-from %s: line %d: want a path, got - (standard input has no name)", from, n)
		case strings.HasPrefix(line, "{\"") && strings.HasSuffix(line, "}"):
			return nil, fmt.Errorf("--files-from %s: line %d: want a path or a whole list of inputs, got a line of JSON (to choose inputs, list them with bloomjoin inputs --include, or name paths: jq -r '.name // empty')", from, n)
		case strings.ContainsRune(line, 0):
			return nil, fmt.Errorf("--files-from %s: line %d: want a path, got a line with a NUL byte (end each path with a line break)", from, n)
		}
		names = append(names, line)
	}
	return names, nil
}
