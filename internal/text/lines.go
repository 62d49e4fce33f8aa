package text

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/show"
)

// lines splits a stream into lines without copying them.
type lines struct {
	at  fault.At // Line is the number of the last line read
	s   *stream
	max int // longest line in bytes
	// budget is the memory budget if max was derived from it, else 0.
	budget int64
	off    int64  // position of buf in the text
	look   int    // number of bytes still to be checked for binary data, of which
	odd    bool   // one is a control character other than white space and NUL
	nul    bool   // one is NUL
	nuls   int    // NULs are the last ones
	end    string // end of the last line read: LF, CR LF, or nothing
	buf    []byte // text read so far
	from   int    // start of the next line in buf
	seen   int    // text before it has no line end
	err    error  // returned after buf
	cr     bool   // lines end with CR in the input, and with LF in buf
	keep   bool   // kept is wanted
	kept   []byte // lines read since the row before, with their ends

	// Of a range of an input that has several:
	mark    int          // end of the range in buf, noMark before it is found
	bounded bool         // lines that start after mark belong to other ranges; a header does not
	wait    func() error // called before a long line takes memory; nil: nothing to wait for
}

const noMark = math.MaxInt

// rest returns the text that was read and is not in a line yet.
func (l *lines) rest() []byte { return l.buf[l.from:] }

// past reports whether the next line belongs to a later range.
func (l *lines) past() bool { return l.bounded && l.from > l.mark }

// linesOf returns the lines of a stream that does not begin with the input's start.
func linesOf(s *stream, max int) *lines {
	return &lines{at: s.at, s: s, max: max, buf: make([]byte, 0, readSize), mark: noMark}
}

// newLines returns the lines of a stream, without a byte order mark. If look is
// set, binary data in the first 64 KiB is an error.
func newLines(s *stream, max int, look bool) (*lines, error) {
	l := linesOf(s, max)
	for len(l.buf) < 4 && l.err == nil && bytes.LastIndexByte(l.buf, '\n') < 1 {
		l.fill()
	}
	if mark, n := markOf(l.buf); mark == UTF8 {
		l.from, l.seen = n, n
	}
	if head := l.rest(); len(head) > 1 && (head[0] == 0 || head[1] == 0) {
		for len(l.rest()) < 64 && l.err == nil {
			l.fill() // the first read may be short
		}
		if encoding := unmarked(l.rest()); encoding != "" {
			return nil, faults.Of(cause.Encoding, faults.Unsupported(l.at, "text in %s without a byte order mark", encoding)).
				WithHint("name the encoding: {Encoding %s}", strings.ToLower(encoding))
		}
	}
	if look {
		l.look = readSize
		l.lookAt(l.rest())
	}
	if l.err != nil && l.err != io.EOF {
		return nil, l.err
	}
	return l, nil
}

// maxNULs is the number of NULs that are found together only in binary data, as in archives and
// in files that a crash has cut.
const maxNULs = 32

// lookAt checks newly read text for binary data: many NULs together, or NULs and other control
// characters. A NUL by itself is part of a key.
func (l *lines) lookAt(text []byte) {
	text = text[:min(len(text), l.look)]
	l.look -= len(text)
	for _, c := range text {
		if l.nuls++; c > 0 {
			l.nuls = 0
		}
		l.nul, l.odd = l.nul || c == 0, l.odd || c > 0 && c < '\t' || c > '\r' && c < ' '
		if l.nul && l.odd || l.nuls == maxNULs {
			l.buf, l.seen = l.buf[:l.from], l.from
			l.err = faults.Of(cause.LooksLike, faults.Unsupported(l.s.at, "binary data, not text")).
				WithHint("if it is compressed, take the compression off; only gzip and zstd are read")
			return
		}
	}
}

// lookAhead reads what is still to be checked. The first range may end before
// that, and its rows would be read although the input as a whole is refused.
func (l *lines) lookAhead() error {
	for l.look > 0 && l.err == nil && len(l.buf) < cap(l.buf) {
		l.fill()
	}
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

// fill reads more text.
func (l *lines) fill() {
	if l.from > 0 {
		n := copy(l.buf[:cap(l.buf)], l.rest())
		if l.mark != noMark {
			l.mark -= l.from
		}
		l.off += int64(l.from)
		l.buf, l.seen, l.from = l.buf[:n], l.seen-l.from, 0
	}
	if len(l.buf) == cap(l.buf) { // read limits the length of lines
		if err := l.room(cap(l.buf)); err != nil {
			l.err = err
			return
		}
		l.buf = append(make([]byte, 0, 2*cap(l.buf)), l.buf...)
	}
	for range 100 {
		n, err := l.s.Read(l.buf[len(l.buf):cap(l.buf)])
		fresh := l.buf[len(l.buf) : len(l.buf)+n]
		l.buf = l.buf[:len(l.buf)+n]
		if errors.Is(err, errRangeEnd) {
			l.mark, err = len(l.buf), nil
		}
		l.err = err
		l.lookAt(fresh)
		if l.cr {
			l.toLF(fresh)
		}
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// endings finds how lines end, before the first one is read: cr reports whether CR alone
// ends a line, as on old Macs. That is sure if there is no LF, in the input or in as many
// bytes as a line has at most; a later LF is an error. doubt reports whether the only LF
// ends an input that has a CR within: it may be one line or several.
func (l *lines) endings() (cr, doubt bool) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			return false, l.hasCR(l.buf[l.from:l.seen+i]) && l.ended(i)
		}
		l.seen = len(l.buf)
		if l.err != nil || len(l.rest()) > l.max+1 {
			break
		}
		l.fill()
	}
	l.seen = l.from
	return (l.err == nil || l.err == io.EOF) && l.hasCR(l.rest()), false
}

// hasCR reports whether a line has a CR that does not end it.
func (l *lines) hasCR(line []byte) bool {
	return bytes.IndexByte(bytes.TrimSuffix(line, []byte("\r")), '\r') >= 0
}

// ended reports whether the input ends after byte i of what was not looked at yet.
func (l *lines) ended(i int) bool {
	for l.seen+i+1 == len(l.buf) && l.err == nil {
		l.fill()
	}
	return l.seen+i+1 == len(l.buf) && l.err == io.EOF
}

// toLF makes the CR in newly read text LF.
func (l *lines) toLF(text []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		at := l.at
		at.Line += bytes.Count(l.buf[l.from:len(l.buf)-len(text)], []byte("\n")) + bytes.Count(text[:i], []byte("\r")) + 1
		l.err = faults.Of(cause.BadLine, faults.Corrupt(at, "a line that ends with LF, after others that end with CR")).WithHint("make all lines end alike")
		return
	}
	for i, c := range text {
		if c == '\r' {
			text[i] = '\n'
		}
	}
}

// room waits, before a line of more than n bytes takes memory, until no other range
// may have a long line.
func (l *lines) room(n int) (err error) {
	if n < longBytes || l.wait == nil {
		return nil
	}
	if err = l.wait(); err == nil {
		l.wait = nil
	}
	return err
}

// skip moves to the first row that starts after the beginning of a range, or beyond the
// range if there is none. If csv is set, line ends within quotes do not end a row;
// quoted reports whether the range begins within quotes.
func (l *lines) skip(csv, quoted bool) {
	ends := "\n"
	if csv {
		ends = "\"\n"
	}
	for !l.past() {
		text := l.rest()
		var i int
		if quoted {
			i = bytes.IndexByte(text, '"')
		} else {
			i = bytes.IndexAny(text, ends)
		}
		n := i + 1
		if i < 0 {
			n = len(text)
		}
		l.at.Line += bytes.Count(text[:n], []byte{'\n'})
		l.from += n
		l.seen = l.from
		switch {
		case i >= 0 && text[i] == '"':
			quoted = !quoted
		case i >= 0:
			return
		case l.err != nil: // the next line returns it
			return
		default:
			l.fill()
		}
	}
}

// next returns the next line that is not empty, without its end. It is valid until
// the next call.
func (l *lines) next() ([]byte, error) {
	for {
		if l.past() {
			return nil, io.EOF
		}
		l.kept = l.kept[:0]
		line, err := l.read()
		if err != nil || len(line) > 0 {
			return line, err
		}
	}
}

// read returns the next line, without its end. It is valid until the next call.
func (l *lines) read() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:], '\n'); i >= 0 {
			line := l.buf[l.from : l.seen+i]
			l.from = l.seen + i + 1
			l.seen = l.from
			l.end = "\n"
			if l.cr {
				l.end = "\r"
			}
			return l.cut(line)
		}
		l.seen = len(l.buf)
		if len(l.rest()) > l.max+1 { // the last byte may be a CR that ends the line
			l.at.Line++
			return nil, l.tooLong(l.at)
		}
		if l.err == nil {
			l.fill()
			continue
		}
		if l.err != io.EOF || l.from == len(l.buf) {
			return nil, l.err
		}
		line := l.rest() // a last line without line end
		l.from, l.end = len(l.buf), ""
		return l.cut(line)
	}
}

// unread makes the lines of the row that was kept the next ones again.
func (l *lines) unread() {
	if l.cr {
		l.kept = bytes.ReplaceAll(l.kept, []byte{'\r'}, []byte{'\n'})
	}
	l.at.Line -= bytes.Count(l.kept, []byte{'\n'})
	if !bytes.HasSuffix(l.kept, []byte{'\n'}) { // the input's last line
		l.at.Line--
	}
	moved := len(l.kept) - l.from
	if l.mark != noMark {
		l.mark += moved
	}
	l.off -= int64(moved)
	l.buf = append(append(make([]byte, 0, max(cap(l.buf), len(l.buf)+moved)), l.kept...), l.rest()...)
	l.from, l.seen, l.kept = 0, 0, nil
}

// cut removes the CR from a line and counts the line.
func (l *lines) cut(line []byte) ([]byte, error) {
	l.at.Line++
	if l.keep {
		l.kept = append(append(l.kept, line...), l.end...)
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
		if l.end != "" {
			l.end = "\r\n"
		}
	}
	if len(line) > l.max {
		return nil, l.tooLong(l.at)
	}
	return line, nil
}

// tooLong returns the error for a line of more than l.max bytes.
func (l *lines) tooLong(at fault.At) error {
	if l.budget > 0 {
		return faults.Memory(at, "a line", int64(l.max)+1, l.budget, lineShare)
	}
	return faults.Of(cause.BadLine, faults.Unsupported(at, "a line of more than %s", show.Size(int64(l.max)))).WithHint("check that the file has the format that its name says")
}

// idLines reads one ID per line.
type idLines struct {
	*lines
	name string
	id   []byte
}

func (r *idLines) columns() []string { return []string{r.name} }

func (r *idLines) next() (err error) {
	r.id, err = r.lines.next()
	return err
}

func (r *idLines) value(int) ([]byte, bool) { return r.id, true }
func (r *idLines) line(int) int             { return r.at.Line }
func (r *idLines) confined() bool           { return true }

// tsv reads tab-separated values without quotes.
type tsv struct {
	*lines
	header
	row [][]byte
}

func newTSV(l *lines, o *Options) (*tsv, error) {
	r := &tsv{lines: l}
	return r, r.begin(l, o, func() (fields [][]byte, first int, err error) {
		line, err := l.next()
		if err != nil {
			return nil, 0, err
		}
		if !o.NoHeader {
			err = checkEnd(l.at, line)
		}
		return split(nil, line, '\t', maxNames), l.at.Line, err
	})
}

func (r *tsv) next() error {
	line, err := r.lines.next()
	if err != nil {
		return err
	}
	r.row = split(r.row[:0], line, '\t', r.width)
	return checkWidth(r.at, len(r.row), r.width)
}

func (r *tsv) value(c int) ([]byte, bool) { return r.field(r.row, c) }
func (r *tsv) line(int) int               { return r.at.Line }
func (r *tsv) confined() bool             { return true }

// split appends the fields of a line to row. If there are too many, it appends only
// one more than columns.
func split(row [][]byte, line []byte, by byte, columns int) [][]byte {
	for len(row) < columns {
		i := bytes.IndexByte(line, by)
		if i < 0 {
			return append(row, line)
		}
		row, line = append(row, line[:i]), line[i+1:]
	}
	return append(row, line)
}
