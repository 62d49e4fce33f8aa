package look

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/each"
)

// Table collects rows and prints them. It holds as much of each as fits on a line.
type Table struct {
	Most     int // rows to collect
	Rows     int // collected so far
	width    int // columns of the terminal
	sections []*section
}

// NewTable returns a table of at most so many rows, for a terminal with that many columns.
func NewTable(most, width int) *Table { return &Table{Most: most, width: max(width, leastWidth)} }

const (
	leastWidth = 20 // of a terminal
	leastText  = 10 // columns that a text gets, unless it takes fewer
	leastType  = 6  // and the name of a type: int64 is not cut
	mostWhole  = 36 // columns that other values get, which are not cut below: those of a UUID
	between    = 3  // columns between two columns
)

// section is a run of rows with the same columns. Files of one log may differ.
type section struct {
	of   int      // columns that the rows have
	cols []column // the first and the last of them, as many as can fit
	rows int
}

// column is a column of a section, with its values as they are shown.
type column struct {
	name, typ string
	number    bool // stands on the right
	long      bool // a text or nested: it may be cut
	cells     []string
	widest    int // columns that the widest cell takes
}

// Full reports whether all rows are there.
func (t *Table) Full() bool { return t.Rows >= t.Most }

// Pick returns the positions of the columns that can be shown: the first and the last ones if
// there are many.
func (t *Table) Pick(schema *arrow.Schema) (columns []int) {
	n, half := schema.NumFields(), t.width/(2*(1+between))+1
	for i := range n {
		if i < half || i >= n-half {
			columns = append(columns, i)
		}
	}
	return columns
}

// Add adds rows until there are enough. columns are those that Pick returns, in that order.
// Without rows it adds the columns; NDJSON without rows has none.
func (t *Table) Add(schema *arrow.Schema, columns []arrow.Array, rows int) {
	if schema.NumFields() == 0 {
		t.Rows += min(rows, t.Most-t.Rows)
		return
	}
	rows = min(rows, t.Most-t.Rows)
	s, last := t.sectionOf(schema), len(t.sections)-1
	switch {
	case last >= 0 && t.sections[last].like(s):
		s = t.sections[last]
	case last >= 0 && t.sections[last].rows == 0:
		t.sections[last] = s
	case last < 0 || rows > 0:
		t.sections = append(t.sections, s)
	}
	for c, a := range columns {
		col := &s.cols[c]
		for i := range rows {
			text := col.show(a, i, t.width)
			col.cells, col.widest = append(col.cells, text), max(col.widest, columnsOf(text))
		}
	}
	s.rows, t.Rows = s.rows+rows, t.Rows+rows
}

// AddRecord is Add for all columns of a record.
func (t *Table) AddRecord(rec arrow.Record) {
	columns := each.Slice(t.Pick(rec.Schema()), rec.Column)
	t.Add(rec.Schema(), columns, int(rec.NumRows()))
}

// sectionOf returns a section without rows.
func (t *Table) sectionOf(schema *arrow.Schema) *section {
	s := &section{of: schema.NumFields()}
	for _, i := range t.Pick(schema) {
		f := schema.Field(i)
		s.cols = append(s.cols, column{name: cut(shown(f.Name, t.width), t.width), typ: typeName(f), number: isNumber(f.Type), long: isLong(f.Type)})
	}
	return s
}

// like reports whether rows of another section belong to this one.
func (s *section) like(o *section) bool {
	return s.of == o.of && slices.EqualFunc(s.cols, o.cols, func(a, b column) bool { return a.name == b.name && a.typ == b.typ })
}

// show returns a value as it is shown in at most so many columns.
func (c *column) show(a arrow.Array, i, width int) string {
	text := cell(a, i, 4*width) // a character takes at most four bytes
	if c.typ == uuid && len(text) == 32 {
		text = strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
	}
	return cut(text, width)
}

// uuid is the name of a type that Arrow has as 16 bytes with a note.
const uuid = "uuid"

// typeName returns the type of a column. What is in a nested one is not said.
func typeName(f arrow.Field) string {
	if ext, _ := f.Metadata.GetValue("ARROW:extension:name"); ext == "arrow.uuid" {
		return uuid
	}
	t := f.Type
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	switch n := t.(type) {
	case arrow.ExtensionType:
		return n.ExtensionName()
	case arrow.NestedType:
		return n.Name()
	}
	return t.String()
}

// least returns the fewest columns in which the column is shown: numbers, times and the like are
// not cut.
func (c *column) least() int {
	if c.long {
		return min(c.wanted(), leastText)
	}
	return max(min(c.widest, mostWhole), min(columnsOf(c.name), leastText), min(columnsOf(c.typ), leastType))
}

// wanted returns how many columns show the column in full.
func (c *column) wanted() int { return max(c.widest, columnsOf(c.name), columnsOf(c.typ)) }

// fit returns the columns that are shown, with their widths. The first ones and the last ones are,
// since the last ones of a join are those of the IDs.
func (s *section) fit(width int) (shown []*column, widths []int, first int) {
	for n := len(s.cols); ; n-- {
		shown, widths, first = nil, nil, (n+1)/2
		need := between * (n - 1)
		if n < s.of {
			need += between + 1 // a column of ellipses
		}
		for i := range n {
			if i >= first {
				i += len(s.cols) - n
			}
			c := &s.cols[i]
			shown, widths = append(shown, c), append(widths, c.least())
			need += c.least()
		}
		if need <= width {
			grow(shown, widths, width-need)
			return shown, widths, first
		}
		if n == 1 {
			widths[0] = max(widths[0]-(need-width), 1)
			return shown, widths, first
		}
	}
}

// grow divides columns of a terminal among those that are cut, evenly.
func grow(shown []*column, widths []int, spare int) {
	for spare > 0 {
		var narrow []int
		for i, c := range shown {
			if widths[i] < c.wanted() {
				narrow = append(narrow, i)
			}
		}
		if len(narrow) == 0 {
			return
		}
		each := max(spare/len(narrow), 1)
		for _, i := range narrow {
			more := min(each, shown[i].wanted()-widths[i], spare)
			widths[i], spare = widths[i]+more, spare-more
		}
	}
}

// Print prints the rows, and then how many of how many rows and columns these are; of is -1 if
// the number of rows is unknown, and hint says how to choose other columns. Where the columns
// change, another table begins.
func (t *Table) Print(w io.Writer, of int64, hint string) error {
	var b strings.Builder
	some := ""
	for i, s := range t.sections {
		if some != "" {
			b.WriteString(strings.TrimPrefix(some, ", ") + "\n")
		}
		if i > 0 {
			b.WriteString("\n")
		}
		some = ""
		if n := s.print(&b, t.width); n < s.of {
			some = fmt.Sprintf(", %d of %s columns%s", n, words.Count(s.of), hint)
		}
	}
	rows := words.Things(t.Rows, "row")
	switch {
	case of > int64(t.Rows):
		rows = fmt.Sprintf("first %s of %s", words.Count(t.Rows), words.Things(of, "row"))
	case of < 0 && t.Full():
		rows = "first " + rows
	}
	_, err := fmt.Fprintf(w, "%s%s%s\n", b.String(), rows, some)
	return err
}

// print prints the rows, and returns how many columns it shows.
func (s *section) print(b *strings.Builder, width int) int {
	cols, widths, first := s.fit(width)
	line := func(gap, joint string, text func(i int) string) {
		var parts []string
		for i := range cols {
			parts = append(parts, text(i))
		}
		if len(cols) < s.of {
			parts = slices.Insert(parts, first, gap)
		}
		b.WriteString(strings.TrimRight(strings.Join(parts, joint), " ") + "\n")
	}
	row := func(text func(c *column) string) {
		line(ellipsis, " │ ", func(i int) string { return pad(cut(text(cols[i]), widths[i]), widths[i], cols[i].number) })
	}
	row(func(c *column) string { return c.name })
	row(func(c *column) string { return c.typ })
	line("─", "─┼─", func(i int) string { return strings.Repeat("─", widths[i]) })
	for r := range s.rows {
		row(func(c *column) string { return c.cells[r] })
	}
	return len(cols)
}

// pad fills a text with spaces: before it if it stands on the right.
func pad(s string, width int, right bool) string {
	spaces := strings.Repeat(" ", max(width-columnsOf(s), 0))
	if right {
		return spaces + s
	}
	return s + spaces
}
