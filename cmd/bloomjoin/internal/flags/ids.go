package flags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/spf13/pflag"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/text"
)

// IDs are the flags for reading ID sets in text formats.
type IDs struct {
	KeyType, Format, Encoding, delimiter string
	noHeader, SkipBad                    bool
}

// Open returns the options for opening text in which columns are looked for, as far as the flags
// are right.
func (o *IDs) Open() source.Opening {
	by, _ := delimiterOf(o.delimiter)
	return source.Opening{OpenOptions: source.OpenOptions{
		Text: true, TextFormat: o.format(), Encoding: o.Encoding, Delimiter: by, NoHeader: o.noHeader,
	}}
}

// format returns the format of all text; "": as names say.
func (o *IDs) format() dataset.Format {
	if o.Format == "" && o.delimiter != "" {
		return dataset.CSV
	}
	return dataset.Format(o.Format)
}

// delimiterOf reads the value of --delimiter.
func delimiterOf(s string) (byte, error) {
	switch {
	case s == "":
		return 0, nil
	case s == "tab" || s == `\t`:
		return '\t', nil
	case len(s) != 1 || s[0] >= 0x80 || strings.ContainsAny(s, "\"\r\n\x00"):
		return 0, Usagef("--delimiter %q: want one character, as ';', or tab", s)
	}
	return s[0], nil
}

// RowsDelimiter returns the value of --delimiter for rows of a format, which it makes CSV.
func RowsDelimiter(s string, format *string) (byte, error) {
	by, err := delimiterOf(s)
	if by == 0 {
		return 0, err
	}
	if *format = cmp.Or(*format, "csv"); *format != "csv" {
		return 0, Usagef("--delimiter %s is for CSV (leave out --format %s)", s, *format)
	}
	return by, nil
}

// Add adds the flags. Help shows defaultType as the default of --key-type.
func (o *IDs) Add(f *pflag.FlagSet, defaultType string) {
	f.StringVar(&o.Format, "ids-format", "", "`FORMAT` format of text IDs: lines, csv, tsv or ndjson")
	AddDelimiter(f, &o.delimiter)
	f.BoolVar(&o.noHeader, "no-header", false, "CSV or TSV without a header: columns are 1, 2, …")
	f.StringVar(&o.KeyType, "key-type", "", "`TYPE` type of text keys, as int64 (default: "+defaultType+")")
	AddEncoding(f, &o.Encoding)
	f.BoolVar(&o.SkipBad, "skip-bad", false, "skip bad lines of text IDs, at most half, and name them")
}

// AddDelimiter adds --delimiter.
func AddDelimiter(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "delimiter", "", "`C` separator of CSV, as ';' or tab")
}

// AddEncoding adds --encoding.
func AddEncoding(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "encoding", "", "`NAME` utf-8 (default), latin1, windows-1252, utf-16, utf-16le or utf-16be")
}

// CheckEncoding checks the value of --encoding.
func CheckEncoding(name string) error {
	return OneOf("encoding", cmp.Or(name, text.UTF8), text.Encodings()...)
}

// given returns the flags that are set, with their values.
func (o *IDs) given() (flags []string) {
	if o.KeyType != "" {
		flags = append(flags, "--key-type "+o.KeyType)
	}
	if o.Format != "" {
		flags = append(flags, "--ids-format "+o.Format)
	}
	if o.delimiter != "" {
		flags = append(flags, "--delimiter "+o.delimiter)
	}
	if o.noHeader {
		flags = append(flags, "--no-header")
	}
	if o.Encoding != "" {
		flags = append(flags, "--encoding "+o.Encoding)
	}
	if o.SkipBad {
		flags = append(flags, "--skip-bad")
	}
	return flags
}

// Check copies the flags to the options, before any input is opened. The flags are
// a usage error if the names of all inputs have extensions of typed formats.
func (o *IDs) Check(open *source.Opening, names []string) error {
	open.SkipBad, open.TextFormat, open.Encoding, open.NoHeader = o.SkipBad, o.format(), o.Encoding, o.noHeader
	var err error
	if open.Delimiter, err = delimiterOf(o.delimiter); err != nil {
		return err
	}
	if err := CheckEncoding(o.Encoding); err != nil {
		return err
	}
	switch {
	case o.delimiter != "" && o.format() != dataset.CSV:
		return Usagef("--delimiter %s is for CSV (leave out --ids-format %s)", o.delimiter, o.Format)
	case o.noHeader && (o.format() == dataset.Lines || o.format() == dataset.NDJSON):
		return Usagef("--no-header is for CSV and TSV (leave it out, or --ids-format %s)", o.Format)
	}
	if o.Format != "" {
		if err := OneOf("ids-format", o.Format, "lines", "csv", "tsv", "ndjson"); err != nil {
			return err
		}
	}
	if flags := o.given(); len(flags) > 0 && len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return !TypedName(n) }) {
		return Usagef("%s: %s is for text IDs (CSV, TSV, NDJSON, one a line); Parquet and Arrow files have types (to read a column as another type, write COL::TYPE where the key is named)", names[0], strings.Join(flags, " and "))
	}
	return nil
}

// TypedName reports whether a name has the extension of a typed format.
func TypedName(name string) bool {
	says := NamedAs(name)
	return says == FormatNames[dataset.Parquet] || says == FormatNames[dataset.ArrowFile]
}

// Apply returns an error if a flag has no effect on the files that were opened.
func (o *IDs) Apply(files []*source.File) error {
	text := slices.IndexFunc(files, func(f *source.File) bool { return source.IsText(f.Format()) })
	if flags := o.given(); len(flags) > 0 && text < 0 && len(files) > 0 {
		return fmt.Errorf("%s: its format is %s: %s is for text IDs (to read a column as another type, write COL::TYPE where the key is named)", files[0].Name(), files[0].Format(), strings.Join(flags, " and "))
	}
	if o.noHeader && !slices.ContainsFunc(files, func(f *source.File) bool { return f.Format() == dataset.CSV || f.Format() == dataset.TSV }) {
		return fmt.Errorf("%s: its format is %s: --no-header is for CSV and TSV (if it is CSV, add --ids-format csv)", files[text].Name(), files[text].Format())
	}
	return nil
}

// TextKeysNote returns a note if the key of a text file was read as text because it
// was given no type.
func TextKeysNote(files []*source.File, keyType string, classes []string) string {
	text := slices.IndexFunc(files, func(f *source.File) bool { return source.IsText(f.Format()) })
	if text < 0 || keyType != "" || !slices.Contains(classes, "bytes") {
		return ""
	}
	return fmt.Sprintf("the keys of %s are text, and match text only; if the log's are not, give their type, as --key-type int64", files[text].Name())
}

// KeyTypes returns the types that --key-type gives to the key columns.
func KeyTypes(s string, columns []keys.Column) (map[string]arrow.DataType, error) {
	if s == "" {
		return nil, nil
	}
	names := splitTypes(s)
	if len(names) != len(columns) {
		return nil, Usagef("--key-type %s: want a type for each of the %d key columns, got %d", s, len(columns), len(names))
	}
	types := map[string]arrow.DataType{}
	for i, c := range columns {
		t, err := keys.ParseType(names[i])
		if err != nil {
			return nil, Usagef("--key-type: %w", err)
		}
		types[c.Flat()] = t
	}
	return types, nil
}

// CheckTypes checks the names of types where the key columns are not known yet.
func CheckTypes(s string) error {
	for _, name := range splitTypes(s) {
		if _, err := keys.ParseType(name); err != nil {
			return Usagef("--key-type: %w", err)
		}
	}
	return nil
}

// splitTypes splits a list at the commas outside parentheses.
func splitTypes(s string) []string {
	depth := 0
	return strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth == 0
	})
}
