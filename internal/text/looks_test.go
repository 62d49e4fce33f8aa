package text

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
)

// If an input that is read as one ID per line is something else, the error says
// what it is. IDs that contain commas are not mistaken for CSV.
func TestLooks(t *testing.T) {
	number := map[string]arrow.DataType{"user_id": arrow.PrimitiveTypes.Int64}
	for _, c := range []struct {
		what, text string
		types      map[string]arrow.DataType
		want       []string // in the error; none: the input is valid
	}{
		{"IDs with commas", "Smith, John\nDoe, Jane\n", nil, nil},
		{"IDs with commas, of numbers", "1\n2\n", number, nil},
		{"an ID that is another column's name", "id\nname\n", nil, nil},
		{"IDs in brackets", "[a]\n{b}\n", nil, nil},
		{"header with the key", "name,user_id\nx,7\n", nil, []string{"line 1", "looks like a CSV header", "(TextFormat csv; if it is an ID, TextFormat lines)"}},
		{"header with the key in quotes", "\"user_id\",\"name\"\n7,x\n", nil, []string{"looks like a CSV header", "(TextFormat csv;"}},
		{"header with tabs", "user_id\tname\n7\tx\n", nil, []string{"looks like a TSV header", "(TextFormat tsv;"}},
		{"header with semicolons", "\"name\";\"user_id\"\nx;7\n", nil, []string{"looks like a CSV header", "(Delimiter ';'; if it is an ID, TextFormat lines)"}},
		{"header with bars and commas", "a,b|user_id\n1,2|7\n", nil, []string{"looks like a CSV header", "(Delimiter '|';"}},
		{"semicolons without a header", "7;a\n8;b\n", number, []string{"looks like a CSV header", "(Delimiter ';'; NoHeader if"}},
		{"a number with a fraction", "7.0\n8.0\n9.0\n", number, []string{"line 1", "want int64", "(Types double takes numbers with a fraction)"}},
		{"header of one column", "user_id\n7\n", nil, []string{"looks like a CSV header", "(TextFormat csv;"}},
		{"behind a mark and empty lines", "\xEF\xBB\xBF\r\n\r\nuser_id,name\r\n7,x", nil, []string{"looks like a CSV header"}},
		{"objects", "{\"user_id\": 7}\n{\"user_id\": 8}\n", nil, []string{"looks like NDJSON", "TextFormat ndjson"}},
		{"an object over several lines", "{\n  \"user_id\": 7\n}\n", nil, []string{"JSON object over several lines", "jq -c"}},
		{"an array", "[7, 57]\n", nil, []string{"JSON array", "jq"}},
		{"an array over several lines", "[\n  7,\n  57\n]\n", nil, []string{"JSON array", "jq"}},
		{"an array of objects", "[{\"user_id\": 7},\n{\"user_id\": 57}]\n", nil, []string{"JSON array", "jq"}},
		{"a long array", "[" + strings.Repeat("7, ", 3000) + "57]", nil, []string{"JSON array", "jq"}},
		{"UTF-16 without", "7\x008\x00\n\x009\x00", nil, []string{"unsupported", "UTF-16LE", "Encoding utf-16le"}},
		{"UTF-16 without, not only ASCII", "7\x00\x22\x21\n\x009\x00", nil, []string{"unsupported", "UTF-16LE"}},
		{"UTF-16, the other order", "\x007\x008\x00\n\x009", nil, []string{"UTF-16BE"}},
		{"another header", "uid,name\n7,a\n57,b\n", number, []string{"line 1", "want int64", "looks like a CSV header", "TextFormat csv"}},
		{"another header of one column", "uid\n7\n", number, []string{"looks like a CSV header", "(TextFormat csv)"}},
		{"CSV without a header", "7,a\n57,b\n", number, []string{"looks like a CSV header", "TextFormat csv; NoHeader if"}},
		{"a list", "7,57,99\n", number, []string{"a list on one line", "tr ',' '\\n'", "TextFormat csv"}},
		{"words", "a\nb\nc\n", number, []string{"line 1", "want int64", "no earlier value parsed"}},
		{"one bad line", "7\nb\n8\n", number, []string{"line 2", "want int64", "(SkipBad leaves such lines out)"}},
	} {
		for _, skip := range []bool{false, true} {
			if skip && (c.what == "one bad line" || c.what == "another header of one column") { // half of the lines are good
				continue
			}
			for _, once := range []bool{false, true} {
				for _, threads := range []int{0, 1, 3} {
					err := readAll(t, c.text, Options{Format: Lines, Guessed: true, Column: "user_id", Types: c.types, SkipBad: skip, Once: once, Size: -1}, threads)
					if c.want == nil {
						if err != nil {
							t.Errorf("%s: %v", c.what, err)
						}
						continue
					}
					if err == nil {
						t.Errorf("%s: skip %v: no error", c.what, skip)
						continue
					}
					for _, w := range c.want {
						if skip && (strings.HasPrefix(w, "want ") || strings.HasPrefix(w, "no earlier") || strings.HasPrefix(w, "(Types")) {
							continue
						}
						if !strings.Contains(err.Error(), w) {
							t.Errorf("%s: skip %v, once %v, threads %d: %v: want %q", c.what, skip, once, threads, err, w)
						}
					}
					if c.what != "one bad line" && strings.Contains(err.Error(), "(SkipBad") {
						t.Errorf("%s: %v: names SkipBad", c.what, err)
					}
				}
			}
		}
	}
	// An explicit Lines format is not questioned.
	if err := readAll(t, "user_id,name\n{\"a\":1}\n", Options{Format: Lines, Column: "user_id"}, 1); err != nil {
		t.Error(err)
	}
}

// The hint for a bad line takes earlier good ones into account, also those read to
// find the columns.
func TestBadAfterGoodObjects(t *testing.T) {
	for text, want := range map[string]string{
		"{\"id\":1}\n{\"id\":2}\nx\n": "line 3: corrupt: not one JSON object (SkipBad leaves such lines out)",
		"x\n{\"id\":1}\n":             "line 1: corrupt: not one JSON object (no earlier line parsed",
	} {
		for _, once := range []bool{false, true} {
			if err := readAll(t, text, Options{Format: NDJSON, Once: once, Size: -1}, 0); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("once %v: %v, want %q", once, err, want)
			}
		}
	}
}

// A hint names SkipBad only where that leaves the line out, which it does not if the
// row goes on in the next one.
func TestFractionHint(t *testing.T) {
	const fraction = "Types double takes numbers with a fraction)"
	opts := Options{Format: CSV, Column: "n", Types: map[string]arrow.DataType{"n": arrow.PrimitiveTypes.Int64}, Size: -1}
	for _, c := range []struct {
		text, hint string
		skipped    bool
	}{
		{"n,s\n1,a\n1.5,b\n2,c\n", "(SkipBad leaves such lines out; " + fraction, true},
		{"n,s\n1,\"a\na\"\n1.5,b\n2,c\n", "(SkipBad leaves such lines out; " + fraction, true},
		{"n,s\n1,a\n1.5,\"b\nb\"\n2,c\n", "want int64 (" + fraction, false},
		{"n,s\n1.5,a\n1,b\n2,c\n", "want int64 (" + fraction, true},
	} {
		for _, skip := range []bool{false, true} {
			for _, threads := range []int{0, 1, 3} {
				opts.SkipBad = skip
				err := readAll(t, c.text, opts, threads)
				if (err == nil) != (skip && c.skipped) || err != nil && !strings.Contains(err.Error(), c.hint) {
					t.Errorf("%q: skip %v, threads %d: %v, want %q", c.text, skip, threads, err, c.hint)
				}
			}
		}
	}
}

// readAll reads a text to its end: as records or, if threads is not zero, as plain
// values.
func readAll(t *testing.T, text string, opts Options, threads int) error {
	tab, err := Open(given(t, text), "ids", opts)
	if err != nil {
		return err
	}
	defer tab.Close()
	if threads == 0 {
		_, err = all(tab, nil)
		return err
	}
	for _, err := range tab.ReadPlain(t.Context(), 0, 1, 0, threads) {
		if err != nil {
			return err
		}
	}
	return nil
}

// More bad lines than good ones are an error at the end, also if parts of the input
// are parsed separately.
func TestMostBad(t *testing.T) {
	types := map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}
	for _, c := range []struct {
		good, bad int
		fine      bool
	}{{1, 1, true}, {1, 2, false}, {0, 1, false}, {0, 0, true}, {30000, 30000, true}, {30000, 30001, false}} {
		for _, text := range []string{
			strings.Repeat("7\n", c.good) + strings.Repeat("x\n\n", c.bad),
			strings.Repeat("x\n", c.bad) + strings.Repeat("\n7\n", c.good),
		} {
			for _, threads := range []int{0, 1, 3} {
				err := readAll(t, text, Options{Format: Lines, Types: types, SkipBad: true, Size: -1}, threads)
				if c.fine && err != nil || !c.fine && (!errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "too many bad lines")) {
					t.Errorf("%d good, %d bad, %d threads: %v", c.good, c.bad, threads, err)
				}
			}
		}
	}
}
