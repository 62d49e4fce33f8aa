package text

import (
	"io"
	"strings"
	"testing"
)

// Empty lines are no rows: a row after them is ready once all of it is there, and a row
// before them is not followed by one.
func TestReadyAfterEmptyLines(t *testing.T) {
	for _, c := range []struct {
		format Format
		rest   string
		want   bool
	}{
		{Lines, "", false}, {Lines, "b", false}, {Lines, "b\n", true}, {Lines, "\n", false}, {Lines, "\r\n\n", false},
		{Lines, "\n\nb", false}, {Lines, "\r\n\nb\n", true}, {CSV, "\n", false}, {CSV, "\nb\n", true}, {CSV, "\n\"b\nc", false},
		{TSV, "\n", false}, {TSV, "\"b\n", true},
	} {
		in := io.MultiReader(strings.NewReader("id\na\n"+c.rest), strings.NewReader("never\n"))
		r, err := NewRows(io.NopCloser(in), "in", c.format, 0, "id", false, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.format == Lines {
			_, err = r.Next()
		}
		if _, e := r.Next(); err != nil || e != nil {
			t.Fatal(err, e)
		}
		if got := r.Ready(); got != c.want {
			t.Errorf("%v, a row and then %q: ready %t", c.format, c.rest, got)
		}
	}
}
