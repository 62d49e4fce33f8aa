package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// header is the names of the columns of CSV or TSV.
type header struct {
	names   []string
	width   int  // fields in a row
	indexed bool // the first field has no name, and is no column
}

// begin reads the names from the first row, or gives the columns numbers and leaves the row. row
// reads it, and returns the line on which it starts.
func (h *header) begin(l *lines, o *Options, row func() ([][]byte, int, error)) error {
	keep := l.keep
	l.keep = keep || o.NoHeader
	fields, first, err := row()
	l.keep = keep
	if err != nil {
		return headerError(l.at, o, err)
	}
	at := l.at
	at.Line = first
	h.width = len(fields)
	if o.NoHeader {
		if err := checkNumber(at, h.width, "a row of"); err != nil {
			return err
		}
		for i := range fields {
			h.names = append(h.names, strconv.Itoa(i+1))
		}
		l.unread()
		return nil
	}
	for _, name := range fields {
		h.names = append(h.names, string(name))
	}
	if h.indexed = h.width > 1 && h.names[0] == ""; h.indexed {
		h.names = h.names[1:]
	}
	return h.check(at)
}

func (h *header) columns() []string { return h.names }

// position returns the position of column c among the fields.
func (h *header) position(c int) int {
	if h.indexed {
		return c + 1
	}
	return c
}

// field returns the text of column c, false if it is NULL.
func (h *header) field(row [][]byte, c int) ([]byte, bool) {
	c = h.position(c)
	return row[c], len(row[c]) > 0
}

// csvRows reads comma-separated values with quotes according to RFC 4180, or values with
// another delimiter.
// (encoding/csv reads the same rows but changes CR LF within quotes to LF, which
// would change keys.)
type csvRows struct {
	l *lines
	header
	by      byte     // the delimiter
	sep     []byte   // the line before the names that has the delimiter
	heading bool     // the row has the names
	first   int      // line on which the row starts
	row     [][]byte // the row's fields
	// For rows with quotes:
	copied []byte // bytes of the fields
	ends   []int  // end of each field in copied
	on     []int  // line on which each field starts; empty: on the first
}

func newCSV(l *lines, o *Options) (*csvRows, error) {
	r := &csvRows{l: l, by: o.delimiter(), heading: !o.NoHeader}
	if err := r.separator(o); err != nil {
		return nil, err
	}
	err := r.begin(l, o, func() ([][]byte, int, error) {
		err := r.read(maxNames)
		return r.row, r.first, err
	})
	r.heading = false
	return r, err
}

// delimiter returns the delimiter of CSV.
func (o *Options) delimiter() byte { return cmp.Or(o.Delimiter, ',') }

// separator takes the delimiter from a first line such as sep=; of Excel, unless it is given.
func (r *csvRows) separator(o *Options) error {
	l := r.l
	for len(l.rest()) < len("\"sep=;\"\r\n") && l.err == nil && bytes.IndexByte(l.rest(), '\n') < 0 {
		l.fill()
	}
	line, _, _ := bytes.Cut(l.rest(), []byte("\n"))
	line = bytes.Trim(line, "\"\r")
	if len(line) != len("sep=;") || !bytes.EqualFold(line[:4], []byte("sep=")) {
		return nil
	}
	r.by = cmp.Or(o.Delimiter, line[4])
	line, err := l.read()
	r.sep = append(bytes.Clone(line), l.end...)
	return err
}

func (r *csvRows) value(c int) ([]byte, bool) { return r.field(r.row, c) }
func (r *csvRows) confined() bool             { return r.first == r.l.at.Line }

func (r *csvRows) line(c int) int {
	if len(r.on) > 0 {
		return r.on[r.position(c)]
	}
	return r.first
}

func (r *csvRows) next() error {
	if err := r.read(r.width); err != nil {
		return err
	}
	at := r.l.at
	at.Line = r.first
	return checkWidth(at, len(r.row), r.width)
}

// read reads a row. If it has too many fields, only one more than columns is read.
func (r *csvRows) read(columns int) error {
	r.row, r.on = r.row[:0], r.on[:0]
	line, err := r.l.next()
	if err != nil {
		return err
	}
	r.first = r.l.at.Line
	if bytes.IndexByte(line, '"') >= 0 {
		return r.quoted(line, columns)
	}
	r.row = split(r.row, line, r.by, columns)
	if r.heading {
		return checkEnd(r.l.at, line)
	}
	return nil
}

// quoted reads a row with quotes, which may end on a later line.
func (r *csvRows) quoted(line []byte, columns int) (err error) {
	r.copied, r.ends = r.copied[:0], r.ends[:0]
	for more := true; more; {
		begin, on := len(r.copied), r.l.at.Line
		if len(line) > 0 && line[0] == '"' {
			if line, err = r.quotedField(line[1:]); err != nil {
				return err
			}
			if more = len(line) > 0; more {
				if line[0] != r.by {
					return r.afterQuote(line[0])
				}
				line = line[1:]
			}
		} else {
			var field []byte
			field, line, more = bytes.Cut(line, []byte{r.by})
			if bytes.IndexByte(field, '"') >= 0 {
				return r.quoteError("a quote in a field that does not begin with one")
			}
			if r.heading { // within quotes, CR is part of a name
				if err = checkEnd(r.l.at, field); err != nil {
					return err
				}
			}
			r.copied = append(r.copied, field...)
		}
		if len(r.ends) > columns { // already one too many
			r.copied = r.copied[:begin]
			continue
		}
		r.ends, r.on = append(r.ends, len(r.copied)), append(r.on, on)
	}
	begin := 0
	for _, end := range r.ends {
		r.row = append(r.row, r.copied[begin:end])
		begin = end
	}
	return nil
}

// quotedField copies a field after its opening quote and returns the rest of the
// line after the closing one.
func (r *csvRows) quotedField(line []byte) ([]byte, error) {
	opened := r.l.at
	for {
		i := bytes.IndexByte(line, '"')
		if i < 0 {
			r.copied = append(append(r.copied, line...), r.l.end...)
			if len(r.copied) > r.l.max {
				opened.Line = r.first
				return nil, r.l.tooLong(opened)
			}
			err := r.l.room(len(r.copied))
			if err != nil {
				return nil, err
			}
			if line, err = r.l.read(); err == io.EOF {
				return nil, faults.Of(cause.BadLine, faults.Corrupt(opened, "a quote that is not closed")).WithHint(quoteHint)
			} else if err != nil {
				return nil, err
			}
			continue
		}
		r.copied, line = append(r.copied, line[:i]...), line[i+1:]
		if len(line) == 0 || line[0] != '"' {
			return line, nil
		}
		r.copied, line = append(r.copied, '"'), line[1:]
	}
}

// afterQuote returns the error about text after a closing quote: in the names probably another
// delimiter.
func (r *csvRows) afterQuote(c byte) error {
	if i := slices.IndexFunc(forms, func(f form) bool { return f.by[0] == c }); r.heading && i >= 0 {
		by := forms[i].by
		if by == "\t" {
			by = "tab"
		}
		return faults.Corrupt(r.l.at, "no delimiter after a name in quotes").WithHint("is it {Delimiter '%s'}?", by)
	}
	return r.quoteError("text after a closing quote")
}

// quoteError returns an error about the current line. Such a line cannot be
// skipped, because the end of its row is unknown.
func (r *csvRows) quoteError(what string) error {
	return faults.Of(cause.BadLine, faults.Corrupt(r.l.at, "%s", what)).WithHint(quoteHint)
}

const quoteHint = "write a field with quotes or line ends in quotes, and each quote within it twice"

func headerError(at fault.At, o *Options, err error) error {
	if err == io.EOF {
		at.Line = 0
		if o.NoHeader {
			return faults.Of(cause.Header, faults.Corrupt(at, "no row, so no number of columns")).WithHint("leave the file out")
		}
		return faults.Of(cause.Header, faults.Corrupt(at, "no row, not even one of column names")).WithHint("write the names as the first line")
	}
	return err
}

// check checks that the names are not empty and distinct.
func (h *header) check(at fault.At) error {
	if err := checkNumber(at, len(h.names), "a header of"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(h.names))
	for i, n := range h.names {
		i = h.position(i)
		if !utf8.ValidString(n) {
			return faults.Of(cause.Encoding, faults.Corrupt(at, "the name of column %d is not UTF-8", i+1)).WithHint("name its encoding, as in {Encoding latin1}")
		}
		if n == "" {
			return faults.Of(cause.Header, faults.Corrupt(at, "column %d has no name", i+1)).WithHint("name every column in the first line; if that has no names, add {NoHeader}")
		}
		if seen[n] {
			return faults.Of(cause.Header, faults.Corrupt(at, "two columns have the same name")).WithHint("rename one of them in the first line; if that has no names, add {NoHeader}")
		}
		seen[n] = true
	}
	return nil
}

// checkEnd returns an error if names without quotes have a CR: in an input with LF, CR
// alone ends no line, and the names would take rows in.
func checkEnd(at fault.At, names []byte) error {
	if bytes.IndexByte(names, '\r') < 0 {
		return nil
	}
	return faults.Of(cause.Header, faults.Corrupt(at, "a CR without LF within the column names, in an input with LF")).WithHint("make all lines end alike")
}

// checkWidth compares the number of a row's fields with that of the names.
func checkWidth(at fault.At, got, want int) error {
	if got == want {
		return nil
	}
	e := faults.Of(cause.BadLine, faults.Corrupt(at, "number of fields in a row"))
	_ = faults.Wanted(e, want, got)
	if got > want {
		e.Got = fmt.Sprintf("more than %d", want)
	}
	return &badLine{fault: e, confined: true}
}
