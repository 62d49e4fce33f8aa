package text

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/klauspost/compress/gzip"
)

// BenchmarkIDs reads a million integers, one per line: as plain values, as records,
// and, as the lower limit, only decompressed.
func BenchmarkIDs(b *testing.B) {
	const n = 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	var all strings.Builder
	for range n {
		fmt.Fprintln(&all, r.Uint64N(1_000_000_000_000))
	}
	types := map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64}
	for name, input := range map[string]string{"plain": all.String(), "gzip": gz(all.String())} {
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(input)), nil }
		ways := map[string]func() error{
			"values": func() error {
				t, err := Open(open, "ids.txt", Options{Types: types})
				if err != nil {
					return err
				}
				for _, err := range t.ReadPlain(context.Background(), 0, 0, 1) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"values by two": func() error {
				t, err := Open(open, "ids.txt", Options{Types: types})
				if err != nil {
					return err
				}
				for _, err := range t.ReadPlain(context.Background(), 0, 0, 2) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"records": func() error {
				t, err := Open(open, "ids.txt", Options{Types: types})
				if err != nil {
					return err
				}
				for _, err := range t.Read(context.Background(), 0, nil) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		}
		if name == "gzip" {
			ways["floor"] = func() error {
				r, err := gzip.NewReader(strings.NewReader(input))
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, r)
				return err
			}
		}
		for way, run := range ways {
			b.Run(name+"/"+way, func(b *testing.B) {
				b.SetBytes(int64(all.Len()))
				b.ReportAllocs()
				for b.Loop() {
					if err := run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mkeys/s")
			})
		}
	}
}
