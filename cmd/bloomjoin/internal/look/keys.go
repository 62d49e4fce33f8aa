package look

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/cmd/bloomjoin/internal/words"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/prune"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// Key is a column, or a field of one, that can be a key, with what the file's statistics say.
type Key struct {
	Name     string `json:"name"` // as --key takes it
	Class    string `json:"class"`
	Nulls    *int64 `json:"nulls,omitempty"`
	Distinct *int64 `json:"distinct_at_most,omitempty"`

	typ arrow.DataType
}

// KeysOf returns the keys that column c of a file can be. What has a fraction or only two values
// is possible, too, but not likely. It reads nothing.
func KeysOf(f *source.File, c int) (found []Key) {
	var walk func(path keys.Path, index []int, field arrow.Field)
	walk = func(path keys.Path, index []int, field arrow.Field) {
		path = append(path[:len(path):len(path)], field.Name)
		if s, ok := field.Type.(*arrow.StructType); ok {
			for i, sub := range s.Fields() {
				walk(path, append(index[:len(index):len(index)], i), sub)
			}
			return
		}
		class, err := keys.ClassOf(field.Type)
		if err != nil || slices.Contains(unlikely, class) {
			return
		}
		k := Key{Name: path.String(), Class: string(class), typ: field.Type}
		k.count(f, index)
		found = append(found, k)
	}
	walk(nil, []int{c}, f.Schema().Field(c))
	return found
}

var unlikely = []keys.Class{keys.Null, keys.Float, keys.Boolean, keys.Time, keys.Duration}

// count adds what the statistics of a Parquet file say.
func (k *Key) count(f *source.File, index []int) {
	p := f.Parquet()
	if p == nil {
		return
	}
	leaf, ok := p.Leaf(index)
	if !ok {
		return
	}
	file := p.File()
	nulls := int64(0)
	for g := range file.RowGroups {
		n := file.Nulls(g, leaf.Index())
		if n < 0 {
			return
		}
		nulls += n
	}
	k.Nulls = &nulls
	if n, ok := integers(prune.NewStatistics(file, leaf.Index(), leaf.Type()), f.NumGroups(), leaf.Type()); ok && n < uint64(f.Rows()-nulls) {
		most := int64(n)
		k.Distinct = &most
	}
}

// integers returns how many integers there are from the least value of a column to the largest.
func integers(s *prune.Statistics, groups int, t arrow.DataType) (n uint64, ok bool) {
	if !arrow.IsInteger(t.ID()) {
		return 0, false
	}
	const signed = 1 << 63 // orders numbers below 0 before others
	flip := uint64(signed)
	if arrow.IsUnsignedInteger(t.ID()) {
		flip = 0
	}
	value := func(b []byte) uint64 {
		switch {
		case len(b) == 8:
			return binary.LittleEndian.Uint64(b) ^ flip
		case flip == 0:
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) ^ flip
	}
	var least, most uint64
	for g := range groups {
		f := s.Group(g)
		if len(f.Least) != len(f.Most) || len(f.Least) != 4 && len(f.Least) != 8 {
			if f.AllNulls {
				continue
			}
			return 0, false
		}
		lo, hi := value(f.Least), value(f.Most)
		if !ok {
			least, most, ok = lo, hi, true
		}
		least, most = min(least, lo), max(most, hi)
	}
	n = most - least + 1
	return n, ok && n > 0
}

// Of returns what is said of a key: its name and type as well if it is a field of column.
func (k *Key) Of(column string) string {
	s := ""
	if k.Name != (keys.Path{column}).String() {
		s = fmt.Sprintf("%s %s", k.Name, k.typ)
	}
	class := k.Class
	if class == string(keys.Bytes) {
		class = "text or binary"
	}
	s += "; possible key: " + class
	if k.Nulls != nil {
		s += ", " + words.Things(*k.Nulls, "NULL")
	}
	if k.Distinct != nil {
		s += fmt.Sprintf(", at most %s distinct", words.Count(*k.Distinct))
	}
	return s
}
