package bloomjoin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// What a program has not got from a function returns an error or nothing, and does not
// crash.
func TestDoorZeroValues(t *testing.T) {
	ctx := t.Context()
	for what, s := range map[string]*partition.Scanner{"nil": nil, "zero": new(partition.Scanner)} {
		if got := s.Stats(); got != (partition.ScanStats{}) {
			t.Errorf("a %s Scanner: %+v", what, got)
		}
		if err := s.Count(ctx, nil); err == nil {
			t.Errorf("a %s Scanner counts", what)
		}
		for _, err := range s.Scan(ctx, nil) {
			if err == nil {
				t.Errorf("a %s Scanner scans", what)
			}
		}
		out := partition.Output{Name: filepath.Join(t.TempDir(), "o.parquet")}
		if _, err := out.WriteScan(ctx, s, nil, nil); err == nil {
			t.Errorf("a %s Scanner writes", what)
		}
	}
	for what, in := range map[string]*partition.Inputs{"nil": nil, "zero": new(partition.Inputs)} {
		if files, pieces, err := in.Open(ctx, dataset.Shard{}); len(files)+len(pieces) > 0 || (err == nil) != (in != nil) {
			t.Errorf("%s Inputs: %v, %v, %v", what, files, pieces, err)
		}
		if err := in.Close(); err != nil {
			t.Errorf("%s Inputs: %v", what, err)
		}
	}
	if err := partition.Close([]*partition.File{nil, new(partition.File)}); err == nil {
		t.Error("files that nobody has opened are closed")
	}
	for what, j := range map[string]*join.Join{"nil": nil, "zero": new(join.Join)} {
		if _, err := j.Write(ctx, partition.Output{Name: filepath.Join(t.TempDir(), "o.parquet")}); err == nil {
			t.Errorf("a %s Join is written", what)
		}
		if rep := j.Report(); rep.RowsIn != 0 || rep.Plan != nil || j.Schema(0) != nil {
			t.Errorf("a %s Join has a report or a schema: %+v", what, rep)
		}
	}
}

// The shards of a list have each row once, and a build of the list is one of its files.
func TestDoorInputs(t *testing.T) {
	ctx := t.Context()
	name := filepath.Join(t.TempDir(), "list.jsonl")
	list, err := inputs.Find(ctx, []string{"testdata/flights/logs"}, source.Opening{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if _, err := inputs.Write(ctx, storage.Local(), name, list, false); err != nil {
		t.Fatal(err)
	}
	files, err := partition.Open(ctx, []string{"testdata/flights/logs"}, partition.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer partition.Close(files)
	in, err := partition.ReadInputs(ctx, name, partition.OpenOptions{Memory: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for of := uint32(1); of <= 5; of++ {
		var listed, opened int64
		for i := range of {
			shard := dataset.Shard{Index: i, Of: of}
			files2, pieces, err := in.Open(ctx, shard)
			if err != nil {
				t.Fatal(err)
			}
			listed += matchesOf(t, ctx, files, files2, append([]partition.Piece{}, pieces...))
			opened += matchesOf(t, ctx, files, files, append([]partition.Piece{}, partition.Split(files, shard)...))
			if err := partition.Close(files2); err != nil {
				t.Error(err)
			}
		}
		if listed != 50_000 || opened != 50_000 {
			t.Errorf("%d shards: %d rows of a list, %d of files; want 50000 of each", of, listed, opened)
		}
	}
	var ids []string
	fromList, _, err := filterbuild.BuildInputs(ctx, in, filterbuild.Options{Key: "origin"})
	if err != nil {
		t.Fatal(err)
	}
	fromFiles, _, err := filterbuild.Build(ctx, files, filterbuild.Options{Key: "origin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*codec.Filter{fromList, fromFiles} {
		d, err := f.Digest()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprintf("%x", d))
	}
	if ids[0] != ids[1] {
		t.Errorf("filters of a list and of its files: %q", ids)
	}
}

// matchesOf counts the rows of pieces that have a row with their key in all files.
func matchesOf(t *testing.T, ctx context.Context, all, logs []*partition.File, pieces []partition.Piece) int64 {
	t.Helper()
	j, err := join.New(all, logs, join.Options{On: "origin", Pieces: pieces})
	if err != nil {
		t.Fatal(err)
	}
	n, err := j.Count(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
