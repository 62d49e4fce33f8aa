// Command needed computes how many bytes of a Parquet file a semi-join needs:
//
//	needed -key COLUMN LOG IDS
//
// It prints them as JSON: the pages of the key whose bounds in the page index leave
// room for an ID, the pages of the other columns that hold a row whose key is an ID,
// and the dictionaries of these pages. It reads the file with parquet-go, which shares
// nothing with bloomjoin. Keys are integers of 64 bits.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "needed:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

// need has the bytes that a join needs.
type need struct {
	Rows         int64 `json:"rows"`         // of the log
	Kept         int64 `json:"kept"`         // rows of the answer
	Keys         int64 `json:"keys"`         // pages of the key
	Pages        int64 `json:"pages"`        // pages of other columns
	Dictionaries int64 `json:"dictionaries"` // of all these pages
	Index        int64 `json:"index"`        // footer and page index
}

func run(args []string) error {
	flags := flag.NewFlagSet("needed", flag.ContinueOnError)
	key := flags.String("key", "user_id", "column to join on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("want a log and IDs, got %q", flags.Args())
	}
	n, err := compute(flags.Arg(0), flags.Arg(1), *key)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(n)
}

func compute(log, ids, key string) (n need, err error) {
	idFile, err := open(ids)
	if err != nil {
		return n, err
	}
	defer idFile.close()
	var wanted []int64
	for _, g := range idFile.RowGroups() {
		column, err := columnOf(g, key)
		if err != nil {
			return n, fmt.Errorf("%s: %w", ids, err)
		}
		if wanted, err = values(wanted, g.ColumnChunks()[column]); err != nil {
			return n, fmt.Errorf("%s: %w", ids, err)
		}
	}
	slices.Sort(wanted)
	f, err := open(log)
	if err != nil {
		return n, err
	}
	defer f.close()
	n.Rows, n.Index = f.NumRows(), f.index()
	for i, g := range f.RowGroups() {
		column, err := columnOf(g, key)
		if err == nil {
			err = n.group(f, i, column, wanted)
		}
		if err != nil {
			return n, fmt.Errorf("%s: row group %d: %w", log, i, err)
		}
	}
	return n, nil
}

// group adds what is needed of a row group.
func (n *need) group(f *file, group, key int, wanted []int64) error {
	read, err := f.between(group, key, wanted)
	if err != nil || len(read) == 0 {
		return err
	}
	var keys []int64
	if keys, err = values(keys, f.RowGroups()[group].ColumnChunks()[key]); err != nil {
		return err
	}
	var rows []int64
	for row, k := range keys {
		if _, ok := slices.BinarySearch(wanted, k); ok {
			rows = append(rows, int64(row))
		}
	}
	n.Kept += int64(len(rows))
	for column := range f.RowGroups()[group].ColumnChunks() {
		pages, into := f.holding(group, column, rows), &n.Pages
		if column == key {
			pages, into = read, &n.Keys
		}
		for _, p := range pages {
			*into += p.size
		}
		size, err := f.dictionary(group, column, pages)
		if err != nil {
			return err
		}
		n.Dictionaries += size
	}
	return nil
}

// values appends the values of a column chunk, which has no NULLs.
func values(dst []int64, chunk parquet.ColumnChunk) ([]int64, error) {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }()
	buffer := make([]parquet.Value, 4<<10)
	for {
		p, err := pages.ReadPage()
		if err != nil {
			return dst, ended(err)
		}
		for from := p.Values(); ; {
			n, err := from.ReadValues(buffer)
			for _, v := range buffer[:n] {
				if v.IsNull() || v.Kind() != parquet.Int64 {
					return dst, fmt.Errorf("key of kind %s, want integers of 64 bits", v.Kind())
				}
				dst = append(dst, v.Int64())
			}
			if err != nil {
				if err = ended(err); err != nil {
					return dst, err
				}
				break
			}
		}
		parquet.Release(p)
	}
}
