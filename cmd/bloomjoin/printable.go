package main

import (
	"io"

	"github.com/bloomjoin/bloomjoin/internal/show"
	"github.com/bloomjoin/bloomjoin/store"
)

// printable is a writer for terminals. It escapes control characters, which names
// of files and columns may have, as in \x1b, and removes credentials from URLs.
type printable struct{ io.Writer }

func (p printable) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, safe(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// safe returns what a printable writer prints of a text.
func safe(text string) string { return show.Printable(store.Redact(text), "\n\t") }
