// Command floor does the minimum work of any scan of a Parquet file: it reads and
// decompresses every page, and discards it.
//
//	floor [-threads N] [-columns A,B] [-share F] FILE|DIRECTORY
//
// With -share it also compresses that share of the bytes of every data page again,
// with the codec of the column, which is the minimum work to copy that share of the
// rows. Nothing is written.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	threads := flags.Int("threads", 2, "column chunks at a time")
	columns := flags.String("columns", "", "columns to read, separated by commas (default: all)")
	share := flags.Float64("share", 0, "share of the bytes to compress again, 0 to 1")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *share < 0 || *share > 1 || *threads < 1 {
		return fmt.Errorf("want one file or directory, a share from 0 to 1, and threads")
	}
	chunks, err := list(flags.Arg(0), *columns)
	if err != nil {
		return err
	}
	sum, err := walk(chunks, *threads, *share)
	if err == nil {
		fmt.Fprintf(os.Stdout, "%d pages, %d bytes stored, %d decompressed, %d compressed again to %d\n",
			sum.pages, sum.stored, sum.plain, sum.taken, sum.packed)
	}
	return err
}

// chunk is a column chunk: bytes [begin, end) of a file.
type chunk struct {
	file       *os.File
	column     string
	codec      format.CompressionCodec
	begin, end int64
}

// list returns the chunks of a file, or of the files below a directory, in order. The
// files stay open until the process exits.
func list(root, columns string) (chunks []chunk, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		chunks = append(chunks, chunksOf(f, p.Metadata(), columns)...)
		return nil
	})
	return chunks, err
}

func chunksOf(f *os.File, meta *format.FileMetaData, columns string) (chunks []chunk) {
	wanted := strings.Split(columns, ",")
	for _, group := range meta.RowGroups {
		for _, column := range group.Columns {
			m := column.MetaData
			name := strings.Join(m.PathInSchema, ".")
			if columns != "" && !slices.Contains(wanted, name) {
				continue
			}
			begin := m.DataPageOffset
			if m.DictionaryPageOffset > 0 {
				begin = min(begin, m.DictionaryPageOffset)
			}
			chunks = append(chunks, chunk{f, name, m.Codec, begin, begin + m.TotalCompressedSize})
		}
	}
	return chunks
}

// walk distributes the chunks to workers.
func walk(chunks []chunk, threads int, share float64) (sum totals, err error) {
	var next atomic.Int64
	var group errgroup.Group
	workers := make([]*worker, threads)
	for i := range workers {
		w := newWorker(share)
		workers[i] = w
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(chunks) {
					return w.flush()
				}
				if err := w.chunk(chunks[n]); err != nil {
					return fmt.Errorf("%s: column %s at byte %d: %w", chunks[n].file.Name(), chunks[n].column, chunks[n].begin, err)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return sum, err
	}
	for _, w := range workers {
		sum.add(w.totals)
	}
	return sum, nil
}
