package arrowipc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// theirs encodes records with arrow/go's own writers.
func theirs(t testing.TB, stream bool, opts []ipc.Option, recs ...arrow.Record) []byte {
	t.Helper()
	opts = append(opts, ipc.WithSchema(recs[0].Schema()))
	var out seekBuffer
	w := interface {
		Write(arrow.Record) error
		Close() error
	}(nil)
	if stream {
		w = ipc.NewWriter(&out, opts...)
	} else {
		f, err := ipc.NewFileWriter(&out, opts...)
		if err != nil {
			t.Fatal(err)
		}
		w = f
	}
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// seekBuffer reports its position, as arrow/go's file writer requires.
type seekBuffer struct{ bytes.Buffer }

func (b *seekBuffer) Seek(int64, int) (int64, error) { return int64(b.Len()), nil }

// seeds returns small valid inputs: uncompressed, zstd, lz4, dictionaries, nested
// types.
func seeds(t testing.TB, stream bool) [][]byte {
	r := rand.New(rand.NewPCG(11, 12))
	wide := sample(r, memory.DefaultAllocator, arrow.NewSchema(wideFields(), nil), 9)
	odd := sample(r, memory.DefaultAllocator, arrow.NewSchema(oddFields(), nil), 9)
	nested := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.BinaryTypes.String}
	deep := sample(r, memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		field1("l", arrow.ListOf(arrow.StructOf(field1("d", nested), field1("m", arrow.MapOf(arrow.BinaryTypes.String, nested))))),
	}, nil), 9)
	return [][]byte{
		theirs(t, stream, nil, wide),
		theirs(t, stream, []ipc.Option{ipc.WithZstd()}, odd),
		theirs(t, stream, []ipc.Option{ipc.WithLZ4()}, odd),
		theirs(t, stream, nil, odd, odd),
		theirs(t, stream, nil, deep),
	}
}

// Flipped bits, changed bytes and truncations are read or refused: no panic, no
// hang, no leak, and no more memory than the limits.
func TestMutations(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for i, seed := range seeds(t, stream) {
			t.Run(fmt.Sprintf("stream=%v/%d", stream, i), func(t *testing.T) {
				if _, err := walk(seed, stream, nil); err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(uint64(i), 1))
				read, refused := 0, 0
				for range cases.Count(100, 400, 700) {
					b := bytes.Clone(seed)
					switch n := r.IntN(len(b)); r.IntN(4) {
					case 0:
						b = b[:n]
					case 1:
						b[n] = byte(r.Int())
						b[r.IntN(len(b))] = 0xFF
					default:
						b[n] ^= 1 << r.IntN(8)
					}
					if try(t, b, stream) == nil {
						read++
					} else {
						refused++
					}
				}
				t.Logf("%d read, %d refused", read, refused)
			})
		}
	}
}

// try walks b and checks everything that must hold for any bytes.
func try(t testing.TB, b []byte, stream bool) error {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	peak := &peakAllocator{Allocator: mem}
	_, err := walk(b, stream, peak)
	if err != nil {
		wantFault(t, err)
	}
	mem.AssertSize(t, 0)
	if peak.peak > maxBatch+maxBuffer {
		t.Errorf("%d bytes at once", peak.peak)
	}
	return err
}

func fuzz(f *testing.F, stream bool) {
	for _, b := range append(seeds(f, stream), oldSeeds(f, stream)...) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := try(t, b, stream); err == nil {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			if err := checked(b, stream, true, mem); err != nil {
				wantFault(t, err)
			}
			mem.AssertSize(t, 0)
		}
	})
}

func FuzzFile(f *testing.F)   { fuzz(f, false) }
func FuzzStream(f *testing.F) { fuzz(f, true) }
