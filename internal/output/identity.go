package output

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/where"
)

// This file composes the [Run] of a scan, and what it has in common with those of joins, from
// options that the command and the calls of package bloomjoin share. Defaults of newer options add
// nothing: digests of older versions stay valid.

// SetScan sets Run to that of a scan of the log, which was opened with these options, and Filter.
// missingKey is the value of --missing-key.
func (o *Destination) SetScan(ctx context.Context, scan *keyscan.ScanOptions, missingKey string, log []*source.File, open *source.OpenOptions) error {
	words := append([]string{"scan", fmt.Sprint(scan.Any)}, o.Layout(ctx, scan.Columns, scan, missingKey, open.Int96Nanos)...)
	misfits := len(scan.Match) > 0 && scan.Match[0].NullMisfits
	words = append(words, OfRows(scan.IgnoreCase, misfits, open)...)
	o.Run = &Run{Log: log, Uses: Uses(scan, open, scan.Match, log)}
	h := sha256.New()
	for _, m := range scan.Match {
		d, err := (*filters.Filter)(m.Filter).Digest()
		if err != nil {
			return err
		}
		h.Write(d[:])
		o.Filter, o.Run.Filters = d, append(o.Run.Filters, d)
		if words = append(words, m.Key, fmt.Sprint(m.NoMatch)); m.IgnoreCase != scan.IgnoreCase || m.NullMisfits != misfits {
			words = append(words, fmt.Sprint(m.IgnoreCase, m.NullMisfits))
		}
	}
	if len(scan.Match) > 1 {
		h.Sum(o.Filter[:0])
	}
	o.Run.Options = words
	return nil
}

// Layout returns the options of a run about columns, schema and layout. columns are those chosen, in
// the syntax of paths.
func (o Destination) Layout(ctx context.Context, columns []string, scan *keyscan.ScanOptions, missingKey string, int96Nanos bool) []string {
	mode := scan.Schema
	if mode != dataset.UnionByName {
		if mode = dataset.Strict; o.IsDir(ctx) && scan.Schema != mode {
			mode = dataset.PerFile
		}
	}
	codec, level, _ := strings.Cut(o.Compression, ":")
	words := []string{strings.Join(columns, ","), string(mode), missingKey, codec, cmp.Or(level, "0"), string(o.Kind())}
	if int96Nanos {
		words = append(words, "int96 ns")
	}
	if o.WriteEmpty {
		words = append(words, "empty write")
	}
	if o.TargetSize > 0 {
		words = append(words, fmt.Sprint("target file size ", o.TargetSize))
	}
	if scan.Limit > 0 {
		words = append(words, fmt.Sprint("limit ", scan.Limit))
	}
	if scan.Pinned == nil {
		return words
	}
	_, footer := (*options.Schema)(scan.Pinned).Of()
	return append(words, string(footer))
}

// OfKeys returns the options of a run about finding and converting keys.
func OfKeys(ignoreCase, nullMisfits bool) (words []string) {
	if ignoreCase {
		words = append(words, "ignore case")
	}
	if nullMisfits {
		words = append(words, "misfits are NULL")
	}
	return words
}

// OfRows returns OfKeys, and what decides the rows of a log that was opened with open. The command
// opens none as text.
func OfRows(ignoreCase, nullMisfits bool, open *source.OpenOptions) []string {
	words := OfKeys(ignoreCase, nullMisfits)
	if c, err := where.Parse(open.Where); open.Where != "" && err == nil {
		words = append(words, "where "+c.String())
	}
	if open.SampleKeys > 0 {
		words = append(words, fmt.Sprint("sample ", open.SampleKeys, " by ", open.SampleBy))
	}
	if open.IgnoreCase != ignoreCase {
		words = append(words, fmt.Sprint("ignore case of columns ", open.IgnoreCase))
	}
	if len(open.OtherNames) > 0 {
		words = append(words, fmt.Sprintf("names %q", open.OtherNames))
	}
	if open.Text {
		words = append(words, fmt.Sprintf("text %q", []any{open.TextFormat, open.Encoding, open.Delimiter, open.NoHeader, open.Nested, open.Column, open.Types, open.SkipBad}))
	}
	return words
}

// Uses returns a [Run].Uses for a scan of the log, which was opened with open. sides has the keys.
func Uses(scan *keyscan.ScanOptions, open *source.OpenOptions, sides []dataset.Match, log []*source.File) func(column string) bool {
	names := slices.Concat(scan.Columns, open.OtherNames, []string{open.Where, open.SampleBy})
	for _, m := range sides {
		if names = append(names, m.Key); m.Key == "" {
			names = append(names, (*filters.Filter)(m.Filter).KeyNames()...)
		}
	}
	between := func(c rune) bool { return c != '_' && c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	words := strings.FieldsFunc(strings.Join(names, " "), between)
	return func(column string) bool {
		return scan.Pinned != nil || strings.ContainsFunc(column, between) ||
			slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, column) }) ||
			(len(scan.Columns) == 0 || strings.Contains(strings.Join(scan.Columns, ","), "*")) && !slices.Contains(source.Mirrored(log), column)
	}
}
