package text

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/scalar"
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
	texts []int // if bad lines are skipped: columns that must be UTF-8, also where they are not read
	part  int   // bytes that a goroutine parses at a time

	group  int   // its first range
	end    int   // the range after its last one
	quoted bool  // the range begins within quotes
	body   int64 // position in the text of what follows the header
	covers bool  // of the first range: it has the whole header
}

func (p *pass) close() error { return p.s.close() }

// pass opens the ranges lo to hi, exclusive, and reads the header, which the first one
// has. Before the ranges are found, the first one is the whole input.
func (in *input) pass(lo, hi int) (*pass, error) {
	open := in.openStream
	if in.ranges() > 1 {
		open = func() (*stream, error) { return in.openRange(lo, hi) }
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	p := &pass{at: in.at, s: s, part: in.part, group: lo, end: hi}
	if in.opts.Format == Lines && lo == 0 {
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

func (p *pass) begin(in *input) (err error) {
	var l *lines
	if p.group > 0 {
		l = linesOf(p.s, in.opts.lineBytes())
	} else if l, err = newLines(p.s, in.opts.lineBytes(), in.opts.Format != NDJSON); err != nil { // JSON has no NUL, so its parser reports it
		return err
	}
	if in.ranges() > 1 {
		if err := l.lookAhead(); err != nil {
			return err
		}
	}
	if in.opts.MaxLineBytes <= 0 && l.max < maxLine {
		l.budget = in.opts.Memory
	}
	p.lines = l
	if in.columns == nil {
		in.cr, in.doubt = l.endings()
		in.marked = p.s.marked
	}
	if l.cr = in.cr; l.cr {
		l.toLF(l.rest())
	}
	p.headed(l)
	switch {
	case in.opts.Format == CSV && p.group > 0:
		p.rows = &csvRows{l: l, header: in.header, by: in.opts.delimiter()}
		return nil
	case in.opts.Format == TSV && p.group > 0:
		p.rows = &tsv{lines: l, header: in.header}
		return nil
	}
	switch in.opts.Format {
	case CSV:
		p.rows, err = newCSV(l, &in.opts)
		p.headed(l)
	case TSV:
		p.rows, err = newTSV(l, &in.opts)
		p.headed(l)
	case Lines:
		name := cmp.Or(in.opts.Column, "id")
		if nested := in.opts.Nested; len(nested) == 1 { // the only column is the one below a column
			name = keys.Path(nested[0]).Flat()
			in.inner = []innerColumn{{path: nested[0]}}
		}
		p.rows = &idLines{lines: l, name: name}
		if in.columns == nil {
			in.head = l.headOf()
			if in.opts.Guessed {
				err = cmp.Or(in.head.check(in.at, cmp.Or(in.opts.Column, "id")), in.head.check(in.at, name))
			}
		}
	case NDJSON:
		p.rows, err = in.newNDJSON(l, p)
	default:
		return fmt.Errorf("%s: text format %d", in.at, in.opts.Format)
	}
	return err
}

// headed notes that the header, or the byte order mark, ends here.
func (p *pass) headed(l *lines) {
	p.body, p.covers = l.off+int64(l.from), l.from <= l.mark
}

// next moves to the next row that is not bad. It returns io.EOF after the last one.
func (p *pass) next() error {
	for {
		err := p.rows.next()
		if err == nil {
			p.good++
			c := p.foreign()
			if c < 0 {
				return nil
			}
			if err := p.refuse(c, p.rows.columns()[c], wantText, nil); err != nil {
				return err
			}
			continue
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

// foreign returns a column of texts whose value is not UTF-8, -1 if there is none.
func (p *pass) foreign() int {
	for _, c := range p.texts {
		if v, _ := p.rows.value(c); !validUTF8(v) {
			return c
		}
	}
	return -1
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
	e := faults.Of(cause.BadValue, &fault.Error{Kind: fault.ErrMismatch, At: at, What: "a value that does not parse", Want: want})
	if want == wantText {
		_ = faults.Of(cause.Encoding, e)
		e.What, e.Hint = "text in another encoding", bytesHint
	}
	if v, _ := p.rows.value(c); strings.HasPrefix(strings.TrimPrefix(string(want), "u"), "int") && bytes.IndexByte(v, '.') >= 0 {
		if _, ok := scalar.Float(view(v), 64); ok { // pandas writes integers so beside missing ones
			e.Hint = fractionHint
		}
	}
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
	case e.Hint == fractionHint && bad.confined && p.anyGood():
		e.Hint = skipHint + "; " + e.Hint
	case !bad.confined || e.Hint != "":
	case p.anyGood():
		e.Hint = skipHint
	default:
		e.What, e.Hint = p.looks(e.What, bad.parses)
	}
	return &e
}

const (
	skipHint     = "{SkipBad} leaves such lines out"
	fractionHint = "{Types double} takes numbers with a fraction"
)

// anyGood reports whether a line before the bad one may have been good.
func (p *pass) anyGood() bool { return p.good > 0 || p.group > 0 }

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

// Bad returns the lines skipped by the last Read or ReadPlain of each range that
// reached its end. It is zero before that, and without SkipBad.
func (in *input) Bad() (all Bad) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, e := range in.ends {
		all.merge(e.bad)
	}
	return all
}

// SkipsBad reports whether bad lines are skipped.
func (in *input) SkipsBad() bool { return in.opts.SkipBad }

// ended is what a pass has found when it reached the end of a range.
type ended struct {
	bad    Bad
	good   int64
	parses func(string) bool
}

// end is called when a pass has reached the end. The only range is judged at once.
func (in *input) end(ctx context.Context, p *pass, parses func(string) bool) error {
	if p.bad == nil {
		return nil
	}
	bad := Bad{Lines: p.bad.Lines}
	if bad.Lines > 0 {
		if before, ok := in.linesBefore(ctx, p.group); ok {
			for _, line := range p.bad.First {
				bad.First = append(bad.First, line+before)
			}
		}
	}
	in.mu.Lock()
	if in.ends == nil {
		in.ends = map[int]ended{}
	}
	for g := p.group + 1; g < p.end; g++ { // earlier passes may have read them one by one
		delete(in.ends, g)
	}
	in.ends[p.group] = ended{bad, p.good, parses}
	in.mu.Unlock()
	if in.ranges() > 1 {
		return nil
	}
	return in.Judge([]int{0})
}

// Judge returns an error if most lines of the given ranges, which were read, were bad:
// the input probably has another format, so skipping them is an error. A range that is
// the whole input was judged by its Read.
func (in *input) Judge(groups []int) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	var all ended
	for _, g := range groups {
		e := in.ends[g]
		all.bad.merge(e.bad)
		all.good += e.good
		if g == 0 {
			all.parses = e.parses
		}
	}
	if all.bad.Lines <= all.good {
		return nil
	}
	at := in.at
	if len(all.bad.First) > 0 {
		at.Line = all.bad.First[0]
	}
	e := faults.Of(cause.BadValue, faults.Mismatch(at, "too many bad lines", "", fmt.Sprintf("%d of %d", all.bad.Lines, all.bad.Lines+all.good)))
	e.Want = "at most half of them with {SkipBad}"
	e.Hint = "check the format, with {TextFormat}, the type, with {Types}, and the encoding, with {Encoding}"
	if all.parses != nil && in.opts.Format == Lines && at.Line == 1 {
		if looks, hint := in.head.explain(all.parses); looks != "" {
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
