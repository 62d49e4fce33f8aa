package joins_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// leaf is a column, perhaps in structs, with its values as text.
type leaf struct {
	path  []string
	dt    arrow.DataType
	cells []string
	json  bool // the cells are JSON, as jsonOf draws them
}

// array makes the column's array. The caller releases it.
func (l leaf) array(t testing.TB) arrow.Array {
	t.Helper()
	if !l.json {
		return arrayOf(t, l.dt, l.cells)
	}
	cells := make([]string, len(l.cells))
	for i, v := range l.cells {
		if cells[i] = v; v == null {
			cells[i] = "null"
		}
	}
	return fromJSON(t, l.dt, "["+strings.Join(cells, ",")+"]")
}

// columnar is a table under construction.
type columnar struct {
	leaves []leaf
	void   map[string][]bool // rows in which a struct is NULL, by its path
	rows   int
}

// subset returns the table with some of its rows.
func (d columnar) subset(rows []int) columnar {
	out := columnar{void: map[string][]bool{}, rows: len(rows)}
	for _, l := range d.leaves {
		cells := make([]string, len(rows))
		for i, r := range rows {
			cells[i] = l.cells[r]
		}
		out.leaves = append(out.leaves, leaf{l.path, l.dt, cells, l.json})
	}
	for p, v := range d.void {
		for _, r := range rows {
			out.void[p] = append(out.void[p], v[r])
		}
	}
	return out
}

// between returns the table's rows from lo to hi, exclusive.
func (d columnar) between(lo, hi int) columnar {
	rows := make([]int, hi-lo)
	for i := range rows {
		rows[i] = lo + i
	}
	return d.subset(rows)
}

// record makes a record of the table. The caller releases it.
func (d columnar) record(t testing.TB) arrow.Record {
	t.Helper()
	fields, arrs := d.fields(t, nil)
	rec := array.NewRecord(arrow.NewSchema(fields, nil), arrs, int64(d.rows))
	for _, a := range arrs {
		a.Release()
	}
	return rec
}

// fields makes the columns of the struct at a path.
func (d columnar) fields(t testing.TB, in []string) (fields []arrow.Field, arrs []arrow.Array) {
	for _, l := range d.leaves {
		if len(l.path) <= len(in) || !slices.Equal(l.path[:len(in)], in) {
			continue
		}
		name := l.path[len(in)]
		if slices.ContainsFunc(fields, func(f arrow.Field) bool { return f.Name == name }) {
			continue
		}
		a := arrow.Array(nil)
		if path := l.path[:len(in)+1]; len(path) == len(l.path) {
			a = l.array(t)
		} else {
			a = d.structure(t, path)
		}
		fields, arrs = append(fields, arrow.Field{Name: name, Type: a.DataType(), Nullable: true}), append(arrs, a)
	}
	return fields, arrs
}

func (d columnar) structure(t testing.TB, path []string) arrow.Array {
	fields, arrs := d.fields(t, path)
	sb := array.NewBooleanBuilder(memory.DefaultAllocator) // its validity is the struct's
	defer sb.Release()
	for _, void := range d.void[strings.Join(path, "\x00")] {
		if void {
			sb.AppendNull()
		} else {
			sb.Append(true)
		}
	}
	valid := sb.NewArray()
	defer valid.Release()
	var children []arrow.ArrayData
	for _, a := range arrs {
		children = append(children, a.Data())
		defer a.Release()
	}
	data := array.NewData(arrow.StructOf(fields...), d.rows, valid.Data().Buffers()[:1], children, valid.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// part is one column of a key.
type part struct {
	family
	log, ids leaf
}

// recipe is a case of a join: what to join, and how its inputs are stored.
type recipe struct {
	parts           []part
	rule            string
	logs, ids       columnar
	where, idWhere  condition // on the log, and on the IDs
	logForm, idForm form
	on              string
	logKey, idKey   [][]string
	sample          float64 // a share of the keys of the IDs; 0: all
	sampleLog       bool    // of the log's, too
	big             string  // ids or log: that side needs more than the least memory with which a shuffle works
}

// draw makes the case for a seed.
func draw(seed uint64) *recipe {
	r := rand.New(rand.NewPCG(seed, 7))
	c := &recipe{logForm: drawForm(r, false), idForm: drawForm(r, true)}
	if r.IntN(4) == 0 {
		c.rule = choose(r, "trim", "lower", "trim,lower", "uuid", "trim,uuid", "lower,uuid")
	}
	var known []family
	for _, f := range families() {
		text := !source.IsText(c.idForm.format) || f.text != nil
		if text && (f.rule == "" && c.rule == "" || f.rule != "" && c.rule != "" && (f.rule == "uuid") == strings.Contains(c.rule, "uuid")) {
			known = append(known, f)
		}
	}
	if r.IntN(10) == 0 {
		c.big = choose(r, "ids", "log")
	}
	c.logs.void, c.ids.void = map[string][]bool{}, map[string][]bool{}
	for i := range choose(r, 1, 1, 1, 2, 3) {
		f := known[r.IntN(len(known))]
		if c.rule == "" && r.IntN(4) == 0 { // the usual key, which has code paths of its own
			f = families()[0]
		}
		if c.rule != "" && i > 0 { // beside the key under the rule, one that the rule does not change
			f = families()[choose(r, 0, 4)]
		}
		if c.idForm.format == dataset.Lines && i > 0 {
			break
		}
		c.parts = append(c.parts, c.newPart(r, f, i))
	}
	c.fill(r)
	if c.ids.rows == 0 && c.idForm.format == dataset.NDJSON { // without rows it has no columns
		c.idForm.format = dataset.CSV
	}
	for _, p := range c.parts {
		c.logForm.mixed = c.logForm.mixed && sameInParquet(p.log.dt)
		c.idForm.mixed = c.idForm.mixed && sameInParquet(p.ids.dt)
		c.logForm.table = c.logForm.table && inDelta(p.log.dt)
		c.idForm.table = c.idForm.table && inDelta(p.ids.dt)
	}
	c.payload(r)
	c.ids = c.idForm.fit(c.ids)
	for _, p := range c.parts {
		c.logKey, c.idKey = append(c.logKey, p.log.path), append(c.idKey, p.ids.path)
	}
	c.on = onOf(c.logKey, c.idKey)
	return c
}

// newPart draws the types and names of a part of the key.
func (c *recipe) newPart(r *rand.Rand, f family, i int) part {
	draw := func() (log, ids arrow.DataType) {
		log, _ = f.types(r, c.logForm.dictionaries())
		_, ids = f.types(r, c.idForm.dictionaries())
		return log, ids
	}
	log, ids := draw()
	for try := 0; try < 20 && (c.logForm.table && !inDelta(log) || c.idForm.table && !inDelta(ids)); try++ { // or there would be few tables
		log, ids = draw()
	}
	for f.name == "timestamp" && (log.(*arrow.TimestampType).TimeZone == "") != (ids.(*arrow.TimestampType).TimeZone == "") {
		_, ids = f.types(r, false)
	}
	if source.IsText(c.idForm.format) {
		if log.ID() == arrow.FLOAT32 { // as which text would be read: not all values fit
			log = arrow.PrimitiveTypes.Float64
		}
		ids = f.text(log)
	}
	name := func(s string) []string {
		return choose(r, []string{s}, []string{s}, []string{s}, []string{s + `, "odd".=`}, []string{"u" + s, "id"}, []string{"u" + s, "v w", "id"})
	}
	logPath, idPath := name(fmt.Sprint("k", i)), name(fmt.Sprint("i", i))
	if r.IntN(2) == 0 {
		idPath = logPath
	}
	if source.IsText(c.idForm.format) && len(idPath) > 1 {
		idPath = []string{fmt.Sprint("i", i)}
	}
	return part{f, leaf{path: logPath, dt: log}, leaf{path: idPath, dt: ids}}
}

// fill draws the keys of both sides from common tuples, with NULLs.
func (c *recipe) fill(r *rand.Rand) {
	tuples := make([][]string, choose(r, 1, 3, 8, 25, 25, 100, 1000))
	switch c.big {
	case "ids":
		tuples = make([][]string, choose(r, 20, 200))
	case "log":
		tuples = make([][]string, 4000)
	}
	for i := range tuples {
		for _, p := range c.parts {
			v := p.value(r)
			for try := 0; try < 10 && !(p.holds(p.log.dt, v) && p.holds(p.ids.dt, v)); try++ {
				if try > 2 && r.IntN(8) == 0 && (p.holds(p.log.dt, v) || p.holds(p.ids.dt, v)) {
					break // of one side only
				}
				v = p.value(r)
			}
			tuples[i] = append(tuples[i], v)
		}
	}
	sizes := []int{0, 1, 5, 20, 60, 60, 200, 200}
	n, m := choose(r, sizes...), choose(r, sizes...)
	if r.IntN(8) == 0 && len(tuples) >= 100 {
		n, m = n*choose(r, 1, 10), m*choose(r, 1, 10)
	}
	switch c.big {
	case "ids":
		n, m = 20+r.IntN(50), 200+r.IntN(400)
	case "log":
		n, m = 3000+r.IntN(3000), 100+r.IntN(400)
	}
	heavy := r.IntN(4) == 0
	side := func(d *columnar, rows int, of func(*part) *leaf) {
		var mine [][]string
		for _, tuple := range tuples {
			ok := true
			for i := range c.parts {
				ok = ok && c.parts[i].holds(of(&c.parts[i]).dt, tuple[i])
			}
			if ok {
				mine = append(mine, tuple)
			}
		}
		nulls := choose(r, 0, 0, 0.1, 0.5)
		d.rows = rows
		for range rows {
			for i := range c.parts {
				v := null
				if len(mine) > 0 && r.Float64() >= nulls {
					v = "" // drawn below
				}
				of(&c.parts[i]).cells = append(of(&c.parts[i]).cells, v)
			}
			if len(mine) == 0 {
				continue
			}
			tuple := mine[r.IntN(len(mine))]
			if heavy && r.IntN(3) == 0 {
				tuple = mine[0]
			}
			for i := range c.parts {
				l := of(&c.parts[i])
				if at := len(l.cells) - 1; l.cells[at] == "" {
					l.cells[at] = c.spelled(r, &c.parts[i], l == &c.parts[i].log, tuple[i])
				}
			}
		}
		for i := range c.parts {
			l := of(&c.parts[i])
			d.leaves = append(d.leaves, *l)
			for depth := 1; depth < len(l.path); depth++ {
				p := strings.Join(l.path[:depth], "\x00")
				for range rows {
					d.void[p] = append(d.void[p], nulls > 0 && r.IntN(10) == 0)
				}
			}
		}
	}
	side(&c.logs, n, func(p *part) *leaf { return &p.log })
	side(&c.ids, m, func(p *part) *leaf { return &p.ids })
}

// spelled writes a key value in one of the ways that are equal under the rule.
func (c *recipe) spelled(r *rand.Rand, p *part, inLog bool, v string) string {
	dt := p.ids.dt
	if inLog {
		dt = p.log.dt
	}
	if p.rule != "uuid" || dt.ID() == arrow.FIXED_SIZE_BINARY {
		return v
	}
	if inLog && r.IntN(10) == 0 {
		return choose(r, "no uuid", "", v+"0")
	}
	if strings.Contains(c.rule, "trim") {
		v = choose(r, v, " "+v, v+"\t")
	}
	return v
}

// payload adds columns beside the key, some of whose names clash.
func (c *recipe) payload(r *rand.Rand) {
	if c.idForm.format != dataset.Lines {
		c.ids.number(c.idForm, "m")
		c.ids.more(r, c.idForm)
		if c.big == "ids" {
			l := leaf{path: []string{"wide"}, dt: arrow.BinaryTypes.String}
			for range c.ids.rows {
				l.cells = append(l.cells, strings.Repeat(choose(r, "x", "yz", "abc"), 1000+r.IntN(1000)))
			}
			c.ids.leaves = append(c.ids.leaves, l)
		}
	}
	c.logs.number(c.logForm, "n")
	c.logs.more(r, c.logForm)
	for _, d := range []*columnar{&c.logs, &c.ids} {
		r.Shuffle(len(d.leaves), func(i, k int) { d.leaves[i], d.leaves[k] = d.leaves[k], d.leaves[i] })
	}
}

// number adds a column that numbers the rows.
func (d *columnar) number(f form, name string) {
	l := leaf{path: []string{name}, dt: arrow.PrimitiveTypes.Int64}
	if source.IsText(f.format) {
		l.dt = arrow.BinaryTypes.String
	}
	for i := range d.rows {
		l.cells = append(l.cells, fmt.Sprint(i))
	}
	d.leaves = append(d.leaves, l)
}

// more adds columns of any type.
func (d *columnar) more(r *rand.Rand, f form) {
	p, b := arrow.PrimitiveTypes, arrow.BinaryTypes
	wide := choose(r, 3, 3, 3, 300, 3000)
	kinds := []struct {
		dt    arrow.DataType
		value func() string
	}{
		{b.String, func() string { return choose(r, "", "p", "q q", strings.Repeat("x", r.IntN(wide))) }},
		{p.Int32, func() string { return fmt.Sprint(r.IntN(9) - 4) }},
		{p.Float64, func() string { return drawFloat(r) }},
		{arrow.FixedWidthTypes.Boolean, func() string { return choose(r, "true", "false") }},
		{&arrow.Decimal128Type{Precision: 20, Scale: 7}, func() string { return fmt.Sprintf("%d/%d", r.IntN(1e9), r.IntN(8)) }},
		{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, func() string { return fmt.Sprintf("%d.%09d", r.Int64N(4e9)-2e9, r.IntN(1e6)*1000) }},
		{arrow.ListOf(p.Int32), func() string { return choose(r, "[]", "[1]", "[2,null,3]") }},
		{coded(r, f.dictionaries(), b.String), func() string { return choose(r, "red", "green", "") }},
	}
	others := payloadTypes()
	names := []string{"v", "w", "m", "n", "n_ids", "v_ids", "k0", "i0", "k1"}
	r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	for range r.IntN(5) {
		name := names[0]
		names = names[1:]
		if slices.ContainsFunc(d.leaves, func(l leaf) bool { return l.path[0] == name }) {
			continue
		}
		kind := kinds[r.IntN(len(kinds))]
		if source.IsText(f.format) {
			kind = kinds[0]
		}
		l := leaf{path: []string{name}, dt: kind.dt}
		if !source.IsText(f.format) && r.IntN(2) == 0 {
			if dt := others[r.IntN(len(others))]; f.holds(dt) {
				l.dt, l.json = dt, true
				kind.value = func() string { return jsonOf(r, dt) }
			}
		}
		for range d.rows {
			v := null
			if r.IntN(6) > 0 {
				v = kind.value()
			}
			l.cells = append(l.cells, v)
		}
		d.leaves = append(d.leaves, l)
	}
	// A column next to the key, in the same struct.
	for i := range d.leaves {
		if at := d.leaves[i].path; len(at) > 1 && r.IntN(2) == 0 {
			l := leaf{path: append(slices.Clone(at[:len(at)-1]), "x"), dt: p.Int32}
			for range d.rows {
				l.cells = append(l.cells, choose(r, null, "1", "2"))
			}
			d.leaves = append(d.leaves, l)
			break
		}
	}
}

// integer reports whether an exact filter can hold the key.
func (c *recipe) integer() bool { return len(c.parts) == 1 && c.parts[0].name == "integer" }

// onOf writes the pairs of key columns in the syntax of Options.On.
func onOf(log, ids [][]string) string {
	path := func(p []string) string {
		var quoted []string
		for _, n := range p {
			if strings.ContainsAny(n, ` .,="`) {
				n = `"` + strings.ReplaceAll(n, `"`, `""`) + `"`
			}
			quoted = append(quoted, n)
		}
		return strings.Join(quoted, ".")
	}
	var out []string
	for i := range log {
		if slices.Equal(log[i], ids[i]) {
			out = append(out, path(log[i]))
		} else {
			out = append(out, path(log[i])+"="+path(ids[i]))
		}
	}
	return strings.Join(out, ",")
}

// shared reports whether a part of the key appears once in the answer.
func (p *part) shared() bool { return len(p.log.path) == 1 && slices.Equal(p.log.path, p.ids.path) }

// String describes the case.
func (c *recipe) String() string {
	var parts []string
	for _, p := range c.parts {
		parts = append(parts, fmt.Sprintf("%s %s=%s", p.name, p.log.dt, p.ids.dt))
	}
	return fmt.Sprintf("on %s (%s), rule %q, log of %d rows as %v, %d IDs as %v", c.on, strings.Join(parts, ", "), c.rule, c.logs.rows, c.logForm, c.ids.rows, c.idForm)
}
