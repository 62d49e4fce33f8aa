package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/hive"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Table is a snapshot of a table.
type Table struct {
	src      storage.Source
	meta     *metadata
	snapshot *snapshot // nil: the table has none
	table    *lake.Table
	columns  map[int32]int // positions, by id
	places   places
	granted  bool // files are read with what the catalog grants
	avro     avro.Reader
	ranges   bool // bounds are wanted
}

// Open reads the metadata of the snapshot that the name means. ranges: files are to have Bounds.
func Open(ctx context.Context, src storage.Source, n lake.Name, ranges bool) (*Table, error) {
	t := &Table{src: src, ranges: ranges, columns: map[int32]int{}}
	at, err := t.locate(ctx, n)
	if err != nil {
		return nil, err
	}
	s, schema, err := t.meta.find(&n)
	if err != nil {
		return nil, err
	}
	if t.snapshot = s; s != nil && s.List == "" && len(s.Manifests) == 0 && t.meta.Format > 1 {
		return nil, faults.Corrupt(at, "snapshot %d without a list of manifests", s.ID)
	}
	columns, err := schema.columns(t.meta.Properties["schema.name-mapping.default"])
	switch {
	case errors.Is(err, fault.ErrUnsupported):
		return nil, fmt.Errorf("%s: %w", at.File, err)
	case err != nil:
		e := faults.Corrupt(at, "the schema of an Iceberg table")
		e.Err = err
		return nil, e
	}
	for i := range columns {
		t.columns[columns[i].ID] = i
	}
	t.table = &lake.Table{Kind: "iceberg", Location: t.places.dir, Version: "none", Columns: columns, ByID: true, Widens: true}
	if s != nil {
		t.table.Version = strconv.FormatInt(s.ID, 10)
	}
	if t.granted {
		t.table.Catalog = n.Location
	}
	return t, t.relocate(ctx)
}

// Table returns what holds for all files.
func (t *Table) Table() *lake.Table { return t.table }

// Files yields the files of the snapshot until yield returns an error, which Files returns. Files whose
// partitions cannot satisfy holds, which must be safe for concurrent use, are counted, unless there would be
// none.
func (t *Table) Files(ctx context.Context, holds func([]lake.Bound) bool, yield func(*lake.File) error) (skipped int64, err error) {
	all, err := t.manifests(ctx)
	if err != nil {
		return 0, err
	}
	var data, deletes, excluded []*manifest
	for _, m := range all {
		switch may := holds == nil || holds(m.bounds); {
		case m.deletes && may:
			deletes = append(deletes, m)
		case m.deletes: // they are of the same partitions as the rows
		case may || m.files < 0:
			data = append(data, m)
		default:
			excluded, skipped = append(excluded, m), skipped+m.files
		}
	}
	d := deletions{t: t, vectors: map[string]*entry{}, of: map[string][]*entry{}}
	if _, err := t.entries(ctx, deletes, nil, d.add); err != nil {
		return 0, err
	}
	seen := map[string]bool{}
	file := func(e *entry) error {
		if seen[e.path] {
			return faults.Corrupt(fault.At{File: t.places.dir}, "%s is twice in snapshot %d of the table", strconv.Quote(address.Redact(e.path)), t.snapshot.ID)
		}
		seen[e.path] = true
		f, err := t.file(e, &d)
		if err != nil {
			return placed(err, e.path)
		}
		return yield(f)
	}
	n, err := t.entries(ctx, data, holds, file)
	if skipped += n; err != nil || skipped == 0 || len(seen) > 0 {
		return skipped, err
	}
	_, err = t.entries(ctx, append(data, excluded...), nil, func(e *entry) error { // for its columns
		return cmp.Or(file(e), errOne)
	})
	if errors.Is(err, errOne) {
		err = nil
	}
	return skipped - 1, err
}

// errOne ends a search.
var errOne = errors.New("one file is enough")

// file returns what the metadata says of a data file.
func (t *Table) file(e *entry, d *deletions) (*lake.File, error) {
	name, err := t.place(e.path)
	if err != nil {
		return nil, err
	}
	if e.format != "PARQUET" {
		return nil, faults.Unsupported(fault.At{}, "a data file of format %s", strconv.Quote(e.format)).WithHint("rewrite the table's files as Parquet")
	}
	f := &lake.File{Object: storage.Object{Name: name, Size: e.size}}
	for i := range e.spec.Fields {
		field := &e.spec.Fields[i]
		at, ok := t.columns[field.Source]
		if !ok || field.Transform != "identity" {
			continue
		}
		c, v := &t.table.Columns[at], &e.values[i]
		p := hive.Part{Name: c.Name, Null: v.kind == 'n'}
		if !p.Null {
			if p.Text, ok = v.text(c.Type); !ok && c.Type != "string" {
				p.Text = v.key() // which is no value of the type: files that lack the column are refused
			} else if !ok {
				return nil, faults.Unsupported(fault.At{Column: c.Name}, "a file of a partition whose value has no text").
					WithHint("write the rows to a table that is divided by other columns")
			}
		}
		f.Values = append(f.Values, p)
	}
	if t.ranges {
		f.Bounds = func() []lake.Bound { return t.bounds(e) }
	}
	f.Deleted, err = d.find(e)
	return f, err
}

// bounds returns what is known of the columns of a file, by its partition and by its statistics.
func (t *Table) bounds(e *entry) (all []lake.Bound) {
	for id, r := range e.ranges {
		i, ok := t.columns[id]
		if !ok || len(t.table.Columns[i].Children) > 0 {
			continue
		}
		c := &t.table.Columns[i]
		b := lake.Bound{Column: i, NoNulls: r.nulls == 0, AllNulls: r.nulls == e.rows && e.rows > 0}
		least, ok := ofBytes(c.Type, r.least)
		most, too := ofBytes(c.Type, r.most)
		if ok && too && r.least != nil && r.most != nil {
			b.Least, b.Most = texts(c.Type, &least, &most)
		}
		all = append(all, b)
	}
	return t.partitionBounds(e, all)
}

// partitionBounds adds what the partition of a file says of its columns.
func (t *Table) partitionBounds(e *entry, all []lake.Bound) []lake.Bound {
	for i := range e.spec.Fields {
		f, v := &e.spec.Fields[i], &e.values[i]
		b := lake.Bound{NoNulls: v.kind != 'n', AllNulls: v.kind == 'n'}
		if b.NoNulls {
			b.Least, b.Most = f.texts(v, v)
		}
		all = t.noted(all, f, b)
	}
	return all
}

// deletions are the delete files of a snapshot.
type deletions struct {
	t       *Table
	vectors map[string]*entry   // by the path of their data file
	of      map[string][]*entry // files of positions and of keys, by partition, and by data file if they have but one
	anyone  []*entry            // files of keys of all partitions
}

// pathID is the id of the column of files of positions that names data files.
const pathID = 2147483546

// add notes an entry of a manifest of deletes.
func (d *deletions) add(e *entry) error {
	at := fault.At{File: address.Redact(e.path)}
	switch {
	case e.content == 2 && !slices.ContainsFunc(e.spec.Fields, func(f specField) bool { return f.Transform != "void" }):
		d.anyone = append(d.anyone, e)
	case e.content == 2:
		key := e.partition()
		d.of[key] = append(d.of[key], e)
	case e.content != 1:
		return faults.Unsupported(at, "a delete file of content %d", e.content)
	case e.format == "PARQUET":
		key := e.partition()
		if least, most := e.names(); least == most && strings.HasSuffix(least, ".parquet") { // else it may be cut
			key += least
		}
		d.of[key] = append(d.of[key], e)
	case e.format != "PUFFIN":
		return faults.Unsupported(at, "a delete file of format %s", strconv.Quote(e.format)).WithHint("compact the table's delete files")
	case e.of == "": // without it, rows would come back
		return faults.Corrupt(at, "a deletion vector that names no data file")
	case d.vectors[e.of] != nil:
		return faults.Corrupt(at, "a second deletion vector of %s", strconv.Quote(address.Redact(e.of)))
	case e.offset < 0 || e.length < 12 || e.length > largest: // with length, magic and checksum
		return faults.Corrupt(at, "a deletion vector of %d bytes at %d", e.length, e.offset)
	default:
		d.vectors[e.of] = e
	}
	return nil
}

// partition identifies the partition of a file.
func (e *entry) partition() string {
	var b strings.Builder
	fmt.Fprint(&b, e.spec.ID)
	for i := range e.values {
		b.WriteString(" " + e.values[i].key())
	}
	b.WriteString(" of ")
	return b.String()
}

// find returns what says which rows of a data file are deleted. A vector replaces files of positions.
// All are of the file's partition, and not older than it; files of keys are younger.
func (d *deletions) find(e *entry) (*lake.Deleted, error) {
	key := e.partition()
	of := slices.Concat(d.anyone, d.of[key], d.of[key+e.path])
	for _, k := range of {
		if k.content == 2 && k.seq > e.seq {
			return nil, faults.Unsupported(fault.At{}, "rows that are deleted by the values of columns (equality deletes, as in %s)", strconv.Quote(address.Redact(k.path))).
				WithHint("compact the table, as with Spark: CALL catalog.system.rewrite_data_files(table => 'db.name', options => map('delete-file-threshold', '1'))")
		}
	}
	if v := d.vectors[e.path]; v != nil {
		if v.seq < e.seq {
			return nil, faults.Corrupt(fault.At{File: address.Redact(v.path)}, "a deletion vector that is older than its data file")
		}
		place, err := d.t.place(v.path)
		return &lake.Deleted{Place: place, Offset: v.offset, Size: v.length - 8, Count: v.rows}, err
	}
	var in []lake.Positions
	for _, p := range of {
		least, most := p.names()
		if p.content != 1 || p.seq < e.seq || most != "" && (e.path < least || e.path > most && !strings.HasPrefix(e.path, most)) {
			continue // some writers cut the greatest name, and leave it less than what it stands for
		}
		place, err := d.t.place(p.path)
		if err != nil {
			return nil, err
		}
		in = append(in, lake.Positions{Place: place, Size: p.size, Rows: p.rows})
	}
	if in == nil {
		return nil, nil
	}
	slices.SortFunc(in, func(a, b lake.Positions) int { return cmp.Compare(a.Place, b.Place) })
	return &lake.Deleted{Of: e.path, In: in}, nil
}

// names returns the bounds of the data files of which a file of positions has some; empty: they are not known.
func (e *entry) names() (least, most string) {
	if e.of != "" {
		return e.of, e.of
	}
	if r := e.ranges[pathID]; r.least != nil && r.most != nil {
		return string(r.least), string(r.most)
	}
	return "", ""
}
