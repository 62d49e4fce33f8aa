package joins_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Options that mean nothing are refused by their name before a file is read.
func TestOptionsRefused(t *testing.T) {
	rec := table(t, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"1", "2"}})
	files := open(t, partition.OpenOptions{}, writeTable(t, rec, 1, 2, dataset.Parquet))
	absent := dataset.Shard{Index: 4, Of: 4}
	for want, o := range map[string]join.Options{
		`join type "outer": want semi, anti, inner, left, right or full`: {Type: "outer"},
		`strategy "best": want one of [auto exact`:                       {Strategy: "best"},
		"Threads: want 0 (GOMAXPROCS) or more, got -1":                   {Threads: -1},
		"Memory: want 0 (no bound) or more, got -1":                      {Memory: -1},
		"false-positive rate -1: want more than 0 and less than 1":       {FPR: -1},
		"shard 4/4: counted from 0: want 0 to 3, got 4":                  {Shard: absent},
		"shard 7/1: counted from 0: want 0, got 7":                       {Shard: dataset.Shard{Index: 7, Of: 1}},
		"shard 1/0: counted from 0: want 1 to":                           {Shard: dataset.Shard{Index: 1}},
		"shard 4/4: counted from 0":                                      {Pieces: partition.Split(files, absent)},
	} {
		o.On = "k"
		if _, err := join.New(files, files, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for what, sides := range map[string][2][]*partition.File{
		"no files": {}, "no IDs": {nil, files}, "no log": {files, {}},
	} {
		if _, err := join.New(sides[0], sides[1], join.Options{On: "k"}); !errors.Is(err, storage.ErrNoFiles) {
			t.Errorf("%s: want storage.ErrNoFiles, got %v", what, err)
		}
	}
}
