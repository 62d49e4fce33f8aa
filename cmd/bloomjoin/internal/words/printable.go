package words

import (
	"io"

	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// Printable is a writer for terminals. It escapes control characters, which names
// of files and columns may have, as in \x1b, and removes credentials from URLs.
type Printable struct{ io.Writer }

// Write writes b, escaped.
func (p Printable) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.Writer, Safe(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Safe returns what a printable writer prints of a text.
func Safe(text string) string { return show.Printable(address.Redact(text), "\n\t") }
