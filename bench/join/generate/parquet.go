package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

const (
	pageBytes = 1 << 20
	batch     = 8 << 10 // rows written at a time
)

func (c column) node() schema.Node {
	if c.text != nil {
		return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(c.name, parquet.Repetitions.Required,
			schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1))
	}
	return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(c.name, parquet.Repetitions.Required,
		schema.NewIntLogicalType(64, true), parquet.Types.Int64, 0, -1))
}

// write writes the file with row groups of the given size, pages of 1 MiB, snappy
// compression and no dictionaries.
func (t table) write(dir string, group uint64) (err error) {
	f, err := os.Create(filepath.Join(dir, t.name+".parquet"))
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); !errors.Is(closed, os.ErrClosed) { // the writer has closed it
			err = errors.Join(err, closed)
		}
	}()
	var nodes schema.FieldList
	for _, c := range t.columns {
		nodes = append(nodes, c.node())
	}
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
	if err != nil {
		return err
	}
	w := file.NewParquetWriter(f, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(pageBytes),
	)))
	for from := uint64(0); from < t.rows; from += group {
		if err := t.writeGroup(w, from, min(from+group, t.rows)); err != nil {
			return err
		}
	}
	return w.Close()
}

func (t table) writeGroup(w *file.Writer, from, to uint64) error {
	rows, err := w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	keys := t.keys(from, to)
	for _, c := range t.columns {
		chunk, err := rows.NextColumn()
		if err != nil {
			return err
		}
		for at := from; at < to; at += batch {
			if err := c.put(chunk, at, keys[at-from:min(at+batch, to)-from]); err != nil {
				return err
			}
		}
		if err := chunk.Close(); err != nil {
			return err
		}
	}
	return rows.Close()
}

// put writes the values of consecutive rows with the given keys.
func (c column) put(w file.ColumnChunkWriter, row uint64, keys []uint64) (err error) {
	if c.text == nil {
		values := make([]int64, len(keys))
		for i, k := range keys {
			values[i] = c.integer(row+uint64(i), k)
		}
		_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(values, nil, nil)
		return err
	}
	values := make([]parquet.ByteArray, len(keys))
	for i, k := range keys {
		values[i] = c.text(make([]byte, 0, 16), row+uint64(i), k)
	}
	_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(values, nil, nil)
	return err
}
