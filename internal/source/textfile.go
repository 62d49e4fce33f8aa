package source

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// BadLines returns the lines of a text file that the last complete read skipped
// because of [OpenOptions].SkipBad: their number, and the line numbers of the first
// 20, counted from 1. skips reports whether bad lines of the file are skipped at all,
// which changes its contents. BadLines may be called concurrently.
func (f *File) BadLines() (count int64, first []int, skips bool) {
	t, ok := Stored(f.table).(*text.Table)
	if !ok {
		return 0, nil, false
	}
	bad := t.Bad()
	return bad.Lines, bad.First, t.SkipsBad()
}

// Encoding returns [OpenOptions].Encoding of a text file, "" if it is UTF-8 or if a byte
// order mark decides.
func (f *File) Encoding() string {
	if t, ok := Stored(f.table).(*text.Table); ok {
		return t.Encoding()
	}
	return ""
}

// Fields describes how the fields of CSV or TSV are told apart, if that is not as usual; else "".
func (f *File) Fields() string {
	if t, ok := Stored(f.table).(*text.Table); ok {
		return t.Fields()
	}
	return ""
}

// FitsColumns returns an error if n columns of a text file exceed the memory budget. Other
// formats check their schemas when they are opened.
func (f *File) FitsColumns(n int) error {
	if t, ok := Stored(f.table).(*text.Table); ok {
		return t.Fits(n)
	}
	return nil
}

// Undivided returns, in a few words, why a large text file has a single row group: "gzip", for
// example. It returns "" for divided and small files and for other formats.
func (f *File) Undivided() string {
	if t, ok := Stored(f.table).(*text.Table); ok {
		return t.Undivided()
	}
	return ""
}

// Compressed reports whether a text file is compressed.
func (f *File) Compressed() bool {
	t, ok := Stored(f.table).(*text.Table)
	return ok && t.Compressed()
}

// textOptions returns the options for a text file whose bytes r reads.
func (f *File) textOptions(opts Opening, r io.ReaderAt) text.Options {
	o := text.Options{
		Format: TextFormats[f.format], Guessed: opts.TextFormat == "", Size: f.size, Column: opts.Column, Mem: opts.Mem, Memory: opts.Memory,
		Encoding: opts.Encoding, Delimiter: opts.Delimiter, NoHeader: opts.NoHeader, Nested: opts.Nested, SkipBad: opts.SkipBad, At: r, RangeBytes: opts.TextRange, Turn: parquet.Turn,
	}
	if f.Remote() {
		o.At = nil
		o.From = func(position, to int64) (io.ReadCloser, error) {
			return newStream(io.NewSectionReader(r, 0, f.size), f.reader, position, to), nil
		}
	}
	return o
}

// WithIDs returns a view of a text file that fails at a value that is not an ID for the rule. Its
// error has the line number, which later stages no longer know. Other files are returned as
// they are.
func (f *File) WithIDs(columns []keys.Column, o keys.Options) *File {
	t, ok := Stored(f.table).(*text.Table)
	if !ok || o.Rule.Wants() == "" || f.Filtered() && !t.SkipsBad() { // rows that are left out have no IDs
		return f
	}
	var names []string
	for _, c := range columns {
		if field, err := c.Resolve(f.Schema(), o.IgnoreCase); err == nil && c.Cast == nil {
			if class, err := keys.ClassOf(field.Type); err == nil && class == keys.Bytes {
				names = append(names, t.Schema().Field(field.Index[0]).Name)
			}
		}
	}
	return f.with(restored(f.table, t.WithCheck(names, o.Rule.Accepts, o.Rule.Wants())))
}

// WithTypes returns a view of a text file: the same file, with these types of columns
// and no others; ignoreCase finds them by names whose letters differ in case. Other files
// are returned as they are.
func (f *File) WithTypes(types map[string]arrow.DataType, ignoreCase bool) (*File, error) {
	t, ok := Stored(f.table).(*text.Table)
	if !ok {
		return f, nil
	}
	stored := map[string]arrow.DataType{}
	for i, column := range t.Schema().Fields() {
		for name, typ := range types {
			if as := f.Schema().Field(i).Name; as == name || ignoreCase && strings.EqualFold(as, name) {
				stored[column.Name] = typ
			}
		}
	}
	view := f.with(restored(f.table, t.WithTypes(stored)))
	if f.where == nil {
		return view, nil
	}
	for _, c := range f.where.Columns() {
		was, now := f.Schema().Field(c.Index[0]), view.Schema().Field(c.Index[0]).Type
		if !arrow.TypeEqual(was.Type, now) && now.ID() != arrow.BINARY {
			at := fault.At{File: f.name, Column: was.Name}
			return nil, faults.Of(cause.Misfit, faults.Mismatch(at, "condition: the type of a key", keys.TypeName(now)+", as in the log", keys.TypeName(was.Type))).
				WithHint("give the key's type with {Types %s}", keys.TypeName(now))
		}
	}
	return view, nil
}

// EstimateLines estimates the number of rows of a text file from the lines at three places.
// For compressed text it assumes a ratio of four.
func (f *File) EstimateLines() (rows int64, err error) {
	_, release, err := f.keepOpen(context.Background())
	if err != nil {
		return -1, err
	}
	defer faults.Join(&err, release)
	const piece = 64 << 10
	var seen, lines int64
	buf := make([]byte, piece)
	for i := range int64(3) {
		at := max(f.size-piece, 0) * i / 2
		n := min(piece, f.size-at)
		if m, err := f.reader.ReadAt(buf[:n], at); int64(m) < n {
			return -1, err
		}
		if i == 0 && compressed(buf[:n]) {
			return f.size * 4 / guessedLine, f.Rest()
		}
		seen, lines = seen+n, lines+int64(bytes.Count(buf[:n], []byte("\n")))
		if f.size <= piece {
			if n > 0 && buf[n-1] != '\n' {
				lines++
			}
			break
		}
	}
	rows = int64(float64(f.size) * float64(lines) / float64(max(seen, 1)))
	if t, ok := Stored(f.table).(*text.Table); ok && t.HasHeader() {
		rows = max(rows-1, 0)
	}
	return rows, f.Rest()
}

// guessedLine is the assumed length of a line in compressed text, in bytes.
const guessedLine = 12

// compressed reports whether the bytes look like the start of a compressed file.
func compressed(b []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ", "\x04\x22\x4d\x18"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return false
}
