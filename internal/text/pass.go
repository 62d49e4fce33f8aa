package text

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bloomjoin/bloomjoin/fault"
)

// rows is what the formats do differently: a sequence of rows.
type rows interface {
	// columns are the names; they do not change.
	columns() []string
	// next goes to the next row; io.EOF after the last. A badLine may be
	// followed by more rows.
	next() error
	// value is the text of column c; false for NULL. It is valid until next.
	value(c int) ([]byte, bool)
	// line is where column c of the row stands, from 1.
	line(c int) int
	// confined reports whether the row stands on one line.
	confined() bool
}

// pass is one reading of the input.
type pass struct {
	at    fault.At
	head  *head // of lines
	s     *stream
	lines *lines
	rows  rows
	good  int64 // rows so far that are not bad
	bad   *Bad  // nil: bad lines are errors
	part  int   // bytes that one of several goroutines parses at once
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
	l, err := newLines(p.s, in.opts.lineBytes(), in.opts.Format != NDJSON) // in which NUL is no JSON
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

// next goes to the next row that is not bad; io.EOF after the last.
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

// refuse is told that the value of column c of the row does not parse: the row
// is left out, if that may be, else the error says what was wanted.
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

// explain completes an error about a bad line on its way out of the package.
// What the line looks like, or SkipBad, is worth a hint only if it would
// help: if no line before was good, the input is probably not what it was
// taken for.
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

// looks says of an input without a good line what it may be instead.
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

// Bad says which lines were left out as bad.
type Bad struct {
	Lines int64 // how many
	First []int // the numbers of the first 20 of them, from 1, ascending
}

// badShown is how many line numbers are kept.
const badShown = 20

// add counts a line. They come in order but for those that are found while the
// columns of NDJSON are looked for.
func (b *Bad) add(line int) {
	b.Lines++
	if n := len(b.First); n == badShown && line > b.First[n-1] {
		return
	}
	i, _ := slices.BinarySearch(b.First, line)
	b.First = slices.Insert(b.First, i, line)
	b.First = b.First[:min(len(b.First), badShown)]
}

// Bad returns the lines that were left out by the last Read or ReadPlain that
// came to the end of the input. Zero without SkipBad, and before.
func (in *input) Bad() Bad {
	in.mu.Lock()
	defer in.mu.Unlock()
	return Bad{in.bad.Lines, slices.Clone(in.bad.First)}
}

// SkipsBad reports whether bad lines are left out.
func (in *input) SkipsBad() bool { return in.opts.SkipBad }

// ended is called when a pass has come to the end. If most lines were bad, the
// input is not what it was taken for, and leaving them out is an error.
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

// badLine is an error that is confined to one line, if the row is.
type badLine struct {
	fault    *fault.Error
	confined bool
	parses   func(string) bool // of a value that does not parse: whether another would
}

func (b *badLine) Error() string { return b.fault.Error() }
func (b *badLine) Unwrap() error { return b.fault }
