package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// checkOutput checks the number of rows and the codec of all chunks in an output's
// footer. It returns the file's size.
func checkOutput(path string, rows int64, codec string) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	p, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	if p.NumRows() != rows {
		return 0, fmt.Errorf("the output has %d rows, want %d", p.NumRows(), rows)
	}
	for _, group := range p.Metadata().RowGroups {
		for _, column := range group.Columns {
			if got := column.MetaData.Codec.String(); !strings.EqualFold(got, codec) {
				return 0, fmt.Errorf("column %s of the output is compressed by %s, want %s", column.MetaData.PathInSchema, got, codec)
			}
		}
	}
	return info.Size(), nil
}

// digestOf returns DuckDB's digest of an output: for each column the number of values
// and the sum of their hashes. It does not depend on the order of rows.
func digestOf(ctx context.Context, python, path string) (digest map[string]string, err error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", race.Script(scripts, "digest"), path)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("digest of %s: %w\n%s", path, err, race.Tail(complaint.String(), 20))
	}
	return digest, json.Unmarshal(out.Bytes(), &digest)
}

// sameDigest compares the digests of two contenders' outputs.
func sameDigest(name string, got map[string]string, other string, want map[string]string) error {
	if len(got) != len(want) {
		return fmt.Errorf("the output of %s has %d columns, that of %s %d", name, len(got), other, len(want))
	}
	for column, value := range want {
		if got[column] != value {
			return fmt.Errorf("column %s: the output of %s has %q, that of %s %q", column, name, got[column], other, value)
		}
	}
	return nil
}
