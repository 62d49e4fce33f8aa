// Command generate writes a Parquet file or a directory of them, and IDs, for
// measurements of many files.
//
//	generate -rows N [-file NAME | -files F -directories D] [-first K] [-extra] DIRECTORY
//	generate -ids N -every M DIRECTORY
//
// Row i of a log, counted from -first over all files, has the key mix(i). Every Mth of
// these is an ID, and the IDs are in ids.parquet. So logs are the same on every machine,
// and logs with different -first have no key in common.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1) //nolint:forbidigo // exit status of the command
	}
}

type row struct {
	UserID int64   `parquet:"user_id"`
	URL    string  `parquet:"url"`
	Agent  string  `parquet:"agent,dict"`
	Time   int64   `parquet:"time"`
	Amount float64 `parquet:"amount"`
}

// wider is a row of a log that has got a column.
type wider struct {
	row   `parquet:",inline"`
	Extra int64 `parquet:"extra"`
}

type id struct {
	UserID int64 `parquet:"user_id"`
}

// mix is a permutation of 64 bits (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func keyOf(i uint64) int64 { return int64(mix(i) >> 2) }

func rowAt(i uint64) row {
	return row{UserID: keyOf(i), URL: fmt.Sprintf("https://example.com/%x", mix(i^1<<40)), Agent: fmt.Sprintf("agent-%d", mix(i^7)%300), Time: 1_700_000_000_000 + int64(i), Amount: float64(mix(i^11)%100_000) / 7}
}

func run(args []string) error {
	flags := flag.NewFlagSet("generate", flag.ContinueOnError)
	ids := flags.Uint64("ids", 0, "rows of the log from which IDs are taken")
	every := flags.Uint64("every", 1, "one row in so many has an ID")
	rows := flags.Uint64("rows", 0, "rows of each file")
	files := flags.Uint64("files", 1, "files")
	directories := flags.Uint64("directories", 1, "directories, dt=YYYY-MM-DD, that share the files alike")
	name := flags.String("file", "", "name of one file below the directory, instead")
	first := flags.Uint64("first", 0, "number of the first row")
	extra := flags.Bool("extra", false, "a further column")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := flags.Arg(0)
	switch {
	case flags.NArg() != 1 || *ids == 0 && *rows == 0 || *directories == 0 || *every == 0:
		return errors.New("want a directory, and -ids or -rows")
	case *ids > 0:
		return write(filepath.Join(dir, "ids.parquet"), 0, *ids / *every, func(i uint64) id { return id{keyOf(i * *every)} })
	case *name != "" && *extra:
		return write(filepath.Join(dir, *name), *first, *rows, func(i uint64) wider { return wider{rowAt(i), int64(i)} })
	case *name != "":
		return write(filepath.Join(dir, *name), *first, *rows, rowAt)
	}
	for f := range *files {
		day := fmt.Sprintf("dt=2024-%02d-%02d", 1+f%*directories/28, 1+f%*directories%28)
		if err := write(filepath.Join(dir, day, fmt.Sprintf("part-%06d.parquet", f / *directories)), *first+f**rows, *rows, rowAt); err != nil {
			return err
		}
	}
	return nil
}

// write writes rows from first on, as at returns them.
func write[T any](name string, first, rows uint64, at func(i uint64) T) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := parquet.NewGenericWriter[T](f, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(50_000))
	batch := make([]T, 0, 1024)
	for i := range rows {
		batch = append(batch, at(first+i))
		if len(batch) == cap(batch) || i+1 == rows {
			if _, err := w.Write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Close()
}
