package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/bloomjoin/bloomjoin/bench/internal/child"
	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/bench/internal/measure"
	"github.com/bloomjoin/bloomjoin/bloom"
	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/storage"
)

// keysToFill returns the number of keys that set the given fraction of a Split256
// filter's bits. A key leaves a bit of its block clear with probability 31/32.
func keysToFill(blocks uint64, part float64) uint64 {
	perBlock := math.Log(1-part) / math.Log(31.0/32)
	return uint64(float64(blocks) * perBlock)
}

// partialFilter returns the partial filter of a shard, or a sealed filter if of is
// 0, with keys of its own.
func partialFilter(bytes, keys uint64, shard, of uint32, asked float64) (*codec.Filter, error) {
	p := bloom.Params{Geometry: bloom.Split256, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: bytes / bloom.Split256.BlockBytes()}
	bits, err := bloom.New(p)
	if err != nil {
		return nil, err
	}
	keyset.Sequence(uint64(shard)*setSpace, uint64(shard)*setSpace+keys, keyset.Into(bits))
	f := &codec.Filter{
		Key:        []codec.KeyColumn{{Name: "id", Class: "integer"}},
		NormalForm: "1",
		Keys:       keys,
		FPRAsked:   asked,
		Want:       codec.WantBloom,
		BuildID:    sha256.Sum256([]byte("bench")),
	}
	f.SetBloom(bits)
	if of > 0 {
		f.Partial = &codec.Partial{Of: of, Held: []uint32{shard}}
	}
	return f, nil
}

// writeFile encodes a filter into a file.
func writeFile(name string, f *codec.Filter, opts codec.Options) (size int64, err error) {
	w, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return codec.Encode(w, f, opts)
}

// decodeFile reads a filter file into memory.
func decodeFile(name string) (f *codec.Filter, err error) {
	r, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	return codec.Decode(r, info.Size(), name, codec.Limits{})
}

// mapFile maps and verifies an uncompressed filter file.
func mapFile(name string) (err error) {
	f, err := codec.Load(context.Background(), storage.Local{}, name, codec.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if !f.Mapped() {
		return fmt.Errorf("%s was read, want it mapped", name)
	}
	return nil
}

// measured has the time and memory of an operation.
type measured struct {
	Seconds []float64
	Over    int64 // peak of resident memory above the start, in bytes
}

// withMemory runs fn once to measure its memory, and rounds times to measure its
// time, with the default garbage collector settings.
func withMemory(rounds int, fn func() error) (m measured, err error) {
	runtime.GC()
	debug.FreeOSMemory()
	before, err := resident()
	if err != nil {
		return m, err
	}
	if err := resetPeak(); err != nil {
		return m, err
	}
	if err := fn(); err != nil {
		return m, err
	}
	high, err := peak()
	if err != nil {
		return m, err
	}
	m.Over = int64(high) - int64(before)
	for range rounds {
		runtime.GC()
		begin := time.Now()
		if err := fn(); err != nil {
			return m, err
		}
		m.Seconds = append(m.Seconds, time.Since(begin).Seconds())
	}
	return m, nil
}

// answerCodec answers "OPERATION DIR BYTES ROUNDS" with a measured.
func answerCodec(words []string) (any, error) {
	var op, dir string
	var bytes uint64
	var rounds int
	if err := child.Parse(words, &op, &dir, &bytes, &rounds); err != nil {
		return nil, err
	}
	return codecOperation(op, dir, bytes, rounds)
}

// The files that the operations read: half of the bits set, in raw chunks and
// uncompressed; and with a 64th of the keys, compressed.
const (
	rawFile    = "raw.bjf"
	directFile = "uncompressed.bjf"
	sparseFile = "sparse.bjf"
)

func codecOperation(op, dir string, bytes uint64, rounds int) (measured, error) {
	blocks := bytes / bloom.Split256.BlockBytes()
	full, sparse := keysToFill(blocks, 0.5), keysToFill(blocks, 0.5)/64
	encode := func(keys uint64, file string, opts codec.Options) (measured, error) {
		f, err := partialFilter(bytes, keys, 0, 0, 0.01)
		if err != nil {
			return measured{}, err
		}
		if _, err := writeFile(filepath.Join(dir, file), f, opts); err != nil {
			return measured{}, err
		}
		return withMemory(rounds, func() error {
			_, err := codec.Encode(io.Discard, f, opts)
			return err
		})
	}
	decode := func(file string) (measured, error) {
		return withMemory(rounds, func() error {
			f, err := decodeFile(filepath.Join(dir, file))
			runtime.KeepAlive(f)
			return err
		})
	}
	switch op {
	case "encode":
		return encode(full, rawFile, codec.Options{})
	case "encode-uncompressed":
		return encode(full, directFile, codec.Options{Uncompressed: true})
	case "encode-sparse":
		return encode(sparse, sparseFile, codec.Options{})
	case "decode":
		return decode(rawFile)
	case "decode-uncompressed":
		return decode(directFile)
	case "decode-sparse":
		return decode(sparseFile)
	case "map":
		return withMemory(rounds, func() error { return mapFile(filepath.Join(dir, directFile)) })
	}
	return measured{}, fmt.Errorf("no operation %q", op)
}

// codecTable measures the file of a filter of 128 MiB.
func codecTable(cfg config) (tables []table, err error) {
	dir, err := os.MkdirTemp("", "bloomjoin-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bytes := pick(cfg, uint64(128<<20), 16<<20)
	t := table{name: "codec", head: []string{"filter of " + mib(float64(bytes)), "GB/s", "memory beside the filter", "file"}}
	for _, op := range []struct {
		name, text, file string
		makes            bool // the operation creates the filter
	}{
		{"encode", "encode, half of the bits set", rawFile, false},
		{"decode", "decode it", rawFile, true},
		{"encode-uncompressed", "encode, uncompressed", directFile, false},
		{"decode-uncompressed", "decode it", directFile, true},
		{"map", "map and verify it", directFile, true},
		{"encode-sparse", "encode, a 64th of the keys", sparseFile, false},
		{"decode-sparse", "decode it", sparseFile, true},
	} {
		var m measured
		if err := once("codec", &m, op.name, dir, bytes, pick(cfg, 11, 3)); err != nil {
			return nil, err
		}
		info, err := os.Stat(filepath.Join(dir, op.file))
		if err != nil {
			return nil, err
		}
		over := m.Over
		if op.makes {
			over -= int64(bytes)
		}
		t.row(op.text, fmt.Sprintf("%.2f", float64(bytes)/1e9/measure.Samples(m.Seconds).Median()), mib(float64(over)), mib(float64(info.Size())))
	}
	t.note("GB of filter bits per second, all processors, median of %d runs. Files are read from the system's cache, and written to nowhere; the pages of a mapped one count as the filter.", pick(cfg, 11, 3))
	return []table{t}, nil
}
