package text

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// lines splits text into lines that are not empty.
type lines struct {
	at  fault.At // Line is that of the current line
	r   *bufio.Reader
	lim *limited
	max int
	buf []byte
}

func newLines(at fault.At, r *bufio.Reader, max int, lim *limited) *lines {
	return &lines{at: at, r: r, max: max, lim: lim}
}

// next is the next line that is not empty, without its end; valid until the
// call after.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.read()
		if err != nil || len(line) > 0 {
			return line, err
		}
	}
}

func (l *lines) read() ([]byte, error) {
	l.at.Line++
	l.lim.reset(l.at.Line)
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(part) > l.max+2 {
			return nil, tooLong(l.at, l.max)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			l.buf = append(l.buf, part...)
			continue
		}
		if err == io.EOF && len(l.buf)+len(part) > 0 {
			err = nil // a last line without an end
		}
		if err != nil {
			return nil, err
		}
		line := part
		if len(l.buf) > 0 {
			l.buf = append(l.buf, part...)
			line = l.buf
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if len(line) > l.max {
			return nil, tooLong(l.at, l.max)
		}
		return line, nil
	}
}

// idLines is one ID a line.
type idLines struct {
	*lines
	name string
	id   string
}

func (r *idLines) columns() []string { return []string{r.name} }

func (r *idLines) next() error {
	line, err := r.lines.next()
	r.id = string(line)
	return err
}

func (r *idLines) value(int, string) (string, bool) { return r.id, true }
func (r *idLines) line(int) int                     { return r.at.Line }

// tsv is tab-separated values without quotes.
type tsv struct {
	*lines
	names []string
	row   []string
}

func newTSV(l *lines) (*tsv, error) {
	line, err := l.next()
	if err != nil {
		return nil, headerError(l.at, err)
	}
	r := &tsv{lines: l, names: strings.Split(string(line), "\t")}
	return r, checkNames(l.at, r.names)
}

func (r *tsv) columns() []string { return r.names }

func (r *tsv) next() error {
	line, err := r.lines.next()
	if err != nil {
		return err
	}
	r.row = r.row[:0]
	for f := range strings.SplitSeq(string(line), "\t") {
		if r.row = append(r.row, f); len(r.row) > len(r.names) {
			break
		}
	}
	return checkWidth(r.at, len(r.row), len(r.names))
}

func (r *tsv) value(c int, _ string) (string, bool) { return r.row[c], r.row[c] != "" }
func (r *tsv) line(int) int                         { return r.at.Line }

// csvRows is comma-separated values with quotes.
type csvRows struct {
	at    fault.At
	r     *csv.Reader
	lim   *limited
	names []string
	row   []string
}

func newCSV(at fault.At, br *bufio.Reader, lim *limited) (*csvRows, error) {
	r := &csvRows{at: at, r: csv.NewReader(br), lim: lim}
	r.r.FieldsPerRecord = -1
	r.r.ReuseRecord = true
	if err := r.read(); err != nil {
		return nil, headerError(at, err)
	}
	r.names = slices.Clone(r.row)
	at.Line = r.line(0)
	return r, checkNames(at, r.names)
}

func (r *csvRows) columns() []string { return r.names }

func (r *csvRows) read() (err error) {
	line := 1
	if r.row != nil {
		line = r.line(len(r.row)-1) + 1
	}
	r.lim.reset(line)
	r.row, err = r.r.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		at := r.at
		at.Line = parse.Line
		return fault.Corrupt(at, "%v", parse.Err)
	}
	return err
}

func (r *csvRows) next() error {
	if err := r.read(); err != nil {
		return err
	}
	at := r.at
	at.Line = r.line(0)
	return checkWidth(at, len(r.row), len(r.names))
}

func (r *csvRows) value(c int, _ string) (string, bool) { return r.row[c], r.row[c] != "" }

func (r *csvRows) line(c int) int {
	line, _ := r.r.FieldPos(c)
	return line
}

func headerError(at fault.At, err error) error {
	if err == io.EOF {
		at.Line = 0
		return fault.Corrupt(at, "no row of column names")
	}
	return err
}

// checkNames wants names that can be told apart.
func checkNames(at fault.At, names []string) error {
	seen := map[string]bool{}
	for i, n := range names {
		if n == "" {
			return fault.Corrupt(at, "column %d has no name", i+1)
		}
		if seen[n] {
			return fault.Corrupt(at, "two columns are named %q", n)
		}
		seen[n] = true
	}
	return nil
}

func checkWidth(at fault.At, got, want int) error {
	if got == want {
		return nil
	}
	e := fault.Corrupt(at, "a row with another number of fields than the names")
	e.Want, e.Got = fmt.Sprint(want), fmt.Sprint(got)
	if got > want {
		e.Got = fmt.Sprintf("more than %d", want)
	}
	return e
}
