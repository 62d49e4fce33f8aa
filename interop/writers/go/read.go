package main

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// readAll reads files. Each line of in is LEAVES, tab, PATH; for each, out gets a
// line PATH, tab, and a hash of the first LEAVES leaves of each row, separated by
// blanks, or what went wrong.
func readAll(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		count, path, _ := strings.Cut(lines.Text(), "\t")
		leaves, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		rows, err := hashes(path, leaves)
		answer := strings.Join(rows, " ")
		if err != nil {
			answer = "error: " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\n", path, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// hashes returns one hash for each row of a file. A NULL is the same whatever
// its definition level.
func hashes(path string, leaves int) (all []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 64)
		for {
			n, err := rows.ReadRows(buffer)
			for _, row := range buffer[:n] {
				all = append(all, hash(row, leaves))
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, errors.Join(err, rows.Close())
			}
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func hash(row parquet.Row, leaves int) string {
	h := fnv.New64a()
	for _, v := range row {
		if v.Column() < leaves {
			fmt.Fprintf(h, "%d %d %t %x\n", v.Column(), v.RepetitionLevel(), v.IsNull(), v.Bytes())
		}
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
