package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	arrow "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/parquet-go/parquet-go"
)

// batch has keys of one type: integers, or strings that are valid until the next batch
// is read.
type batch struct {
	ints    []int64
	strings []arrow.ByteArray
}

func (b batch) len() int { return len(b.ints) + len(b.strings) }

const batchRows = 8 << 10

// reader reads the first column of files.
type reader struct {
	footer func(path string) (groups int, rows int64, err error)
	read   func(p piece, yield func(batch)) error
}

var readers = map[string]reader{
	"arrow-go": {arrowFooter, readArrow},
	"pages":    {parquetFooter, readPages},
	"rows":     {parquetFooter, readRows},
}

func arrowFooter(path string) (groups int, rows int64, err error) {
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return 0, 0, err
	}
	return r.NumRowGroups(), r.NumRows(), r.Close()
}

// readArrow reads batches with arrow-go's column reader.
func readArrow(p piece, yield func(batch)) (err error) {
	r, err := file.OpenParquetFile(p.path, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	column, err := r.RowGroup(p.group).Column(0)
	if err != nil {
		return err
	}
	switch c := column.(type) {
	case *file.Int64ColumnChunkReader:
		values := make([]int64, batchRows)
		for c.HasNext() {
			_, n, err := c.ReadBatch(batchRows, values, nil, nil)
			if err != nil {
				return err
			}
			yield(batch{ints: values[:n]})
		}
	case *file.ByteArrayColumnChunkReader:
		values := make([]arrow.ByteArray, batchRows)
		for c.HasNext() {
			_, n, err := c.ReadBatch(batchRows, values, nil, nil)
			if err != nil {
				return err
			}
			yield(batch{strings: values[:n]})
		}
	default:
		return fmt.Errorf("a column of %s", column.Type())
	}
	return column.Err()
}

// opened opens a file with parquet-go. The caller closes it.
func opened(path string) (*parquet.File, *os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, f, err
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	return p, f, err
}

func parquetFooter(path string) (groups int, rows int64, err error) {
	p, f, err := opened(path)
	defer func() { _ = f.Close() }()
	if err != nil {
		return 0, 0, err
	}
	return len(p.RowGroups()), p.NumRows(), nil
}

// readPages reads batches of integers from parquet-go's pages.
func readPages(p piece, yield func(batch)) (err error) {
	opened, f, err := opened(p.path)
	defer func() { _ = f.Close() }()
	if err != nil {
		return err
	}
	pages := opened.RowGroups()[p.group].ColumnChunks()[0].Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	values := make([]int64, batchRows)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		ints, ok := page.Values().(parquet.Int64Reader)
		if !ok {
			return errors.New("pages are read of integers alone")
		}
		for err == nil {
			var n int
			n, err = ints.ReadInt64s(values)
			yield(batch{ints: values[:n]})
		}
		parquet.Release(page)
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// readRows reads integers with parquet-go's generic reader.
func readRows(p piece, yield func(batch)) (err error) {
	opened, f, err := opened(p.path)
	defer func() { _ = f.Close() }()
	if err != nil {
		return err
	}
	type row struct {
		ID int64 `parquet:"id"`
	}
	r := parquet.NewGenericRowGroupReader[row](opened.RowGroups()[p.group])
	defer func() { err = errors.Join(err, r.Close()) }()
	rows, values := make([]row, batchRows), make([]int64, batchRows)
	for {
		n, err := r.Read(rows)
		for i, row := range rows[:n] {
			values[i] = row.ID
		}
		yield(batch{ints: values[:n]})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
