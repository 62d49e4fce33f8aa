package joins_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	v15 "github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/source"
)

// form is how a table is stored: in files of one format, with random details.
type form struct {
	format dataset.Format
	files  int
	groups int  // rows in a row group or record batch, at most
	mixed  bool // the files are of Parquet and Arrow
	table  bool // they are of a Delta or Iceberg table with deleted rows, if one can have the columns
	seed   uint64
}

func drawForm(r *rand.Rand, ids bool) form {
	f := form{files: 1 + r.IntN(3), groups: choose(r, 3, 10, 50, 1000), seed: r.Uint64()}
	f.format = choose(r, dataset.Parquet, dataset.Parquet, dataset.ArrowFile, dataset.ArrowFile, dataset.ArrowStream)
	if ids && r.IntN(3) == 0 {
		f.format = choose(r, dataset.CSV, dataset.TSV, dataset.NDJSON, dataset.Lines)
		return f
	}
	if f.format == dataset.ArrowStream && r.IntN(2) == 0 { // it may be standard input
		f.files = 1
	}
	f.mixed = f.files > 1 && r.IntN(4) == 0
	f.table = f.format == dataset.Parquet && !f.mixed && r.IntN(2) == 0
	return f
}

// dictionaries reports whether the format stores them. Parquet does, but not with the
// writers of these tests.
func (f form) dictionaries() bool {
	return !f.mixed && (f.format == dataset.ArrowFile || f.format == dataset.ArrowStream)
}

// holds reports whether the form can hold a column of a type next to the key.
func (f form) holds(dt arrow.DataType) bool {
	switch {
	case dt.ID() == arrow.LIST_VIEW, dt.ID() == arrow.LARGE_LIST_VIEW: // arrow/go cannot write slices of them
		return false
	case f.mixed:
		return sameInParquet(dt)
	case f.table:
		return inDelta(dt)
	}
	return f.format != dataset.Parquet || inParquet(dt) != nil
}

// sameInParquet reports whether a type is the same in Parquet and Arrow files, so that one
// table may have both.
func sameInParquet(dt arrow.DataType) bool {
	in := inParquet(dt)
	return in != nil && arrow.TypeEqual(in, dt)
}

// inDelta reports whether a Delta table can have a type.
func inDelta(dt arrow.DataType) bool {
	_, ok := laketest.Type(dt)
	return ok && sameInParquet(dt)
}

// withDeleted returns the rows from lo to hi, exclusive, with some rows of the table in between, and
// where these are.
func (f form) withDeleted(r *rand.Rand, d columnar, lo, hi int) (columnar, []int64) {
	var rows []int
	var gone []int64
	most := choose(r, 1, 3, f.groups, 2*f.groups)
	for i := lo; i <= hi; i++ {
		for r.IntN(3) == 0 && d.rows > 0 {
			for range 1 + r.IntN(most) {
				gone = append(gone, int64(len(rows)))
				rows = append(rows, r.IntN(d.rows))
			}
		}
		if i < hi {
			rows = append(rows, i)
		}
	}
	return d.subset(rows), gone
}

func (f form) String() string {
	if f.mixed {
		return fmt.Sprintf("%d files of Parquet and Arrow by %d rows", f.files, f.groups)
	}
	return fmt.Sprintf("%d files of %s by %d rows", f.files, f.format, f.groups)
}

// fit replaces values that the format cannot represent: empty strings in CSV, TSV and
// lines, tabs in TSV, NULL in lines.
func (f form) fit(d columnar) columnar {
	if !source.IsText(f.format) || f.format == dataset.NDJSON {
		return d
	}
	var rows []int
	for i := range d.rows {
		gone := false
		for _, l := range d.leaves {
			v := &l.cells[i]
			if f.format != dataset.CSV {
				*v = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(*v)
			}
			if *v == "" {
				*v = null
			}
			gone = gone || f.format == dataset.Lines && *v == null
		}
		if !gone {
			rows = append(rows, i)
		}
	}
	return d.subset(rows)
}

// write stores the table in a new directory and returns its name.
func (f form) write(t testing.TB, d columnar) string {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(f.seed, 8))
	ours := r.IntN(2) == 0 || slices.ContainsFunc(d.leaves, otherInParquet)
	files := f.files
	if f.format == dataset.NDJSON { // without rows it has no columns
		files = max(min(files, d.rows), 1)
	}
	var table laketest.Drawn
	var actions []any
	if f.table {
		rec := d.between(0, 0).record(t)
		table = laketest.Draw(t, rec.Schema(), f.seed)
		rec.Release()
	}
	for i := range files {
		if f.mixed {
			f.format = []dataset.Format{dataset.Parquet, dataset.ArrowFile, dataset.ArrowStream}[(int(f.seed%3)+i)%3]
		}
		lo, hi := i*d.rows/files, (i+1)*d.rows/files
		part, gone := d.between(lo, hi), []int64(nil)
		if table != nil {
			part, gone = f.withDeleted(r, d, lo, hi)
		}
		var b buffer
		switch f.format {
		case dataset.Parquet:
			f.parquet(t, r, &b, part, ours)
		case dataset.ArrowFile, dataset.ArrowStream:
			f.arrow(t, r, &b, part)
		default:
			part.text(t, r, f.format, &b.Buffer)
		}
		ending := map[dataset.Format]string{dataset.ArrowFile: "arrow", dataset.ArrowStream: "arrows", dataset.Lines: "ids"}[f.format]
		if ending == "" {
			ending = string(f.format)
		}
		if table != nil {
			actions = append(actions, table.Add(fmt.Sprintf("%03d.parquet", i), b.String(), gone))
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.%s", i, ending)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if table != nil {
		table.Commit(actions...)
		return table.Name()
	}
	return dir
}

// buffer is a file that is only asked for its size.
type buffer struct{ bytes.Buffer }

func (b *buffer) Seek(int64, int) (int64, error) { return int64(b.Len()), nil }

// otherInParquet reports whether arrow/go v15 writes a column as another class (date64
// as instants; timestamps in zones other than UTC as without zone, and those without
// zone as with one) or with other values (fixed-size bytes next to NULLs of a struct).
func otherInParquet(l leaf) bool {
	if l.json {
		return true
	}
	if id := l.dt.ID(); len(l.path) > 1 && (id == arrow.DECIMAL128 || id == arrow.FIXED_SIZE_BINARY) {
		return true
	}
	ts, ok := l.dt.(*arrow.TimestampType)
	return l.dt.ID() == arrow.DATE64 || ok && ts.TimeZone != "UTC"
}

// groupsOf calls fn with a record for each row group; there is at least one.
func (f form) groupsOf(t testing.TB, d columnar, fn func(arrow.Record) error) {
	for lo := 0; lo == 0 || lo < d.rows; lo += f.groups {
		rec := d.between(lo, min(lo+f.groups, d.rows)).record(t)
		err := fn(rec)
		rec.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (f form) parquet(t testing.TB, r *rand.Rand, out io.Writer, d columnar, ours bool) {
	empty := d.between(0, 0).record(t)
	defer empty.Release()
	if ours || bits.UintSize < 64 { // with a page index; arrow/go's writer panics on 32 bits, because of an unaligned counter
		w, err := arrowparquet.NewParquetWriter(out, empty.Schema(), arrowparquet.WriterOptions{RowGroupRows: int64(f.groups), Codec: choose(r, "snappy", "snappy", "none", "zstd")})
		if err != nil {
			t.Fatal(err)
		}
		f.groupsOf(t, d, w.Write)
		if _, _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	props := parquet.NewWriterProperties(
		parquet.WithDataPageSize(choose(r, int64(40), 300, 1<<20)), parquet.WithBatchSize(choose(r, int64(4), 1024)),
		parquet.WithDictionaryDefault(r.IntN(2) == 0), parquet.WithDictionaryPageSizeLimit(choose(r, int64(64), 1<<20)),
		parquet.WithCompression(choose(r, compress.Codecs.Snappy, compress.Codecs.Uncompressed)),
		parquet.WithStats(r.IntN(2) == 0))
	w, err := pqarrow.NewFileWriter(empty.Schema(), out, props, pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	f.groupsOf(t, d, func(rec arrow.Record) error {
		if rec.NumRows() == 0 {
			return nil
		}
		return w.Write(rec)
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// arrow writes slices of one record, since an Arrow file has one dictionary per column; or
// into a stream, sometimes, records with dictionaries of their own. Some batches are empty.
func (f form) arrow(t testing.TB, r *rand.Rand, out *buffer, d columnar) {
	whole := d.record(t)
	defer whole.Release()
	rec := asStored(whole)
	defer rec.Release()
	opts := []ipc.Option{ipc.WithSchema(rec.Schema())}
	switch r.IntN(6) {
	case 0:
		opts = append(opts, ipc.WithLZ4())
	case 1:
		opts = append(opts, ipc.WithZstd())
	}
	var w interface {
		Write(arrow.Record) error
		Close() error
	} = ipc.NewWriter(out, opts...)
	if f.format == dataset.ArrowFile {
		fw, err := ipc.NewFileWriter(out, opts...)
		if err != nil {
			t.Fatal(err)
		}
		w = fw
	}
	apart := f.format == dataset.ArrowStream && r.IntN(3) == 0
	write := func(s arrow.Record) {
		defer s.Release()
		if err := w.Write(s); err != nil {
			t.Fatalf("%s: %v", s.Schema(), err)
		}
	}
	for lo := 0; lo < d.rows; lo += f.groups {
		if r.IntN(8) == 0 {
			write(emptied(t, rec))
		}
		if hi := min(lo+f.groups, d.rows); apart {
			part := d.between(lo, hi).record(t)
			write(asStored(part))
			part.Release()
		} else {
			write(rec.NewSlice(int64(lo), int64(hi)))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// text writes the table as a text file.
func (d columnar) text(t testing.TB, r *rand.Rand, format dataset.Format, out *bytes.Buffer) {
	t.Helper()
	var names []string
	for _, l := range d.leaves {
		names = append(names, l.path[0])
	}
	quoted := csv.NewWriter(out)
	head := func() {
		switch format {
		case dataset.CSV:
			quoted.Write(names)
		case dataset.TSV:
			fmt.Fprintln(out, strings.Join(names, "\t"))
		}
	}
	head()
	for i := range d.rows {
		cells := make([]string, len(d.leaves))
		for c, l := range d.leaves {
			if l.cells[i] != null {
				cells[c] = asText(l.dt, l.cells[i])
			}
		}
		switch format {
		case dataset.CSV:
			quoted.Write(cells)
		case dataset.TSV, dataset.Lines:
			fmt.Fprintln(out, strings.Join(cells, "\t"))
		case dataset.NDJSON:
			var fields []string
			for c, l := range d.leaves {
				v, err := json.Marshal(cells[c])
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case l.cells[i] == null && i > 0 && r.IntN(2) == 0:
					continue // a missing key is NULL
				case l.cells[i] == null:
					v = []byte("null")
				case arrow.IsInteger(l.dt.ID()) && r.IntN(2) == 0:
					v = []byte(cells[c])
				}
				k, err := json.Marshal(names[c])
				if err != nil {
					t.Fatal(err)
				}
				fields = append(fields, string(k)+": "+string(v))
			}
			fmt.Fprintf(out, "{%s}\n", strings.Join(fields, ", "))
		}
	}
	quoted.Flush()
}

// stored reads the rows of an output and the names of its columns with arrow/go, or
// Parquet with our reader, if it has types with which arrow/go's panics.
func stored(t testing.TB, b []byte, format dataset.Format, ours bool) (columns string, rows []string, err error) {
	t.Helper()
	show := func(rec arrow.Record) {
		for i := range int(rec.NumRows()) {
			rows = append(rows, showRow(t, rec, i))
		}
	}
	switch format {
	case dataset.Parquet:
		f, err := v15.NewParquetReader(bytes.NewReader(b))
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		if ours || bits.UintSize < 64 { // arrow/go's reader panics on 32 bits, because of an unaligned counter
			p, err := arrowparquet.OpenParquet(bytes.NewReader(b), int64(len(b)), "stored", arrowparquet.ParquetOptions{})
			if err != nil {
				return "", nil, err
			}
			for g := range p.NumGroups() {
				for rec, err := range p.Read(t.Context(), g, nil) {
					if err != nil {
						return "", nil, err
					}
					show(rec)
				}
			}
			return names(p.Schema()), rows, nil
		}
		r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			return "", nil, err
		}
		whole, err := r.ReadTable(t.Context())
		if err != nil {
			return "", nil, err
		}
		defer whole.Release()
		tr := array.NewTableReader(whole, 0)
		defer tr.Release()
		for tr.Next() {
			show(tr.Record())
		}
		return names(whole.Schema()), rows, tr.Err()
	case dataset.ArrowFile:
		f, err := ipc.NewFileReader(bytes.NewReader(b))
		if err != nil {
			return "", nil, err
		}
		defer f.Close()
		for i := range f.NumRecords() {
			rec, err := f.Record(i)
			if err != nil {
				return "", nil, err
			}
			show(rec)
		}
		return names(f.Schema()), rows, nil
	}
	f, err := ipc.NewReader(bytes.NewReader(b))
	if err != nil {
		return "", nil, err
	}
	if bits.UintSize == 64 { // as above
		defer f.Release()
	}
	for f.Next() {
		show(f.Record())
	}
	return names(f.Schema()), rows, f.Err()
}
