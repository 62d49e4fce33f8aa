package micro

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/storage"
)

// shardsOf is the number of partial filters that are merged.
const shardsOf = 8

// fileBytes is the size of the filters.
func fileBytes() uint64 {
	if testing.Short() {
		return 1 << 16
	}
	return 32 << 20
}

// filterFile returns a partial filter, or a sealed one if of is 0, with half of its bits set.
func filterFile(b *testing.B, shard, of uint32) *codec.Filter {
	blocks := fileBytes() / bloom.Split256.BlockBytes()
	keys := blocks * 22 / uint64(max(of, 1)) // a key leaves a bit of its block clear with probability 31/32
	bits, err := bloom.New(bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: blocks})
	if err != nil {
		b.Fatal(err)
	}
	first := uint64(shard) << 40
	keyset.Sequence(first, first+keys, keyset.Into(bits))
	f := &codec.Filter{
		Key: []codec.KeyColumn{{Name: "id", Class: "integer"}}, NormalForm: "1", Keys: keys, FPRAsked: 0.01,
		Want: codec.WantBloom, BuildID: sha256.Sum256([]byte("bench")),
	}
	f.SetBloom(bits)
	if of > 0 {
		f.Partial = &codec.Partial{Of: of, Held: []uint32{shard}}
	}
	return f
}

func written(b *testing.B, dir string, shard, of uint32, opts codec.Options) (name string) {
	name = filepath.Join(dir, fmt.Sprintf("%d.bjf", shard))
	w, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := codec.Encode(w, filterFile(b, shard, of), opts); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return name
}

// BenchmarkFile encodes, decodes, maps and merges filters. Speeds are of their bits.
func BenchmarkFile(b *testing.B) {
	for _, opts := range []codec.Options{{}, {Uncompressed: true}} {
		name := "default"
		if opts.Uncompressed {
			name = "uncompressed"
		}
		file := written(b, b.TempDir(), 0, 0, opts)
		b.Run("op=encode/file="+name, func(b *testing.B) {
			f := filterFile(b, 0, 0)
			b.SetBytes(int64(fileBytes()))
			for b.Loop() {
				if _, err := codec.Encode(io.Discard, f, opts); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("op=load/file="+name, func(b *testing.B) {
			b.SetBytes(int64(fileBytes()))
			for b.Loop() {
				f, err := codec.Load(context.Background(), storage.Local{}, file, codec.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("op=merge/file=default", func(b *testing.B) {
		var names []string
		for shard := range uint32(shardsOf) {
			names = append(names, written(b, b.TempDir(), shard, shardsOf, codec.Options{}))
		}
		b.SetBytes(int64(fileBytes() * shardsOf))
		for b.Loop() {
			f, err := filterbuild.MergeFiles(context.Background(), storage.Local{}, names, false, codec.Limits{})
			if err != nil || f.Kind() != codec.KindBloom {
				b.Fatal(f, err)
			}
		}
	})
}
