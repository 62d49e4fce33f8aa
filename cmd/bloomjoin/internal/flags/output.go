package flags

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// CheckCount returns an error if --count is combined with flags for an output.
func CheckCount(cmd *cobra.Command, count bool) error {
	if !count {
		return nil
	}
	return CheckUnwritten(cmd, "--count writes nothing (remove --%s)", "output", "schema", "schema-from", "columns", "suffix")
}

// CheckUnwritten returns an error if a verb that writes nothing is given flags for an output or
// others that it has no use for. format takes the name of the flag.
func CheckUnwritten(cmd *cobra.Command, format string, others ...string) error {
	for _, name := range append(others, "compression", "format", "force", "base", "prune", "ids-changed", "no-commit", "manifest-dir", "target-file-size", "empty") {
		if cmd.Flags().Changed(name) {
			return Usagef(format, name)
		}
	}
	return nil
}

// RegularOutput returns an error if the output is a device or a pipe. Outputs are
// written under a temporary name and renamed when complete.
func RegularOutput(out string) error {
	if address.IsURL(out) {
		return nil
	}
	info, err := os.Stat(out)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil // reported when it is written
	}
	return Usagef("-o %s: want a regular file, got a device or pipe (scan and join write an Arrow stream to standard output with -o -, and nothing with --count)", out)
}

// FormatNames are the formats of rows as messages name them.
var FormatNames = map[dataset.Format]string{
	dataset.Parquet: "Parquet", dataset.ArrowFile: "Arrow", dataset.ArrowStream: "Arrow", dataset.CSV: "CSV", dataset.TSV: "TSV", dataset.NDJSON: "NDJSON", dataset.Lines: "lines of text",
}

// NamedAs returns the format that a name says, "" if it says none.
func NamedAs(name string) string {
	name = strings.ToLower(address.WithoutQuery(name))
	if _, ok := text.FormatOf(name); ok {
		return "text"
	}
	says := map[string]string{
		".parquet": "Parquet", ".parq": "Parquet", ".pq": "Parquet", ".arrow": "Arrow", ".feather": "Arrow", ".ipc": "Arrow", ".arrows": "Arrow",
		".bjf": "a filter", ".bjs": "a sketch", ".json": "text", ".orc": "ORC", ".avro": "Avro",
		".gz": "a compressed file", ".zst": "a compressed file", ".bz2": "a compressed file", ".xz": "a compressed file", ".lz4": "a compressed file", ".zip": "an archive",
	}
	return says[filepath.Ext(name)]
}

// CheckFormat returns an error if the name of an output, which is a file, says another format
// than that of its rows, or none that is known, unless the format was given.
func CheckFormat(o output.Output, given bool) error {
	kind, named, says := o.Kind(), source.FormatByName(o.Name), NamedAs(o.Name)
	if source.IsText(named) {
		says = cmp.Or(FormatNames[named], says)
	}
	if source.IsText(kind) && named == kind {
		if before, _, zstd := strings.Cut(strings.ToLower(o.Name), ".zst"); zstd {
			return Usagef("-o %s: text is not compressed by zstd (name the file %s.gz)", o.Name, o.Name[:len(before)])
		}
		return nil
	}
	names := ".parquet, .arrow, .csv, .tsv or .ndjson"
	switch {
	case kind == dataset.Lines:
		names = ".txt"
	case o.Format != "":
		names = "." + strings.ToLower(FormatNames[kind])
	}
	if ext := filepath.Ext(address.WithoutQuery(o.Name)); says == "" && !given && ext != "" {
		return Usagef("-o %s: no rows are written as %s: name the file %s", o.Name, ext, names)
	}
	if says == "" || says == FormatNames[kind] {
		return nil
	}
	return Usagef("-o %s: its name says %s, and rows are written as %s: name the file %s, as its format", o.Name, says, FormatNames[kind], names)
}

// CheckWritable returns an error if an output is at an address that can only be read.
func CheckWritable(output string) error {
	if address.IsWeb(output) {
		shown, _, _ := strings.Cut(output, "?") // what follows may be a signature
		return Usagef("-o %s: web servers are only read (write to a file or an object store, as s3://bucket/key)", shown)
	}
	return nil
}
