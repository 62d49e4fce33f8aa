// Package keyindex answers which files of a list of inputs may hold a key, and which of their
// row groups, without opening them.
//
//	list ── Build ──► Filters ── Create ──► LIST.index ── Open ──► Index ── Probe(hashes) ──► units that may hold one
//
// In comes a list of inputs with a key; out goes a side-car of the list: for each file a
// split-block Bloom filter of its distinct keys, sized for their number, and if wanted one for
// each row group. It belongs to one state of the list, whose digest it has. A reader
// verifies the blocks that it uses, and reads no others: a search of ten thousand files
// reads a few kilobytes of each. Only the command uses it.
package keyindex

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// The file, all integers little-endian:
//
//	prelude     magic, version (4 bytes), sizes of the next three parts (8 bytes each)
//	header      JSON: what the filters are of
//	directory   for each input, in the order of the list: number of row groups (4 bytes),
//	            blocks of its filter (4 bytes), and for each row group its rows without
//	            a key (8 bytes) and, if row groups have filters and the input has
//	            several, the blocks of its filter (4 bytes)
//	sum         XXH3-64 of all before
//	filters     in the order of the directory: Split256 blocks as in a filter file, and
//	            after each 128 blocks, and the last ones, their XXH3-64, whose seed is
//	            their offset in this part
//
// A filter of no block is one of no keys.
const (
	magic        = "BJINDEX\n"
	version      = 1
	preludeBytes = int64(len(magic)) + 4 + 3*8
	sumBytes     = 8
	blockBytes   = 32
	chunkBlocks  = 128
	maxHeader    = 1 << 20
)

// hash is the hash of all indexes.
var hash = bloom.Hash{ID: bloom.XXH3}

// Hash returns the hash that [Index.Probe] takes.
func Hash() bloom.Hash { return hash }

// NameOf returns the name of the index of a list.
func NameOf(list string) string { return list + ".index" }

// Is reports whether a file that begins with the given bytes is an index.
func Is(first []byte) bool { return len(first) >= len(magic) && string(first[:len(magic)]) == magic }

// Facts say which keys the filters of an index have, and how.
type Facts struct {
	Key        string   `json:"key"`         // columns, as [keys.ParseColumns] reads them
	Classes    []string `json:"classes"`     // of the columns
	NormalForm string   `json:"normal_form"` // of the keys, with the rule
	FPR        float64  `json:"fpr"`         // of each filter
	RowGroups  bool     `json:"row_groups"`  // row groups have filters, too
	Hash       string   `json:"hash"`
	Geometry   string   `json:"geometry"`
	List       string   `json:"list"`   // digest of the list
	Inputs     int      `json:"inputs"` // of the list
}

// Unit is a filter of an index: where it is, and its size.
type Unit struct {
	at     int64 // in the part of the filters
	blocks uint32
}

// bytes returns the size of the filter with its checksums.
func (u Unit) bytes() int64 {
	return int64(u.blocks)*blockBytes + (int64(u.blocks)+chunkBlocks-1)/chunkBlocks*sumBytes
}

// chunk returns where some blocks of the filter are, and their size without the checksum.
func (u Unit) chunk(number uint64) (at int64, size int) {
	left := uint64(u.blocks) - number*chunkBlocks
	return u.at + int64(number)*(chunkBlocks*blockBytes+sumBytes), int(min(left, chunkBlocks)) * blockBytes
}

// sumOf returns the checksum of blocks at an offset.
func sumOf(blocks []byte, at int64) uint64 { return xxh3.HashSeed(blocks, uint64(at)) }

// entry is what the directory has of an input.
type entry struct {
	all    Unit
	nulls  []int64 // rows without a key, by row group
	groups []Unit  // by row group; nil: they have none
}

// appendEntry appends an entry to the directory.
func appendEntry(b []byte, e *entry) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(e.nulls)))
	b = binary.LittleEndian.AppendUint32(b, e.all.blocks)
	for g, n := range e.nulls {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
		if e.groups != nil {
			b = binary.LittleEndian.AppendUint32(b, e.groups[g].blocks)
		}
	}
	return b
}

// appendFront appends everything before the filters. filters is their size in bytes.
func appendFront(b []byte, f *Facts, directory []byte, filters int64) ([]byte, error) {
	header, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	b = binary.LittleEndian.AppendUint32(append(b, magic...), version)
	for _, size := range []int64{int64(len(header)), int64(len(directory)), filters} {
		b = binary.LittleEndian.AppendUint64(b, uint64(size))
	}
	b = append(append(b, header...), directory...)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)), nil
}

// check returns an error unless this package can use an index of these facts.
func (f *Facts) check(file string) error {
	at := fault.At{File: file}
	if f.Hash != hash.String() {
		return faults.Mismatch(at, "hash", hash, f.Hash)
	}
	if f.Geometry != bloom.Split256.String() {
		return faults.Mismatch(at, "geometry", bloom.Split256, f.Geometry)
	}
	columns, err := keys.ParseColumns(f.Key)
	digest, bad := hex.DecodeString(f.List)
	if err != nil || bad != nil || len(digest) != 32 || len(columns) != len(f.Classes) || !(f.FPR > 0 && f.FPR < 1) || f.Inputs < 0 {
		return faults.Corrupt(at, "its header contradicts itself")
	}
	if _, err := keys.RuleOf(f.NormalForm); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Rule returns the rule of the keys.
func (f *Facts) Rule() keys.Rule {
	rule, _ := keys.RuleOf(f.NormalForm) // check has parsed it
	return rule
}

// Unfit returns why the index cannot answer for keys of these columns, classes and rule; empty:
// it can.
func (f *Facts) Unfit(columns string, classes []string, rule keys.Rule) string {
	switch {
	case columns != f.Key:
		return fmt.Sprintf("its key is %s, and %s is asked for", f.Key, columns)
	case rule != f.Rule():
		return fmt.Sprintf("its keys are normalized by %s, and %s is asked for", f.Rule().Word(), rule.Word())
	case !slices.Equal(classes, f.Classes):
		return fmt.Sprintf("its keys are of class %s, and %s is asked for", strings.Join(f.Classes, ","), strings.Join(classes, ","))
	}
	return ""
}

// Same reports whether both are of the same key, rate and kind of filters; lists may differ.
func (f *Facts) Same(g *Facts) bool {
	return f.FPR == g.FPR && f.RowGroups == g.RowGroups && f.Unfit(g.Key, g.Classes, g.Rule()) == ""
}
