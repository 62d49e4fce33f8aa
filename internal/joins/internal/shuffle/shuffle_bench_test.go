package shuffle

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
)

// BenchmarkShuffle shuffles 20 million keys of the log and as many IDs, a tenth of
// which match, in 64 MiB. It reports the processor time of each step in ns/entry.
func BenchmarkShuffle(b *testing.B) {
	const n, batch, threads = 20_000_000, 1 << 15, 2
	for b.Loop() {
		o := Options{Account: budget.New(64 << 20), Dir: b.TempDir(), Integers: true, Threads: threads}
		for range 20 {
			o.GroupRows = append(o.GroupRows, n/20)
		}
		s, err := New(o)
		if err != nil {
			b.Fatal(err)
		}
		step := func(name string, fn func(w int) error) {
			begin := cpu()
			var group sync.WaitGroup
			for w := range threads {
				group.Go(func() {
					if err := fn(w); err != nil {
						b.Error(err)
					}
				})
			}
			group.Wait()
			b.ReportMetric((cpu()-begin)/n, name+"-ns/entry")
		}
		generate := func(w int, put func(k *keys.Batch, hits []uint32, at int) error) error {
			var k keys.Batch
			plain, hits := make([]byte, 8*batch), make([]uint32, batch)
			for i := range batch {
				hits[i] = uint32(i)
			}
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for at := 0; at < n/threads; at += batch {
				for i := range batch {
					binary.LittleEndian.PutUint64(plain[8*i:], rng.Uint64()>>32*200e6>>32)
				}
				k.SetInts(plain, batch, 8, true)
				if err := put(&k, hits, at); err != nil {
					return err
				}
			}
			return nil
		}
		step("generate", func(w int) error {
			return generate(w, func(*keys.Batch, []uint32, int) error { return nil })
		})
		step("log", func(w int) error {
			l, err := s.NewLogWriter()
			if err != nil {
				return err
			}
			if err := generate(w, func(k *keys.Batch, hits []uint32, at int) error { return l.Add(k, hits, at/(n/20)*2+w) }); err != nil {
				return err
			}
			return l.Close()
		})
		step("ids", func(w int) error {
			l, err := s.NewIDWriter()
			if err != nil {
				return err
			}
			if err := generate(w+threads, func(k *keys.Batch, hits []uint32, at int) error { return l.AddKeys(k, hits) }); err != nil {
				return err
			}
			return l.Close()
		})
		begin := cpu()
		if err := s.Exchange(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((cpu()-begin)/(2*n), "exchange-ns/entry")
		b.ReportMetric(float64(s.Written())/(2*n), "bytes/entry")
		b.ReportMetric(float64(s.file.Disk())/(2*n), "disk/entry")
		b.ReportMetric(float64(len(s.logKeys)), "buckets")
		b.ReportMetric(float64(s.IDsMatched.Load())/n, "matched")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
