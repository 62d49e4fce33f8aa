package source

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cause"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/sniff"
	"github.com/bloomjoin/bloomjoin/internal/text"
	"github.com/bloomjoin/bloomjoin/storage"
)

// TextFormats maps text formats to package text's.
var TextFormats = map[dataset.Format]text.Format{dataset.CSV: text.CSV, dataset.TSV: text.TSV, dataset.NDJSON: text.NDJSON, dataset.Lines: text.Lines}

// stdinGuide says how rows in other formats can be a log.
const stdinGuide = "https://github.com/bloomjoin/bloomjoin/blob/main/docs/stdin.md"

// detect finds the format by the first bytes and the name; given is the format of text. Text is
// recognised by its name only, so that a damaged Parquet file is not read as text.
func detect(src storage.Reader, e storage.Object, given dataset.Format) (dataset.Format, error) {
	if _, remote := src.(storage.Prefetcher); remote { // the end is read in any case
		if f, err := byTail(src); f == dataset.Parquet || err != nil {
			return f, err
		}
	}
	var head [8]byte
	n, err := src.ReadAt(head[:min(8, src.Object().Size)], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w", e.Name, err)
	}
	if f := byMagic(head[:n]); f != "" {
		return f, nil
	}
	if err := notRows(e.Name, head[:n]); err != nil {
		return "", err
	}
	if f := FormatByName(e.Rel); IsText(f) {
		return cmp.Or(given, f), nil
	} else if f != "" {
		return f, nil
	}
	if e.Found {
		return "", fmt.Errorf("%s: %w", e.Name, ErrNoData)
	}
	if f, err := byTail(src); f != "" || err != nil {
		return f, err
	}
	return cmp.Or(given, dataset.Lines), nil
}

// byTail finds the format by the last bytes, for a file whose first bytes are
// damaged.
func byTail(src storage.Reader) (dataset.Format, error) {
	var tail [6]byte
	size := src.Object().Size
	n := min(int64(len(tail)), size)
	if m, err := src.ReadAt(tail[:n], size-n); int64(m) < n {
		return "", fmt.Errorf("%s: %w", src.Object().Name, err)
	}
	s := string(tail[:n])
	switch {
	case strings.HasSuffix(s, "PAR1"), strings.HasSuffix(s, "PARE"):
		return dataset.Parquet, nil
	case s == "ARROW1":
		return dataset.ArrowFile, nil
	}
	return "", nil
}

func byMagic(head []byte) dataset.Format {
	s := string(head)
	switch {
	case strings.HasPrefix(s, "PAR1"), strings.HasPrefix(s, "PARE"):
		return dataset.Parquet
	case strings.HasPrefix(s, "ARROW1"):
		return dataset.ArrowFile
	case strings.HasPrefix(s, "\xff\xff\xff\xff") && len(s) == 8 && head[7] == 0, sniff.OldArrow(head):
		return dataset.ArrowStream
	}
	return ""
}

func FormatByName(name string) dataset.Format {
	name = strings.ToLower(name)
	for _, c := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, c)
	}
	switch {
	case strings.HasSuffix(name, ".parquet"), strings.HasSuffix(name, ".parq"), strings.HasSuffix(name, ".pq"):
		return dataset.Parquet
	case strings.HasSuffix(name, ".arrow"), strings.HasSuffix(name, ".feather"), strings.HasSuffix(name, ".ipc"):
		return dataset.ArrowFile
	case strings.HasSuffix(name, ".arrows"):
		return dataset.ArrowStream
	case strings.HasSuffix(name, ".csv"):
		return dataset.CSV
	case strings.HasSuffix(name, ".tsv"):
		return dataset.TSV
	case strings.HasSuffix(name, ".ndjson"), strings.HasSuffix(name, ".jsonl"):
		return dataset.NDJSON
	case strings.HasSuffix(name, ".txt"), strings.HasSuffix(name, ".ids"):
		return dataset.Lines
	}
	return ""
}

// notRows returns an error that names the format if the first bytes of a file are
// of a format that cannot be read.
func notRows(name string, head []byte) error {
	switch kind := sniff.Kind(head); kind {
	case sniff.AFilter:
		return faults.Of(cause.NotData, faults.Mismatch(fault.At{File: name}, "the file", "rows", kind)).
			WithHint("a filter is applied by scan and join, and combined with others by merge; here, name the files that it was built from")
	case sniff.ASketch:
		return faults.Of(cause.NotData, faults.Mismatch(fault.At{File: name}, "the file", "rows", kind)).WithHint("name the files that the sketch is of")
	case "a bzip2 file", "an xz file", "an LZ4 file":
		return faults.Unsupported(fault.At{File: name}, "%s; want gzip, zstd or no compression", kind).
			WithHint("decompress it first")
	case "an ORC file", "an Avro file", "a ZIP archive, as of Excel", "a Feather V1 file":
		return faults.Unsupported(fault.At{File: name}, "%s; want Parquet or Arrow", kind).
			WithHint("convert it to Parquet, or to an Arrow stream on standard input: see " + stdinGuide)
	}
	return nil
}
