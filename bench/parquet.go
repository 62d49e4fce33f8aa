package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"golang.org/x/sync/errgroup"
)

const (
	pageBytes = 1 << 20
	batchRows = 4 << 10   // written at a time
	groupRows = 1_000_000 // of a row group
)

// Write writes the data to a directory. Only a row group is in memory at a time.
func (d Data) Write(dir string) error {
	if d.Rows == 0 || d.Members > min(d.Rows, d.users()) {
		return fmt.Errorf("%s: want rows, and no more members than rows and users", d.Name())
	}
	path := filepath.Join(dir, d.file())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case d.Kind == "lines" || d.Kind == "csv":
		return d.writeText(path)
	case d.Kind != "log" && d.Kind != "ids":
		return fmt.Errorf("no data of kind %q", d.Kind)
	case d.Files == 0:
		return d.writeParquet(path, d.First, d.First+d.Rows)
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range d.Files {
		group.Go(func() error {
			part := filepath.Join(path, d.part(i))
			if err := os.MkdirAll(filepath.Dir(part), 0o755); err != nil {
				return err
			}
			return d.writeParquet(part, d.First+i*d.Rows/d.Files, d.First+(i+1)*d.Rows/d.Files)
		})
	}
	return group.Wait()
}

// part returns the name of a file in a directory.
func (d Data) part(i uint64) string {
	if d.Days == 0 {
		return fmt.Sprintf("part-%06d.parquet", i)
	}
	return filepath.Join(dayName(i%d.Days), fmt.Sprintf("part-%06d.parquet", i/d.Days))
}

// dayName returns the name of the directory of a day.
func dayName(day uint64) string { return fmt.Sprintf("dt=2024-%02d-%02d", 1+day/28, 1+day%28) }

// writeParquet writes rows [from, to).
func (d Data) writeParquet(path string, from, to uint64) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); !errors.Is(closed, os.ErrClosed) { // the writer has closed it
			err = errors.Join(err, closed)
		}
	}()
	columns, userOf := d.event(), d.userOf
	if d.Kind == "ids" {
		columns, userOf = d.payload(), func(row uint64) uint64 { return d.idOf(row - d.First) }
	}
	var nodes schema.FieldList
	for _, c := range columns {
		nodes = append(nodes, c.node)
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return err
	}
	w := file.NewParquetWriter(f, root, file.WithWriterProps(d.properties()))
	group := d.Group
	if group == 0 {
		group = groupRows
	}
	for ; from < to; from += group {
		if err := writeGroup(w, columns, userOf, from, min(from+group, to)); err != nil {
			return err
		}
	}
	return w.Close()
}

func (d Data) properties() *parquet.WriterProperties {
	options := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageSize(pageBytes), parquet.WithPageIndexEnabled(d.Index),
		parquet.WithDictionaryDefault(d.Kind == "log"), // keys of IDs are distinct
		parquet.WithDataPageVersion(parquet.DataPageV1),
	}
	if d.codec() == "zstd" {
		options = append(options, parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1))
	}
	return parquet.NewWriterProperties(options...)
}

func writeGroup(w *file.Writer, columns []column, userOf func(uint64) uint64, from, to uint64) error {
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	users := make([]uint64, to-from)
	for i := range users {
		users[i] = userOf(from + uint64(i))
	}
	for _, c := range columns {
		chunk, err := group.NextColumn()
		if err != nil {
			return err
		}
		for at := 0; at < len(users); at += batchRows {
			if err := c.put(chunk, from+uint64(at), users[at:min(at+batchRows, len(users))]); err != nil {
				return err
			}
		}
		if err := chunk.Close(); err != nil {
			return err
		}
	}
	return group.Close()
}

// writeText writes IDs as text: one a line with gzip, or the first of three columns of CSV.
func (d Data) writeText(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffered := bufio.NewWriterSize(f, 1<<20)
	var w io.WriteCloser = struct {
		io.Writer
		io.Closer
	}{buffered, io.NopCloser(nil)}
	end := "\n"
	if strings.HasSuffix(path, ".gz") {
		w = gzip.NewWriter(buffered)
	} else {
		end = ",12345,Mary\n"
		if _, err := io.WriteString(w, keyColumn+",score,name\n"); err != nil {
			return err
		}
	}
	var line []byte
	for row := range d.Rows {
		line = append(d.appendKey(line[:0], d.idOf(row)), end...)
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), buffered.Flush())
}
