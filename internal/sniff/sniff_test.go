package sniff_test

import (
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/sniff"
)

func TestKind(t *testing.T) {
	for first, want := range map[string]string{
		"PAR1\x15\x04":                     "a Parquet file",
		"ARROW1\x00\x00":                   "an Arrow file",
		"\xff\xff\xff\xff\x10\x00":         "an Arrow stream",
		"\x89BJF\r\n\x1a\n\x01\x00":        sniff.AFilter,
		"\x1f\x8b\x08":                     "a gzip file",
		"ORC\x0a\x06\x12":                  "an ORC file",
		"ORCID\n0000-0002":                 sniff.Text,
		"FEA1\x00\x00\x00\x00":             "a Feather V1 file",
		"FEA1, FEA2\n":                     sniff.Text,
		"\x7c\x07\x00\x00\x10\x00\x00\x00": "an Arrow stream",
		"\x7c\x07\x00\x00\x10\x00\x00":     "",
		"\x7e\x07\x00\x00\x10\x00\x00\x00": "",
		"\x0c\x00\x00\x00\x0c\x00\x00\x00": "",
		"l\x00d\x00x\x00\n\x00":            "", // UTF-16
		"lid\nd\x00\x00\x00":               "",
		"BZh91AY&SY":                       "a bzip2 file",
		"BZh9 is an ID\n":                  sniff.Text,
		"user_id,name\n":                   sniff.Text,
		"Größe\t1\r\n":                     sniff.Text,
		"":                                 sniff.Text,
		"\x00\x01\x02":                     "",
		"u\x00s\x00":                       "",
		"PK\x03\x04":                       "a ZIP archive, as of Excel",
		"Obj\x01\x04\x16avro.schema\xfe":   "an Avro file",
	} {
		if got := sniff.Kind([]byte(first)); got != want {
			t.Errorf("%q is %q, want %q", first, got, want)
		}
	}
}
