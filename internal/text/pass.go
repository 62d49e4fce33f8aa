package text

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
)

// rows reads a sequence of rows of one format.
type rows interface {
	// columns returns the names. They do not change.
	columns() []string
	// next moves to the next row. It returns io.EOF after the last one. More rows
	// may follow a badLine.
	next() error
	// value returns the text of column c, false if it is NULL. It is valid until
	// next.
	value(c int) ([]byte, bool)
	// line returns the line of column c of the row, from 1.
	line(c int) int
	// confined reports whether the row is on a single line.
	confined() bool
}

// pass is one reading of the input.
type pass struct {
	at    fault.At
	head  *head // of lines; else nil
	s     *stream
	lines *lines
	rows  rows
	good  int64 // rows so far that are not bad
	bad   *Bad  // nil: bad lines are errors
	part  int   // bytes that a goroutine parses at a time
}

func (p *pass) close() error { return p.s.close() }

// pass opens the input and reads its header.
func (in *input) pass() (*pass, error) {
	s, err := in.openStream()
	if err != nil {
		return nil, err
	}
	p := &pass{at: in.at, s: s, part: in.part}
	if in.opts.Format == Lines {
		p.head = &in.head
	}
	if in.opts.SkipBad {
		p.bad = new(Bad)
	}
	if err := p.begin(in); err != nil {
		p.close()
		return nil, p.explain(err)
	}
	return p, nil
}

func (p *pass) begin(in *input) error {
	l, err := newLines(p.s, in.opts.lineBytes(), in.opts.Format != NDJSON) // JSON has no NUL, so its parser reports it
	if err != nil {
		return err
	}
	if in.opts.MaxLineBytes <= 0 && l.max < maxLine {
		l.budget = in.opts.Memory
	}
	p.lines = l
	switch in.opts.Format {
	case CSV:
		p.rows, err = newCSV(l)
	case TSV:
		p.rows, err = newTSV(l)
	case Lines:
		p.rows = &idLines{lines: l, name: cmp.Or(in.opts.Column, "id")}
		if in.columns == nil {
			in.head = l.headOf()
			if in.opts.Guessed {
				err = in.head.check(in.at, cmp.Or(in.opts.Column, "id"))
			}
		}
	case NDJSON:
		p.rows, err = in.newNDJSON(l, p)
	default:
		return fmt.Errorf("%s: text format %d", in.at, in.opts.Format)
	}
	return err
}

// next moves to the next row that is not bad. It returns io.EOF after the last one.
func (p *pass) next() error {
	for {
		err := p.rows.next()
		if err == nil {
			p.good++
			return nil
		}
		var bad *badLine
		if err == io.EOF || !errors.As(err, &bad) {
			return err
		}
		if bad.confined = p.rows.confined(); !bad.confined || p.bad == nil {
			return bad
		}
		p.bad.add(bad.fault.At.Line)
	}
}

// refuse handles a value of column c that does not parse: it skips the row, if that
// is allowed, or returns an error with the wanted type.
func (p *pass) refuse(c int, name string, want fault.Text, parses func(string) bool) error {
	p.good--
	if p.bad != nil && p.rows.confined() {
		p.bad.add(p.rows.line(c))
		return nil
	}
	at := p.at
	at.Column, at.Line = name, p.rows.line(c)
	e := &fault.Error{Kind: fault.ErrMismatch, At: at, What: "a value that does not parse", Want: want}
	return &badLine{fault: e, confined: p.rows.confined(), parses: parses}
}

// explain completes an error about a bad line before it leaves the package. It
// hints at SkipBad, or at what the line looks like, only if that would help: if
// no earlier line was good, the input probably has another format.
func (p *pass) explain(err error) error {
	var bad *badLine
	if !errors.As(err, &bad) {
		return err
	}
	e := *bad.fault
	switch {
	case !bad.confined:
	case p.good > 0:
		e.Hint = "{SkipBad} leaves such lines out"
	default:
		e.What, e.Hint = p.looks(e.What, bad.parses)
	}
	return &e
}

// looks returns what an input without a good line may be instead.
func (p *pass) looks(what fault.Text, parses func(string) bool) (fault.Text, fault.Text) {
	if parses != nil && p.head != nil {
		if looks, hint := p.head.explain(parses); looks != "" {
			return what + "; " + looks, hint
		}
	}
	if parses != nil {
		return what, "no earlier value parsed: check the column, and its type with {Types}"
	}
	return what, "no earlier line parsed: check the format, with {TextFormat} for names that do not say it"
}

// Bad reports the lines that were skipped as bad.
type Bad struct {
	Lines int64 // number of bad lines
	First []int // numbers of the first 20 of them, from 1, ascending
}

// badShown is the number of line numbers that are kept.
const badShown = 20

// add counts a line. Lines arrive in order, except those found while looking for
// the columns of NDJSON.
func (b *Bad) add(line int) {
	b.Lines++
	if n := len(b.First); n == badShown && line > b.First[n-1] {
		return
	}
	i, _ := slices.BinarySearch(b.First, line)
	b.First = slices.Insert(b.First, i, line)
	b.First = b.First[:min(len(b.First), badShown)]
}

// Bad returns the lines skipped by the last Read or ReadPlain that reached the end
// of the input. It is zero before that, and without SkipBad.
func (in *input) Bad() Bad {
	in.mu.Lock()
	defer in.mu.Unlock()
	return Bad{in.bad.Lines, slices.Clone(in.bad.First)}
}

// SkipsBad reports whether bad lines are skipped.
func (in *input) SkipsBad() bool { return in.opts.SkipBad }

// ended is called when a pass has reached the end. If most lines were bad, the
// input probably has another format, so skipping them is an error.
func (in *input) ended(p *pass, parses func(string) bool) error {
	if p.bad == nil {
		return nil
	}
	in.mu.Lock()
	in.bad = *p.bad
	in.mu.Unlock()
	if p.bad.Lines <= p.good {
		return nil
	}
	at := in.at
	at.Line = p.bad.First[0]
	e := fault.Mismatch(at, "too many bad lines", "", fmt.Sprintf("%d of %d", p.bad.Lines, p.bad.Lines+p.good))
	e.Want = "at most half of them with {SkipBad}"
	e.Hint = "check the format, with {TextFormat}, and the type, with {Types}"
	if parses != nil && p.head != nil && at.Line == 1 {
		if looks, hint := p.head.explain(parses); looks != "" {
			e.What, e.Hint = e.What+"; "+looks, hint
		}
	}
	return e
}

// badLine is an error about a row. If confined is set, the row is on a single line.
type badLine struct {
	fault    *fault.Error
	confined bool
	parses   func(string) bool // for a value that does not parse: whether another text would
}

func (b *badLine) Error() string { return b.fault.Error() }
func (b *badLine) Unwrap() error { return b.fault }
