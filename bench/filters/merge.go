package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/storage"
)

const mergeShards = 64

func shardFile(dir string, shard int) string {
	return filepath.Join(dir, fmt.Sprintf("part-%02d.bjf", shard))
}

// makeShards writes the partial filters of a build whose union has half of its bits
// set. If sparse, each has a 64th of the keys. Otherwise each has all keys: the cost
// of OR does not depend on the bits, and the union of 64 different half-full
// filters would be full.
func makeShards(dir string, bytes uint64, sparse bool) (size int64, err error) {
	blocks := bytes / bloom.Split256.BlockBytes()
	keys := keysToFill(blocks, 0.5)
	asked := bloom.Split256.FPR(blocks, keys)
	var f *codec.Filter
	for shard := range mergeShards {
		if sparse || shard == 0 {
			n := keys
			if sparse {
				n /= mergeShards
			}
			if f, err = partialFilter(bytes, n, uint32(shard), mergeShards, asked); err != nil {
				return 0, err
			}
		}
		f.Partial = &codec.Partial{Of: mergeShards, Held: []uint32{uint32(shard)}}
		one, err := writeFile(shardFile(dir, shard), f, codec.Options{})
		if err != nil {
			return 0, err
		}
		size += one
	}
	return size, nil
}

// answerMerge answers "merge DIR ROUNDS" with a measured.
func answerMerge(words []string) (any, error) {
	var op, dir string
	var rounds int
	if err := child.Parse(words, &op, &dir, &rounds); err != nil {
		return nil, err
	}
	var names []string
	for shard := range mergeShards {
		names = append(names, shardFile(dir, shard))
	}
	return withMemory(rounds, func() error {
		f, err := filterbuild.MergeFiles(context.Background(), storage.Local{}, names, false, codec.Limits{})
		if err == nil && f.Kind() != codec.KindBloom {
			err = fmt.Errorf("the merged filter is %s", f.Kind())
		}
		return err
	})
}

// mergeTable measures the merge of 64 partial filter files into a sealed filter.
func mergeTable(cfg config) (tables []table, err error) {
	bytes := pick(cfg, uint64(128<<20), 8<<20)
	t := table{name: "merge", head: []string{fmt.Sprintf("%d partial filters of %s", mergeShards, mib(float64(bytes))), "files together", "seconds", "GB/s of filter bits", "memory beside the result"}}
	for _, c := range []struct {
		text   string
		sparse bool
	}{{"each with half of its bits set", false}, {"each with a 64th of the keys", true}} {
		if err := func() (err error) {
			dir, err := os.MkdirTemp("", "bloomjoin-bench-")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			size, err := makeShards(dir, bytes, c.sparse)
			if err != nil {
				return err
			}
			var m measured
			if err := once("merge", &m, "merge", dir, pick(cfg, 3, 1)); err != nil {
				return err
			}
			seconds := measure.Samples(m.Seconds).Median()
			t.row(c.text, gib(float64(size)), fmt.Sprintf("%.2f", seconds), fmt.Sprintf("%.2f", float64(bytes*mergeShards)/1e9/seconds),
				mib(float64(m.Over)-float64(bytes)))
			return nil
		}(); err != nil {
			return nil, err
		}
	}
	t.note("All processors, median of %d runs after a first; files are read from the system's cache as far as it holds them. Sealing, the filter's last step, is part of the time.", pick(cfg, 3, 1))
	return []table{t}, nil
}
