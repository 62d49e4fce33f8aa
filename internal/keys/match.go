package keys

import (
	"fmt"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Side describes the key on one side of a comparison.
type Side struct {
	Columns []Column // nil: the key of a filter
	Classes []Class
	IDs     bool // the side is IDs that are compared with a filter, not a log
}

// name names the side in messages.
func (s Side) name() string {
	if s.IDs {
		return "the IDs"
	}
	return "the log"
}

// Match returns nil if the keys of the IDs can be compared with the log's, part
// by part. Otherwise the error names both classes and, if there is one, the cast
// that helps.
func Match(at fault.At, ids, log Side) error {
	if len(ids.Classes) != len(log.Classes) {
		return faults.Of(cause.KeyTypes, faults.Mismatch(at, "number of key columns", len(ids.Classes), len(log.Classes))).
			WithHint("name as many columns as the key of the IDs has, in its order")
	}
	for i, a := range ids.Classes {
		if b := log.Classes[i]; !a.comparable(b) {
			want := " (the IDs)"
			if ids.Columns == nil {
				want = " (the filter)"
			}
			return faults.Of(cause.KeyTypes, faults.Mismatch(at, "key class", a.word()+want, b.word()+" ("+log.name()+")")).WithHint("%s", remedy(ids, log, i, at.File))
		}
	}
	return nil
}

// Same returns nil if a column has the same class in two ID files of a filter.
// Otherwise the error names first, the file whose class is want.
func Same(at fault.At, column Column, first string, want, got Class) error {
	if want == got || want == Null || got == Null {
		return nil
	}
	e := faults.Of(cause.KeyTypes, faults.Mismatch(at, "key class", fmt.Sprintf("%s (%s)", want.word(), first), got.word()))
	if to := widest(want, got); column.Cast == nil && castable(want, to) && castable(got, to) {
		return e.WithHint("the keys of a filter are of one class: cast those of all files, as %s", column.as(to))
	}
	return e.WithHint("the keys of a filter are of one class: build one from the files of each")
}

// widest returns the class to which both can more likely be cast.
func widest(a, b Class) Class {
	switch {
	case a == Bytes:
		return b
	case b == Bytes, a == Integer || b == Decimal:
		return a
	}
	return b
}

// word names the class in messages.
func (c Class) word() string {
	if c == Bytes {
		return "text or binary"
	}
	return string(c)
}

// remedy returns the hint for part i of a key whose class differs between the IDs
// and the log, whose file has the name.
func remedy(ids, log Side, i int, file string) fault.Text {
	a, b := ids.Classes[i], log.Classes[i]
	logCol := log.Columns[i]
	if name := logCol.Flat(); castable(b, a) && strings.Contains("/"+file, "/"+name+"=") { // zero-padded, no cast reads it
		return faults.Textf("give the column of the path its type: {HiveTypes %s:%s}", name, typeFor(a))
	}
	ofLog := castable(b, a) && logCol.Cast == nil
	ofIDs := castable(a, b)
	if ids.Columns == nil {
		build := faults.Textf("build the filter again with its key cast, as ID::%s", typeFor(b))
		switch {
		case ofLog && ofIDs && a == Bytes: // the text of a number has no leading zeros
			return faults.Textf("%s, or from text files with {Types %s}, which accepts leading zeros; %s on the log finds no ID that has them", build, typeFor(b), logCol.as(a))
		case ofLog:
			return faults.Textf("cast the key of %s, as %s%s", log.name(), logCol.as(a), padded(b, a))
		case ofIDs:
			return build
		}
		return "no cast leads from one to the other: name another column, or another filter"
	}
	idCol := ids.Columns[i]
	ofIDs = ofIDs && idCol.Cast == nil
	switch {
	case ofIDs && (a == Bytes || !ofLog):
		return faults.Textf("cast the IDs: %s=%s%s", logCol, idCol.as(b), padded(a, b))
	case ofLog:
		return faults.Textf("cast the log's column: %s=%s%s", logCol.as(a), idCol, padded(b, a))
	}
	return "no cast leads from one to the other: name other columns"
}

// padded says how text is cast to integers if that has leading zeros, which integers have not.
func padded(from, to Class) string {
	if from == Bytes && to == Integer {
		return ", or ::decimal(20,0) for numbers with leading zeros"
	}
	return ""
}

// as returns the column with a cast to a type of the class.
func (c Column) as(to Class) Column { return Column{Path: c.Path, Cast: TypeOf(to)} }

// joined lists classes for a message.
func joined(classes []Class) string {
	return strings.Join(NamesOf(classes), ", ")
}
