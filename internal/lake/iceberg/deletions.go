package iceberg

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

// deletions are the delete files of a snapshot.
type deletions struct {
	t       *Table
	vectors map[string]*entry    // by the path of their data file
	of      map[string][]*entry  // files of positions, by partition, and by data file if they have but one
	in      map[string][]*keySet // by partition; those of all partitions have none
}

// keySet are the delete files with keys of the same columns, for the same partition.
type keySet struct {
	columns []int32
	files   []*entry       // the newest first
	at      int            // in the table; -1: no data file needs it
	digest  map[int]string // of some of the newest files
}

// pathID is the id of the column of files of positions that names data files.
const pathID = 2147483546

// add notes an entry of a manifest of deletes.
func (d *deletions) add(e *entry) error {
	at := fault.At{File: address.Redact(e.path)}
	switch {
	case e.content != 1 && e.content != 2:
		return faults.Unsupported(at, "a delete file of content %d", e.content)
	case e.format == "PARQUET" && e.content == 2:
		return d.addKeys(e, at)
	case e.format == "PARQUET":
		key := e.partition()
		if least, most := e.names(); least == most && strings.HasSuffix(least, ".parquet") { // else it may be cut
			key += least
		}
		d.of[key] = append(d.of[key], e)
	case e.format != "PUFFIN" || e.content == 2:
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

// addKeys adds a file of keys to its set.
func (d *deletions) addKeys(e *entry, at fault.At) error {
	if len(e.keys) == 0 {
		return faults.Corrupt(at, "a delete file with keys of no columns")
	}
	partition := ""
	if slices.ContainsFunc(e.spec.Fields, func(f specField) bool { return f.Transform != "void" }) {
		partition = e.partition()
	}
	sets := d.in[partition]
	i := slices.IndexFunc(sets, func(s *keySet) bool { return slices.Equal(s.columns, e.keys) })
	if i < 0 {
		i, sets = len(sets), append(sets, &keySet{columns: e.keys, at: -1, digest: map[int]string{}})
	}
	sets[i].files, d.in[partition] = append(sets[i].files, e), sets
	return nil
}

// partition identifies the partition of a file.
func (e *entry) partition() string {
	var b strings.Builder
	fmt.Fprint(&b, e.spec.ID)
	for i := range e.values {
		b.WriteString(" " + key(&e.values[i]))
	}
	b.WriteString(" of ")
	return b.String()
}

// find returns what says which rows of a data file are deleted. A vector replaces files of positions.
// All are of the file's partition, and not older than it; files of keys are younger.
func (d *deletions) find(e *entry) (*lake.Deleted, error) {
	deleted, err := d.listed(e)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, s := range slices.Concat(d.in[""], d.in[e.partition()]) {
		if !d.concerns(s, e) {
			continue
		}
		if err := d.inTable(s); err != nil {
			return nil, err
		}
		if deleted == nil {
			deleted = new(lake.Deleted)
		}
		deleted.Keys, deleted.Seq = append(deleted.Keys, s.at), e.seq
		named = append(named, s.named(e.seq, slashed(d.t.meta.Location)))
	}
	slices.Sort(named)
	if deleted != nil {
		deleted.Named = strings.Join(named, " ")
	}
	return deleted, nil
}

// sort brings files in the order of their sequence numbers, the newest first.
func (d *deletions) sort() {
	for _, sets := range d.in {
		for _, s := range sets {
			slices.SortFunc(s.files, func(a, b *entry) int { return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(a.path, b.path)) })
		}
	}
}

// inTable adds a set to the table.
func (d *deletions) inTable(s *keySet) error {
	if s.at >= 0 {
		return nil
	}
	k := lake.Keys{Columns: s.columns}
	for _, e := range s.files {
		place, err := d.t.place(e.path)
		if err != nil {
			return err
		}
		k.Files = append(k.Files, lake.DeleteFile{Place: place, Size: e.size, Rows: e.rows, Seq: e.seq})
	}
	s.at = len(d.t.table.Keys)
	d.t.table.Keys = append(d.t.table.Keys, k)
	return nil
}

// younger returns the files that are younger than a data file.
func (s *keySet) younger(seq int64) []*entry {
	n := sort.Search(len(s.files), func(i int) bool { return s.files[i].seq <= seq })
	return s.files[:n]
}

// concerns reports whether a data file may have a row with a key of a younger file of a set.
func (d *deletions) concerns(s *keySet, e *entry) bool {
	for _, k := range s.younger(e.seq) {
		if !slices.ContainsFunc(s.columns, func(id int32) bool { return d.apart(id, k.ranges[id], e.ranges[id]) }) {
			return true
		}
	}
	return false
}

// apart reports whether no value of a column is in both of two files. Bounds of texts, which some writers cut, and of
// floats are not used.
func (d *deletions) apart(id int32, a, b valueRange) bool {
	i, ok := d.t.columns[id]
	if !ok || a.nulls != 0 && b.nulls != 0 || a.least == nil || a.most == nil || b.least == nil || b.most == nil {
		return false
	}
	var ends [4]value
	for k, end := range [][]byte{a.least, a.most, b.least, b.most} {
		if ends[k], ok = lake.ValueOf(d.t.table.Columns[i].Type, end); !ok || ends[k].Kind != 'i' {
			return false
		}
	}
	return ends[0].Int <= ends[1].Int && ends[2].Int <= ends[3].Int && (ends[1].Int < ends[2].Int || ends[3].Int < ends[0].Int)
}

// named returns the identity of the files that are younger than a data file, in a table whose metadata calls its
// directory dir.
func (s *keySet) named(seq int64, dir string) string {
	files := s.younger(seq)
	n := len(files)
	if s.digest[n] == "" {
		h := xxh3.New()
		fmt.Fprint(h, s.columns)
		for _, e := range files {
			fmt.Fprintf(h, " %q %d %d", strings.TrimPrefix(e.path, dir), e.size, e.rows)
		}
		sum := h.Sum128().Bytes()
		s.digest[n] = hex.EncodeToString(sum[:])
	}
	return s.digest[n]
}

// listed returns the lists of rows of a data file that are deleted.
func (d *deletions) listed(e *entry) (*lake.Deleted, error) {
	if v := d.vectors[e.path]; v != nil {
		if v.seq < e.seq {
			return nil, faults.Corrupt(fault.At{File: address.Redact(v.path)}, "a deletion vector that is older than its data file")
		}
		place, err := d.t.place(v.path)
		return &lake.Deleted{Place: place, Offset: v.offset, Size: v.length - 8, Count: v.rows}, err
	}
	var in []lake.DeleteFile
	key := e.partition()
	for _, p := range slices.Concat(d.of[key], d.of[key+e.path]) {
		least, most := p.names()
		if p.seq < e.seq || most != "" && (e.path < least || e.path > most && !strings.HasPrefix(e.path, most)) {
			continue // some writers cut the greatest name, and leave it less than what it stands for
		}
		place, err := d.t.place(p.path)
		if err != nil {
			return nil, err
		}
		in = append(in, lake.DeleteFile{Place: place, Size: p.size, Rows: p.rows})
	}
	if in == nil {
		return nil, nil
	}
	slices.SortFunc(in, func(a, b lake.DeleteFile) int { return cmp.Compare(a.Place, b.Place) })
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
