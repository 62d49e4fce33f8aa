package output

import (
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
)

// notRows returns an error that names the format if the first bytes of a file are
// of a format that cannot be read.
func notRows(name string, head []byte) error {
	switch kind := sniff.Kind(head); kind {
	case sniff.AFilter:
		return fault.Mismatch(fault.At{File: name}, "the file", "rows", kind).
			WithHint("give filters with {Filter} or {Match}, and the IDs they were built from with {IDs}")
	case "a bzip2 file", "an xz file", "an LZ4 file":
		return fault.Unsupported(fault.At{File: name}, "%s; want gzip, zstd or no compression", kind).
			WithHint("decompress it first")
	case "an ORC file", "an Avro file", "a ZIP archive, as of Excel":
		return fault.Unsupported(fault.At{File: name}, "%s; want Parquet or Arrow", kind).
			WithHint("convert it to Parquet, or to an Arrow stream on standard input: docs/stdin.md shows how")
	}
	return nil
}
