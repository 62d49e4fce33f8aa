package text

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// asked is text that is read row by row, for a reader that answers each row as it comes.
type asked struct {
	s *stream
	l *lines // which keeps the row's text
}

// ask opens text, see [NewObjects].
func ask(rc io.ReadCloser, name string, format Format, memory int64) (asked, error) {
	in := &input{
		at:   fault.At{File: name},
		open: func() (io.ReadCloser, error) { return rc, nil },
		opts: Options{Format: format, Once: true, Size: -1, Memory: memory},
	}
	s, err := in.openStream()
	if err != nil {
		return asked{}, err
	}
	if s.encoding != "" { // rows are answered as they are
		_ = s.close()
		return asked{}, faults.Of(cause.Encoding, faults.Unsupported(in.at, "text in %s; want UTF-8", s.encoding)).WithHint("convert it: iconv -f UTF-16 -t UTF-8")
	}
	l, err := newLines(s, in.opts.lineBytes(), false)
	if err != nil {
		_ = s.close()
		return asked{}, err
	}
	if l.max < maxLine {
		l.budget = memory
	}
	l.keep = true
	return asked{s, l}, nil
}

// Ready reports whether the next row is certainly in memory, so that Next will not wait for
// it.
func (a asked) Ready() bool {
	_, ok := a.next()
	return ok
}

// next returns the next line that is not empty, if all of it is in memory.
func (a asked) next() (line []byte, ok bool) {
	l := a.l
	if rest := l.rest(); bytes.HasPrefix(rest, []byte("\n")) || bytes.HasPrefix(rest, []byte("\r\n")) {
		line, _, ok = bytes.Cut(bytes.TrimLeft(rest, "\r\n"), []byte("\n"))
		return line, ok
	}
	i := bytes.IndexByte(l.buf[l.seen:], '\n')
	if i < 0 {
		l.seen = len(l.buf)
		return nil, false
	}
	l.seen += i // Next need not search again
	return l.buf[l.from:l.seen], true
}

// Close closes the input.
func (a asked) Close() error { return a.s.close() }

// Rows reads CSV, TSV or one ID a line row by row, for a reader that answers each row as
// it comes. Rows follow the rules of the package. It must not be used concurrently.
type Rows struct {
	asked
	rows   rows
	header []byte
}

// NewRows reads rows from rc. The column of lines has the given name. If guessed is set,
// text that is certainly something else than one ID a line is an error. See [NewObjects]
// for name and memory.
func NewRows(rc io.ReadCloser, name string, format Format, delimiter byte, column string, guessed bool, memory int64) (*Rows, error) {
	a, err := ask(rc, name, format, memory)
	if err != nil {
		return nil, err
	}
	t := &Rows{asked: a}
	if err := t.begin(format, delimiter, column, guessed); err != nil {
		_ = a.s.close()
		return nil, err
	}
	return t, nil
}

func (t *Rows) begin(format Format, delimiter byte, column string, guessed bool) (err error) {
	l := t.l
	if l.cr, _ = l.endings(); l.cr {
		l.toLF(l.rest())
	}
	switch format {
	case CSV:
		t.rows, err = newCSV(l, &Options{Delimiter: delimiter})
	case TSV:
		t.rows, err = newTSV(l, &Options{})
	default:
		t.rows = &idLines{lines: l, name: column}
		if i := bytes.IndexByte(l.rest(), '\n'); guessed && i >= 0 { // more may not be written yet
			err = head{first: string(bytes.TrimSuffix(l.buf[l.from:l.from+i], []byte("\r")))}.check(l.at, column)
		}
	}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		e.Hint = fault.Text(strings.ReplaceAll(string(e.Hint), "{TextFormat", "{Format"))
	}
	t.header, l.kept = l.kept, nil
	if r, ok := t.rows.(*csvRows); ok {
		t.header = append(r.sep, t.header...)
	}
	return err
}

// Header returns the text of the row of column names, empty for lines.
func (t *Rows) Header() []byte { return t.header }

// Columns returns the names of the columns.
func (t *Rows) Columns() []string { return t.rows.columns() }

// Next moves to the next row and returns its text with the line end. It returns io.EOF after
// the last row. The text is valid until the next call.
func (t *Rows) Next() ([]byte, error) {
	err := t.rows.next()
	if err == nil {
		return t.l.kept, nil
	}
	if bad := (*badLine)(nil); errors.As(err, &bad) {
		return nil, bad.fault
	}
	return t.l.kept, err
}

// Ready is like that of Objects. A row with quotes may go on in the next line.
func (t *Rows) Ready() bool {
	line, ready := t.asked.next()
	if _, quotes := t.rows.(*csvRows); quotes && ready {
		return bytes.IndexByte(line, '"') < 0
	}
	return ready
}

// Value returns the text of column c of the current row, false if it is NULL. It is valid
// until Next.
func (t *Rows) Value(c int) ([]byte, bool) { return t.rows.value(c) }

// Line returns the number of the current row's last line, from 1.
func (t *Rows) Line() int { return t.l.at.Line }

// Offset returns the number of bytes of the text up to the end of the current row.
func (a asked) Offset() int64 { return a.l.off + int64(a.l.from) }

// Compressed reports whether the input is compressed.
func (a asked) Compressed() bool { return a.s.kind != "" }

// Resume makes the next line follow the line of the given number, where a reader begins within
// a text.
func (a asked) Resume(line int) { a.l.at.Line = line }
