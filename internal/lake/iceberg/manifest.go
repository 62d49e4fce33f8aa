package iceberg

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/avro"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// manifest is what the list of a snapshot says of a manifest. It is trusted: what manifests say of
// themselves, writers leave out or get wrong.
type manifest struct {
	path    string
	spec    *spec
	seq     int64 // the sequence number of what it adds
	deletes bool
	files   int64 // that live; -1: unknown
	bounds  []lake.Bound
}

// entry is a file in a manifest.
type entry struct {
	content int64 // 0: data, 1: deleted positions, 2: deleted keys
	path    string
	format  string
	spec    *spec
	values  []value // of the fields of spec
	rows    int64
	size    int64
	seq     int64
	of      string // the data file whose rows are deleted, if that is said
	offset  int64  // of a vector; -1: not said
	length  int64
	keys    []int32              // of deleted keys: ids of columns, ascending
	ranges  map[int32]valueRange // by the ids of columns
}

// valueRange is what a manifest says of the values of a column in a file.
type valueRange struct {
	least, most []byte
	nulls       int64 // -1: not said
}

// entries reads manifests, several at once, and calls yield for the entries of one after the other. It
// counts those whose partitions cannot satisfy holds.
func (t *Table) entries(ctx context.Context, manifests []*manifest, holds func([]lake.Bound) bool, yield func(*entry) error) (skipped int64, err error) {
	for some := range slices.Chunk(manifests, atOnce) {
		read := make([]contents, len(some))
		g, ctx := errgroup.WithContext(ctx)
		for i, m := range some {
			g.Go(func() (err error) {
				defer panics.Recover(fault.At{File: m.path}, &err)
				read[i], err = t.read(ctx, m, holds)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return 0, err
		}
		for _, c := range read {
			skipped += c.skipped
			for _, e := range c.entries {
				if err := yield(e); err != nil {
					return 0, err
				}
			}
		}
	}
	return skipped, nil
}

// contents are the entries of a manifest that are in the snapshot.
type contents struct {
	entries []*entry
	skipped int64
}

// atOnce is how many manifests are read at once.
const atOnce = 16

// records calls each for the records of an Avro file. One that is cut between two blocks is valid.
func (t *Table) records(ctx context.Context, path string, wanted func(id int) bool, each func(r *avro.Value) error) error {
	name, err := t.place(path)
	if err != nil {
		return placed(err, t.table.Location)
	}
	b, err := whole(ctx, t.src, name)
	if err == nil {
		err = t.avro.Read(b, wanted, each)
	}
	return placed(err, name)
}

// placed says where an error happened that does not say so itself.
func placed(err error, name string) error {
	if f := new(fault.Error); errors.As(err, &f) && f.At.File == "" {
		f.At.File = address.Redact(name)
	}
	return err
}

// manifests reads the list of manifests of the snapshot.
func (t *Table) manifests(ctx context.Context) (all []*manifest, err error) {
	s := t.snapshot
	if s == nil {
		return nil, nil
	}
	if len(s.Manifests) > 0 && len(t.meta.Specs) > 1 { // which of them, only headers of manifests say
		return nil, faults.Unsupported(fault.At{File: t.places.dir}, "a snapshot without a list of manifests, of a table with several partition specifications").
			WithHint("let the table's engine write a new snapshot")
	}
	for _, path := range s.Manifests {
		all = append(all, &manifest{path: path, spec: &t.meta.Specs[0], files: -1})
	}
	if s.List == "" {
		return all, nil
	}
	wanted := func(int) bool { return true }
	err = t.records(ctx, s.List, wanted, func(r *avro.Value) error {
		m := &manifest{path: text(r, 500), seq: integer(r, 515, 0), files: -1}
		if known(r.Value(519)) {
			return faults.Unsupported(fault.At{}, "an encrypted manifest")
		}
		if m.path == "" {
			return faults.Corrupt(fault.At{}, "a list of manifests, one of which has no path")
		}
		switch content := integer(r, 517, 0); content {
		case 0:
		case 1:
			m.deletes = true
		default:
			return faults.Unsupported(fault.At{}, "a manifest of content %d", content)
		}
		var err error
		if m.spec, err = t.spec(integer(r, 502, 0)); err != nil {
			return err
		}
		if added, existing := integer(r, 504, -1), integer(r, 505, -1); min(added, existing) >= 0 && max(added, existing) < math.MaxInt32 {
			m.files = added + existing
		}
		if v := r.Value(507); known(v) {
			m.bounds = t.summaries(m.spec, v.List)
		}
		all = append(all, m)
		return nil
	})
	if err == nil && len(all) == 0 && s.Summary["total-data-files"] != "" && s.Summary["total-data-files"] != "0" {
		err = faults.Corrupt(fault.At{File: address.Redact(s.List)}, "a list without manifests of a snapshot with %s files", strconv.Quote(s.Summary["total-data-files"]))
	}
	return all, err
}

func (t *Table) spec(id int64) (*spec, error) {
	for i := range t.meta.Specs {
		if t.meta.Specs[i].ID == id {
			return &t.meta.Specs[i], nil
		}
	}
	return nil, faults.Corrupt(fault.At{}, "files divided by the specification %d, which the table lacks", id)
}

// summaries returns what the list says of the partitions in a manifest: in the order of the fields.
func (t *Table) summaries(s *spec, list []avro.Value) (all []lake.Bound) {
	if len(list) != len(s.Fields) {
		return nil
	}
	for i := range s.Fields {
		f, r := &s.Fields[i], &list[i]
		null := r.Value(509)
		b := lake.Bound{NoNulls: known(null) && null.Int == 0}
		result := f.result()
		if lo, hi := r.Value(510), r.Value(511); known(lo) && known(hi) {
			least, ok := lake.ValueOf(result, lo.Bytes)
			most, too := lake.ValueOf(result, hi.Bytes)
			if ok && too {
				b.Least, b.Most = f.texts(&least, &most)
			}
		}
		all = t.noted(all, f, b)
	}
	return all
}

// noted adds what is known of the source of a field, if the table has that column.
func (t *Table) noted(all []lake.Bound, f *specField, b lake.Bound) []lake.Bound {
	i, ok := t.columns[f.Source]
	kind, _, _ := strings.Cut(f.Transform, "[")
	if !ok || !slices.Contains([]string{"identity", "truncate", "bucket", "year", "month", "day", "hour"}, kind) {
		return all // others, as void, may take values to NULL
	}
	b.Column = i
	for j := range all {
		if other := &all[j]; other.Column == i {
			other.NoNulls, other.AllNulls = other.NoNulls || b.NoNulls, other.AllNulls || b.AllNulls
			if other.Least+other.Most == "" {
				other.Least, other.Most = b.Least, b.Most
			}
			return all
		}
	}
	return append(all, b)
}

// read reads the entries of a manifest.
func (t *Table) read(ctx context.Context, m *manifest, holds func([]lake.Bound) bool) (c contents, err error) {
	ranges := t.ranges || m.deletes
	wanted := func(id int) bool {
		switch id {
		case 110, 121, 122, 125, 126, 127, 128, 129, 130:
			return ranges
		case 108, 109, 137, 132, 140:
			return false
		}
		return true
	}
	satisfies := map[string]bool{} // by partition
	err = t.records(ctx, m.path, wanted, func(r *avro.Value) error {
		e, err := t.entry(m, r)
		if e == nil || err != nil {
			return err
		}
		if holds != nil {
			key := e.partition()
			may, known := satisfies[key]
			if !known {
				may = holds(t.partitionBounds(e, nil))
				satisfies[key] = may
			}
			if !may {
				c.skipped++
				return nil
			}
		}
		e.ranges = rangesOf(r.Value(2))
		c.entries = append(c.entries, e)
		return nil
	})
	if got := c.skipped + int64(len(c.entries)); err == nil && m.files >= 0 && got != m.files {
		err = faults.Wanted(faults.Corrupt(fault.At{File: m.path}, "files of a manifest"), strconv.FormatInt(m.files, 10), strconv.FormatInt(got, 10))
	}
	return c, err
}

// entry returns an entry of a manifest, without ranges; nil: the snapshot has removed the file.
func (t *Table) entry(m *manifest, of *avro.Value) (*entry, error) {
	status, r := integer(of, 0, -1), of.Value(2)
	if status == 2 {
		return nil, nil
	}
	if !known(r) || status < 0 || status > 2 {
		return nil, faults.Corrupt(fault.At{}, "a manifest, with an entry of status %d or without a file", status)
	}
	e := &entry{
		content: integer(r, 134, 0), path: text(r, 100), format: strings.ToUpper(text(r, 101)), spec: m.spec, rows: integer(r, 103, -1),
		size: integer(r, 104, -1), seq: m.seq, of: text(r, 143), offset: integer(r, 144, -1), length: integer(r, 145, -1),
	}
	if seq := of.Value(3); known(seq) {
		e.seq = seq.Int
	} else if status != 1 && m.seq != 0 {
		return nil, faults.Corrupt(fault.At{}, "a manifest, with an old file without its sequence number")
	}
	if known(r.Value(131)) {
		return nil, faults.Unsupported(fault.At{}, "the encrypted file %s", strconv.Quote(address.Redact(e.path)))
	}
	if e.path == "" || e.rows < 0 || e.size < 0 {
		return nil, faults.Corrupt(fault.At{}, "a manifest, with a file of path %s, %d rows and %d bytes", strconv.Quote(address.Redact(e.path)), e.rows, e.size)
	}
	if (e.content != 0) != m.deletes {
		return nil, faults.Corrupt(fault.At{}, "a manifest, with a file of content %d that the list of manifests contradicts", e.content)
	}
	if ids := r.Value(135); known(ids) && e.content == 2 {
		for i := range ids.List {
			e.keys = append(e.keys, int32(ids.List[i].Int))
		}
		slices.Sort(e.keys)
		e.keys = slices.Compact(e.keys)
	}
	partition := r.Value(102)
	for i := range m.spec.Fields {
		f := &m.spec.Fields[i]
		of := partition.Value(f.ID)
		if of == nil && f.Transform != "void" {
			return nil, faults.Corrupt(fault.At{}, "a manifest, with a file without the value of partition field %d", f.ID)
		}
		e.values = append(e.values, ofAvro(of))
	}
	return e, nil
}

// rangesOf returns what a manifest says of the columns of a file, by their ids.
func rangesOf(r *avro.Value) map[int32]valueRange {
	all := map[int32]valueRange{}
	set := func(list, key, val int, put func(*valueRange, *avro.Value)) {
		v := r.Value(list)
		if !known(v) {
			return
		}
		for i := range v.List {
			k, of := v.List[i].Value(key), v.List[i].Value(val)
			if !known(k) || !known(of) {
				continue
			}
			one, ok := all[int32(k.Int)]
			if !ok {
				one.nulls = -1
			}
			put(&one, of)
			all[int32(k.Int)] = one
		}
	}
	set(125, 126, 127, func(b *valueRange, v *avro.Value) { b.least = slices.Clone(v.Bytes) })
	set(128, 129, 130, func(b *valueRange, v *avro.Value) { b.most = slices.Clone(v.Bytes) })
	set(110, 121, 122, func(b *valueRange, v *avro.Value) { b.nulls = v.Int })
	return all
}

// known reports whether a field is there and not null.
func known(v *avro.Value) bool { return v != nil && v.Kind != avro.Null }

// integer returns a field that is one, or else the given value.
func integer(r *avro.Value, id int, otherwise int64) int64 {
	if v := r.Value(id); v != nil && (v.Kind == avro.Int || v.Kind == avro.Long) {
		return v.Int
	}
	return otherwise
}

// text returns a field that is a string, in its own memory; empty: there is none.
func text(r *avro.Value, id int) string {
	if v := r.Value(id); v != nil {
		return string(v.Bytes)
	}
	return ""
}
