// Package sniff identifies files by their first bytes, for messages about files of
// an unexpected kind.
package sniff

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The first bytes of every bloomjoin filter file, and of every sketch.
const (
	Filter = "\x89BJF\r\n\x1a\n"
	Sketch = "\x89BJS\r\n\x1a\n"
)

// Kinds that callers branch on.
const (
	AFilter = "a bloomjoin filter"
	ASketch = "a bloomjoin sketch"
	Text    = "text"
)

// kinds maps the first bytes of files to their kind.
var kinds = []struct{ magic, kind string }{
	{Filter, AFilter}, {Sketch, ASketch},
	{"PAR1", "a Parquet file"}, {"PARE", "an encrypted Parquet file"},
	{"ARROW1", "an Arrow file"}, {"\xFF\xFF\xFF\xFF", "an Arrow stream"},
	{"\x1F\x8B", "a gzip file"}, {"\x28\xB5\x2F\xFD", "a zstd file"},
	{"BZh91AY&", "a bzip2 file"}, {"\xFD7zXZ", "an xz file"}, {"\x04\x22\x4D\x18", "an LZ4 file"},
	{"Obj\x01", "an Avro file"}, {"PK\x03\x04", "a ZIP archive, as of Excel"},
}

// Kind returns the kind of a file that starts with first: [AFilter], [Text],
// another kind with its article, or "" if unknown.
func Kind(first []byte) string {
	s := string(first)
	for _, k := range kinds {
		if strings.HasPrefix(s, k.magic) {
			return k.kind
		}
	}
	switch binary := strings.ContainsFunc(s, notText); {
	case !binary:
		return Text
	case strings.HasPrefix(s, "ORC"):
		return "an ORC file"
	case strings.HasPrefix(s, "FEA1"):
		return "a Feather V1 file"
	case OldArrow(first):
		return "an Arrow stream"
	}
	return ""
}

// OldArrow reports whether first can begin an Arrow stream of before 0.15: a
// message's length, and its table's position.
func OldArrow(first []byte) bool {
	if len(first) < 8 {
		return false
	}
	n, table := binary.LittleEndian.Uint32(first), binary.LittleEndian.Uint32(first[4:])
	return n < 1<<24 && n%4 == 0 && 8 <= table && table < min(n, 256) && table%4 == 0
}

// notText reports whether text cannot contain the character.
func notText(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r)
}
