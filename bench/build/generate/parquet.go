package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
)

// column is the name of the only column.
const column = "id"

const (
	pageBytes = 1 << 20
	batch     = 8 << 10 // rows written at a time
	groups    = 100     // row groups per file; large files have a million rows in each
)

// integers writes a file of 64-bit integers.
func (r request) integers(p part) error {
	node := schema.MustPrimitive(schema.NewPrimitiveNodeLogical(column, parquet.Repetitions.Required,
		schema.NewIntLogicalType(64, true), parquet.Types.Int64, 0, -1))
	ids, values := r.ids(), make([]int64, batch)
	return r.write(p, node, func(w file.ColumnChunkWriter, from, to uint64) error {
		for i := range to - from {
			values[i] = int64(ids.At(p.key(from + i)))
		}
		_, err := w.(*file.Int64ColumnChunkWriter).WriteBatch(values[:to-from], nil, nil)
		return err
	})
}

// strings writes a file of string IDs.
func (r request) strings(p part) error {
	return r.texts(p, func(dst []byte, row uint64) []byte { return keyset.AppendText(dst, p.key(row)) })
}

// decimals writes a file of integers as strings.
func (r request) decimals(p part) error {
	ids := r.ids()
	return r.texts(p, func(dst []byte, row uint64) []byte { return strconv.AppendUint(dst, ids.At(p.key(row)), 10) })
}

// texts writes a file with the strings that appended appends.
func (r request) texts(p part, appended func(dst []byte, row uint64) []byte) error {
	node := schema.MustPrimitive(schema.NewPrimitiveNodeLogical(column, parquet.Repetitions.Required,
		schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1))
	values, buffer := make([]parquet.ByteArray, batch), make([]byte, 0, batch*keyset.MaxText)
	return r.write(p, node, func(w file.ColumnChunkWriter, from, to uint64) error {
		buffer = buffer[:0] // must not grow: values point into it
		for i := range to - from {
			at := len(buffer)
			buffer = appended(buffer, from+i)
			values[i] = buffer[at:]
		}
		_, err := w.(*file.ByteArrayColumnChunkWriter).WriteBatch(values[:to-from], nil, nil)
		return err
	})
}

// write writes a file with one column. put fills rows [from, to), a batch at a time. If
// dictionaries are allowed, the writer uses its default: up to 1 MiB.
func (r request) write(p part, node schema.Node, put func(w file.ColumnChunkWriter, from, to uint64) error) (err error) {
	f, err := os.Create(filepath.Join(r.dir, p.name+".parquet"))
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); !errors.Is(closed, os.ErrClosed) { // the writer has closed it
			err = errors.Join(err, closed)
		}
	}()
	root, err := schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{node}, -1)
	if err != nil {
		return err
	}
	w := file.NewParquetWriter(f, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDictionaryDefault(p.dictionary), parquet.WithDataPageSize(pageBytes),
	)))
	group := max((p.to-p.from)/groups, 1)
	for from := p.from; from < p.to; from += group {
		if err := writeGroup(w, from, min(from+group, p.to), put); err != nil {
			return err
		}
	}
	return w.Close()
}

func writeGroup(w *file.Writer, from, to uint64, put func(w file.ColumnChunkWriter, from, to uint64) error) error {
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		return err
	}
	chunk, err := group.NextColumn()
	if err != nil {
		return err
	}
	for from < to {
		next := min(from+batch, to)
		if err := put(chunk, from, next); err != nil {
			return err
		}
		from = next
	}
	if err := chunk.Close(); err != nil {
		return err
	}
	return group.Close()
}
