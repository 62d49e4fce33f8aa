package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

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
	d := deletions{t: t, vectors: map[string]*entry{}, of: map[string][]*entry{}, in: map[string][]*keySet{}}
	if _, err := t.entries(ctx, deletes, nil, d.add); err != nil {
		return 0, err
	}
	d.sort()
	t.ranges = t.ranges || len(d.in) > 0
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
		p := hive.Part{Name: c.Name, Null: v.Kind == 'n'}
		if !p.Null {
			if p.Text, ok = v.Text(c.Type); !ok && c.Type != "string" {
				p.Text = key(v) // which is no value of the type: files that lack the column are refused
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
		least, ok := lake.ValueOf(c.Type, r.least)
		most, too := lake.ValueOf(c.Type, r.most)
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
		b := lake.Bound{NoNulls: v.Kind != 'n', AllNulls: v.Kind == 'n'}
		if b.NoNulls {
			b.Least, b.Most = f.texts(v, v)
		}
		all = t.noted(all, f, b)
	}
	return all
}
