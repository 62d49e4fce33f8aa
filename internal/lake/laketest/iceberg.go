package laketest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go"
)

// Iceberg is an Iceberg table that is being written. Fields may be changed between two commits.
type Iceberg struct {
	Table               // its directory and files; the methods below replace those of the log
	Location   string   // as metadata has it: the directory, unless it is set before the first commit
	Format     int      // 1 to 3
	Columns    []Column // a change is a new schema
	By         []By     // a change is a new specification; IDs tell its fields apart
	Properties map[string]string
	Gzip       bool // of metadata
	Keep       bool // all delete files stay, also those that no longer apply
	// Edit changes what is written: the "metadata", "spec", the "list schema" and each "list" record, the
	// "entry schema" and each "entry". nil: nothing.
	Edit func(what string, of map[string]any)

	schemas, specs []any
	files          map[string]*IcebergFile // those that live, by name
	manifests      []*manifest
	deletes        []*entry
	snapshots, log []any
}

// Column is a column of an Iceberg table.
type Column struct {
	ID       int    `json:"id"`
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Type     any    `json:"type"` // Iceberg's name of one, or an object
	Default  any    `json:"initial-default,omitempty"`
}

// By is a field that divides an Iceberg table.
type By struct {
	Source    int    `json:"source-id"`
	ID        int    `json:"field-id"`
	Transform string `json:"transform"`
	Name      string `json:"name"`
}

// IcebergFile is a data file of an Iceberg table.
type IcebergFile struct {
	Name    string
	Size    int
	Rows    int64
	Deleted []int64
	Values  []any // of the table's By
	spec    int
}

// IcebergKeys is a file of keys of deleted rows.
type IcebergKeys struct {
	Name   string
	Size   int
	Rows   int64
	IDs    []int             // of the columns of keys
	Spec   int               // -1: the newest
	Values []any             // of its By: the partition
	Bounds map[int][2][]byte // by the ids of columns
	Nulls  int               // in each of these
}

// removed is a file that a commit removes.
type removed struct{ *IcebergFile }

// entry is a file in a manifest.
type entry struct {
	name     string
	file     map[string]any
	spec     int
	seq, by  int64
	rows     map[string][]int64 // of a delete file: positions, by the names of data files
	now, old bool               // added and removed by this commit
}

type manifest struct {
	name     string
	deletes  bool
	spec     int
	seq, len int64
	entries  []*entry
}

// IcebergType returns Iceberg's name of a type, a string or an object in JSON; ok is false if it has none.
// next is the id of the next part, which it changes; mapped has the name mapping of parts.
func IcebergType(dt arrow.DataType, next *int) (name any, mapped []any, ok bool) {
	switch t := dt.(type) {
	case *arrow.TimestampType:
		ok = t.Unit == arrow.Microsecond && (t.TimeZone == "" || t.TimeZone == "UTC")
		return map[bool]string{true: "timestamptz", false: "timestamp"}[t.TimeZone != ""], nil, ok
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal(%d, %d)", t.Precision, t.Scale), nil, t.Scale >= 0
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed[%d]", t.ByteWidth), nil, true
	case *arrow.StructType:
		fields, mapped, ok := icebergColumns(t.Fields(), next)
		return map[string]any{"type": "struct", "fields": fields}, mapped, ok
	case *arrow.ListType:
		id := *next
		*next++
		of, parts, ok := IcebergType(t.Elem(), next)
		return map[string]any{"type": "list", "element-id": id, "element": of, "element-required": false},
			[]any{map[string]any{"field-id": id, "names": []string{"element"}, "fields": parts}}, ok
	}
	s, ok := map[arrow.Type]string{
		arrow.INT32: "int", arrow.INT64: "long", arrow.FLOAT32: "float", arrow.FLOAT64: "double", arrow.TIME64: "time",
		arrow.STRING: "string", arrow.BINARY: "binary", arrow.BOOL: "boolean", arrow.DATE32: "date",
	}[dt.ID()]
	return s, nil, ok
}

func icebergColumns(fields []arrow.Field, next *int) (all []Column, mapped []any, ok bool) {
	ids := *next
	*next += len(fields)
	ok = true
	for i, f := range fields {
		t, parts, has := IcebergType(f.Type, next)
		ok = ok && has
		all = append(all, Column{ID: ids + i, Name: f.Name, Type: t})
		mapped = append(mapped, map[string]any{"field-id": ids + i, "names": []string{f.Name}, "fields": parts})
	}
	return all, mapped, ok
}

// NewIceberg returns a table without snapshots in a new directory, divided by columns, or transforms as
// bucket[16](id). Columns have ids from 1; names of the schema stand for them in files without ids.
func NewIceberg(t testing.TB, format int, schema *arrow.Schema, by ...string) *Iceberg {
	t.Helper()
	next := 1
	columns, mapped, ok := icebergColumns(schema.Fields(), &next)
	text, err := json.Marshal(mapped)
	if !ok || err != nil {
		t.Fatalf("no Iceberg table has the schema %s: %v", schema, err)
	}
	d := &Iceberg{Table: Table{Dir: t.TempDir(), t: t}, Format: format, Columns: columns, files: map[string]*IcebergFile{}}
	d.Location = "file:" + d.Dir
	d.Properties = map[string]string{"schema.name-mapping.default": string(text)}
	for i, name := range by {
		f := By{ID: 1000 + i, Transform: "identity", Name: fmt.Sprint("by ", i)}
		if transform, of, ok := strings.Cut(name, "("); ok {
			f.Transform, name = transform, of[:len(of)-1]
		}
		f.Source = d.column(name).ID
		d.By = append(d.By, f)
	}
	d.metadata()
	return d
}

func (d *Iceberg) column(name string) Column {
	return d.Columns[slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == name })]
}

// Name returns the name of the newest version.
func (d *Iceberg) Name() string { return "iceberg:" + d.Dir }

// Snapshot returns the id of the newest snapshot.
func (d *Iceberg) Snapshot() int64 { return 7_000_000_000 + int64(d.version) }

// Add writes a file and returns the action that adds it. values are those of the fields of By, nil for NULL.
func (d *Iceberg) Add(name, content string, deleted []int64, values ...any) any {
	d.t.Helper()
	d.Put(name, content)
	f := d.Again(name, len(content), deleted, values...).(*IcebergFile)
	if p, err := parquet.OpenFile(strings.NewReader(content), int64(len(content)), parquet.SkipPageIndex(true)); err == nil {
		f.Rows = p.NumRows()
	}
	return f
}

// Again returns the action that adds a file that is there.
func (d *Iceberg) Again(name string, size int, deleted []int64, values ...any) any {
	return &IcebergFile{Name: name, Size: size, Deleted: deleted, Values: values, Rows: 1}
}

// Commit adds a snapshot.
func (d *Iceberg) Commit(actions ...any) {
	d.t.Helper()
	d.version++
	d.remember()
	now := maps.Clone(d.files)
	for _, a := range actions {
		if r, ok := a.(removed); ok {
			delete(now, r.Name)
		}
	}
	for _, a := range actions {
		if f, ok := a.(*IcebergFile); ok {
			now[f.Name] = f
		}
	}
	var added []*entry
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if was, f := d.files[name], now[name]; was == nil || was.Size != f.Size {
			f.spec = len(d.specs) - 1
			added = append(added, d.entry(f.spec, 0, name, "PARQUET", f.Rows, f.Size, f.Values))
		} else {
			f.spec, f.Rows = was.spec, max(f.Rows, was.Rows)
		}
	}
	d.rewrite(false, func(e *entry) bool { return now[e.name] == nil || d.files[e.name].Size != now[e.name].Size })
	d.add(false, added)
	d.files = now
	d.deleteRows()
	var keys []*entry
	for _, a := range actions {
		if k, ok := a.(*IcebergKeys); ok {
			keys = append(keys, d.keys(k))
		}
	}
	d.add(true, keys)
	d.snapshot()
}

// keys returns the entry of a file of keys.
func (d *Iceberg) keys(k *IcebergKeys) *entry {
	spec := k.Spec
	if spec < 0 {
		spec = len(d.specs) - 1
	}
	e := d.entry(spec, 2, k.Name, "PARQUET", k.Rows, k.Size, k.Values)
	var ids, nulls, least, most []any
	for _, id := range k.IDs {
		ids = append(ids, id)
	}
	e.file["equality_ids"] = ids
	for id, b := range k.Bounds {
		nulls = append(nulls, map[string]any{"key": id, "value": k.Nulls})
		least, most = append(least, map[string]any{"key": id, "value": b[0]}), append(most, map[string]any{"key": id, "value": b[1]})
	}
	if nulls != nil {
		e.file["null_value_counts"], e.file["lower_bounds"], e.file["upper_bounds"] = nulls, least, most
	}
	return e
}

// remember notes a new schema and a new specification.
func (d *Iceberg) remember() {
	if s := map[string]any{"type": "struct", "fields": slices.Clone(d.Columns)}; !same(d.schemas, "fields", s) {
		s["schema-id"] = len(d.schemas)
		d.schemas = append(d.schemas, s)
	}
	if s := map[string]any{"fields": append([]By{}, d.By...)}; !same(d.specs, "fields", s) {
		s["spec-id"] = len(d.specs)
		d.specs = append(d.specs, s)
		d.edit("spec", s)
	}
}

// same reports whether the last of a list has the same member.
func same(list []any, member string, as map[string]any) bool {
	return len(list) > 0 && fmt.Sprint(list[len(list)-1].(map[string]any)[member]) == fmt.Sprint(as[member])
}

func (d *Iceberg) edit(what string, of map[string]any) {
	if d.Edit != nil {
		d.Edit(what, of)
	}
}

// path returns the name of a file as metadata has it.
func (d *Iceberg) path(name string) string { return d.Location + "/" + name }

func (d *Iceberg) by(spec int) []By { return d.specs[spec].(map[string]any)["fields"].([]By) }

// entry returns one that this commit adds.
func (d *Iceberg) entry(spec, content int, name, format string, rows int64, size int, values []any) *entry {
	partition := map[string]any{}
	for i, f := range d.by(spec) {
		partition[f.Name] = values[i]
	}
	return &entry{name: name, spec: spec, now: true, seq: int64(d.version), by: d.Snapshot(), file: map[string]any{
		"content": content, "file_path": d.path(name), "file_format": format, "partition": partition, "record_count": rows,
		"file_size_in_bytes": size, "block_size_in_bytes": 64,
	}}
}

// rewrite removes entries, and writes the manifests that have some again.
func (d *Iceberg) rewrite(deletes bool, removes func(*entry) bool) {
	gone := func(e *entry) bool { return !e.old && removes(e) }
	for i, m := range d.manifests {
		if m.deletes != deletes || !slices.ContainsFunc(m.entries, gone) {
			continue
		}
		var entries []*entry
		for _, e := range m.entries {
			again := *e
			if again.now, again.old = false, gone(e); !e.old {
				entries = append(entries, &again)
			}
		}
		d.manifests[i] = d.manifest(deletes, m.spec, entries)
	}
	d.manifests = slices.DeleteFunc(d.manifests, func(m *manifest) bool {
		return m.deletes == deletes && m.seq < int64(d.version) && !slices.ContainsFunc(m.entries, func(e *entry) bool { return !e.old })
	})
}

// add adds a manifest for the entries of each specification.
func (d *Iceberg) add(deletes bool, entries []*entry) {
	for spec := range d.specs {
		if of := slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.spec != spec }); len(of) > 0 {
			d.manifests = append(d.manifests, d.manifest(deletes, spec, of))
		}
	}
}

// deleteRows brings delete files in line with the rows that are deleted: those that say too much, and
// vectors that say too little, are dropped, and new ones added.
func (d *Iceberg) deleteRows() {
	said := map[string]map[int64]bool{}
	drop := map[*entry]bool{}
	for changed := true; changed; {
		changed, said = false, map[string]map[int64]bool{}
		for _, e := range d.deletes {
			for name, rows := range e.rows {
				f := d.files[name]
				for _, r := range rows {
					if !d.Keep && (f == nil || !slices.Contains(f.Deleted, r) || d.Format > 2 && len(rows) != len(f.Deleted)) {
						changed = changed || !drop[e]
						drop[e] = true
					}
					if !drop[e] {
						said[name] = withRow(said[name], r)
					}
				}
			}
		}
		d.deletes = slices.DeleteFunc(d.deletes, func(e *entry) bool { return drop[e] })
	}
	isGone := map[string]bool{}
	for e := range drop {
		isGone[e.key()] = true
	}
	d.rewrite(true, func(e *entry) bool { return isGone[e.key()] })
	left := map[string][]int64{}
	for name, f := range d.files {
		if rows := slices.DeleteFunc(slices.Clone(f.Deleted), func(r int64) bool { return said[name][r] }); len(rows) > 0 {
			if left[name] = rows; d.Format > 2 {
				left[name] = f.Deleted
			}
		}
	}
	added := d.deleteFiles(left)
	d.deletes = append(d.deletes, added...)
	d.add(true, added)
}

func withRow(of map[int64]bool, r int64) map[int64]bool {
	if of == nil {
		of = map[int64]bool{}
	}
	of[r] = true
	return of
}

func (e *entry) key() string { return fmt.Sprint(e.file["file_path"], e.file["content_offset"]) }

// deleteFiles writes files with rows: vectors, or positions of a file or of all files of a partition.
func (d *Iceberg) deleteFiles(rows map[string][]int64) (all []*entry) {
	if d.Format > 2 {
		return d.vectorsOf(rows)
	}
	groups := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		f := d.files[name]
		group := fmt.Sprint(f.spec, f.Values)
		if d.version%3 == 0 {
			group = name
		}
		groups[group] = append(groups[group], name)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		names := groups[group]
		e := d.positions(names[0], rows, names, fmt.Sprintf("deletes %d %d.parquet", d.version, len(all)))
		if len(names) == 1 && d.version%2 == 0 {
			e.file["referenced_data_file"] = d.path(names[0])
		}
		all = append(all, e)
	}
	return all
}

type position struct {
	Path string `parquet:"file_path,id(2147483546)"`
	Pos  int64  `parquet:"pos,id(2147483545)"`
}

// positions writes a file of positions in the partition of a data file.
func (d *Iceberg) positions(of string, rows map[string][]int64, names []string, file string) *entry {
	var list []position
	said := map[string][]int64{}
	for _, name := range names {
		for _, r := range rows[name] {
			list = append(list, position{d.path(name), r})
		}
		said[name] = rows[name]
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, list); err != nil {
		d.t.Fatal(err)
	}
	d.Put(file, b.String())
	e := d.entry(d.files[of].spec, 1, file, "PARQUET", int64(len(list)), b.Len(), d.files[of].Values)
	e.rows = said
	e.file["lower_bounds"] = []any{map[string]any{"key": 2147483546, "value": []byte(list[0].Path)}}
	e.file["upper_bounds"] = []any{map[string]any{"key": 2147483546, "value": []byte(list[len(list)-1].Path)}}
	return e
}

// vectorsOf writes a Puffin file of vectors.
func (d *Iceberg) vectorsOf(rows map[string][]int64) (all []*entry) {
	b, file := []byte("PFA1"), fmt.Sprintf("deletes %d.puffin", d.version)
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		v := append([]byte("\xd1\xd3\x39\x64"), Roaring(rows[name])...)
		e := d.entry(d.files[name].spec, 1, file, "PUFFIN", int64(len(rows[name])), 0, d.files[name].Values)
		e.rows = map[string][]int64{name: rows[name]}
		e.file["referenced_data_file"], e.file["content_offset"], e.file["content_size_in_bytes"] = d.path(name), len(b), len(v)+8
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(v))
		all = append(all, e)
	}
	b = append(b, "PFA1{}\x02\x00\x00\x00\x00\x00\x00\x00PFA1"...)
	for _, e := range all {
		e.file["file_size_in_bytes"] = len(b)
	}
	if len(all) > 0 {
		d.Put(file, string(b))
	}
	return all
}
