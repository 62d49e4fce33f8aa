// Command gunzip decompresses a file and discards the result, which is the minimum work
// of any build from such a file.
//
//	gunzip FILE
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

func main() {
	if err := run(os.Args[1:], io.Discard); err != nil {
		fmt.Fprintln(os.Stderr, "gunzip:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want one file")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if _, err := io.CopyBuffer(out, struct{ io.Reader }{z}, make([]byte, 1<<16)); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return nil
}
