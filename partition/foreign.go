package partition

import (
	"strings"
	"unicode"

	"github.com/bloomjoin/bloomjoin/internal/fault"
)

// filterMagic are the first bytes of a filter file, see codec/FORMAT.md.
const filterMagic = "\x89BJF\r\n\x1a\n"

// notRows returns an error if the first bytes of a file are those of a format
// that is not read, which the error names.
func notRows(name string, head []byte) error {
	if strings.HasPrefix(string(head), filterMagic) {
		return fault.Mismatch(fault.At{File: name}, "the file", "rows", "a bloomjoin filter").
			WithHint("give filters with --filter or --match, and the IDs they were built from with --ids")
	}
	for _, f := range []struct{ magic, what string }{
		{"BZh91AY&", "bzip2"}, {"\xFD7zXZ", "xz"}, {"\x04\x22\x4D\x18", "LZ4"},
	} {
		if strings.HasPrefix(string(head), f.magic) {
			return fault.Unsupported(fault.At{File: name}, "compression with %s; want gzip, zstd or none", f.what).
				WithHint("decompress it first")
		}
	}
	what := ""
	switch first := string(head); {
	case strings.HasPrefix(first, "ORC") && strings.ContainsFunc(first[3:], notText):
		what = "an ORC file"
	case strings.HasPrefix(first, "Obj\x01"):
		what = "an Avro file"
	case strings.HasPrefix(first, "PK\x03\x04"):
		what = "a ZIP archive, as of Excel"
	default:
		return nil
	}
	return fault.Unsupported(fault.At{File: name}, "%s; want Parquet or Arrow", what).
		WithHint("convert it to Parquet, or to an Arrow stream on standard input: docs/stdin.md shows how")
}

// notText reports whether a character is a control character that text does not have.
func notText(r rune) bool {
	return unicode.IsControl(r) && !unicode.IsSpace(r)
}
