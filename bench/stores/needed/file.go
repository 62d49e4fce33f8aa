package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// file is a Parquet file with a page index.
type file struct {
	*parquet.File
	stored *os.File
}

func open(path string) (*file, error) {
	stored, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := stored.Stat()
	if err == nil {
		var f *parquet.File
		if f, err = parquet.OpenFile(stored, info.Size(), parquet.SkipBloomFilters(true)); err == nil {
			return &file{f, stored}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, err), stored.Close())
}

// close closes a file, which was only read.
func (f *file) close() { _ = f.stored.Close() }

// columnOf returns the index of a column that is not nested.
func columnOf(g parquet.RowGroup, name string) (int, error) {
	leaf, ok := g.Schema().Lookup(name)
	if !ok {
		return 0, fmt.Errorf("no column %s", name)
	}
	return leaf.ColumnIndex, nil
}

// page is a data page: a range of bytes of the file, and of rows of its row group.
type page struct {
	at, size     int64
	first, after int64
}

// pages returns the data pages of a column chunk, and the index of their bounds.
func (f *file) pages(group, column int) (all []page, bounds format.ColumnIndex, err error) {
	g := f.Metadata().RowGroups[group]
	i := group*len(g.Columns) + column
	if i >= len(f.OffsetIndexes()) || i >= len(f.ColumnIndexes()) {
		return nil, bounds, errors.New("no page index")
	}
	locations := f.OffsetIndexes()[i].PageLocations
	for j, l := range locations {
		p := page{at: l.Offset, size: int64(l.CompressedPageSize), first: l.FirstRowIndex, after: g.NumRows}
		if j+1 < len(locations) {
			p.after = locations[j+1].FirstRowIndex
		}
		all = append(all, p)
	}
	return all, f.ColumnIndexes()[i], nil
}

// between returns the pages whose bounds leave room for a wanted value.
func (f *file) between(group, column int, wanted []int64) (chosen []page, err error) {
	all, bounds, err := f.pages(group, column)
	if err != nil {
		return nil, err
	}
	if len(bounds.MinValues) != len(all) || len(bounds.MaxValues) != len(all) {
		return nil, fmt.Errorf("bounds of %d pages, there are %d", len(bounds.MinValues), len(all))
	}
	for i, p := range all {
		low, high := bounds.MinValues[i], bounds.MaxValues[i]
		if len(low) != 8 || len(high) != 8 {
			return nil, fmt.Errorf("page %d: bounds of %d and %d bytes, want integers of 64 bits", i, len(low), len(high))
		}
		at, _ := slices.BinarySearch(wanted, integer(low))
		if at < len(wanted) && wanted[at] <= integer(high) {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

func integer(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

// holding returns the pages that hold one of the rows, which ascend.
func (f *file) holding(group, column int, rows []int64) (chosen []page) {
	all, _, _ := f.pages(group, column) // without an index there are no rows
	for _, p := range all {
		if i, _ := slices.BinarySearch(rows, p.first); i < len(rows) && rows[i] < p.after {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// dictionary returns the size of a chunk's dictionary page if one of the pages uses it.
func (f *file) dictionary(group, column int, pages []page) (int64, error) {
	m := f.Metadata().RowGroups[group].Columns[column].MetaData
	if m.DictionaryPageOffset == 0 {
		return 0, nil
	}
	for _, p := range pages {
		h, err := f.header(p)
		if err != nil {
			return 0, err
		}
		var e format.Encoding
		switch {
		case h.DataPageHeader.Valid:
			e = h.DataPageHeader.V.Encoding
		case h.DataPageHeaderV2.Valid:
			e = h.DataPageHeaderV2.V.Encoding
		}
		if e == format.RLEDictionary || e == format.PlainDictionary {
			return m.DataPageOffset - m.DictionaryPageOffset, nil
		}
	}
	return 0, nil
}

// header reads the header of a page.
func (f *file) header(p page) (h format.PageHeader, err error) {
	b := make([]byte, min(p.size, 4<<10))
	if _, err := f.stored.ReadAt(b, p.at); err != nil {
		return h, err
	}
	err = thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(bytes.NewReader(b))).Decode(&h)
	return h, err
}

// index returns the size of the footer and the page index.
func (f *file) index() int64 {
	tail := make([]byte, 8)
	if _, err := f.stored.ReadAt(tail, f.Size()-8); err != nil {
		return 0
	}
	n := int64(binary.LittleEndian.Uint32(tail)) + 8
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			n += int64(c.ColumnIndexLength) + int64(c.OffsetIndexLength)
		}
	}
	return n
}

// ended returns nil for the end of an input.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
