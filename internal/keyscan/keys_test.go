package keyscan_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
)

// Read passes on the keys that the writer stored, with their rows and multiplicity,
// for every format and shape of the key, by value or by dictionary, and with a filter
// at least all members.
func TestReadKeys(t *testing.T) {
	const rows, groupRows = 4000, 900
	rng := rand.New(rand.NewPCG(3, 4))
	ids := sourcetest.Numbers(rows, func(i int) any {
		if i%13 == 5 {
			return nil
		}
		return rng.IntN(300)
	})
	names := sourcetest.Numbers(rows, func(i int) string { return fmt.Sprint("user-", rng.IntN(200)) })
	members := sourcetest.Numbers(40, func(i int) int64 { return int64(i * 7) })
	dir := t.TempDir()
	for _, ending := range []string{"parquet", "arrow"} {
		name := sourcetest.Write(t, filepath.Join(dir, "log."+ending), groupRows, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}, sourcetest.Col{Name: "name", Values: names}))
		pieces := source.Split(roomtest.Open(t, source.Opening{}, name), dataset.Shard{})
		for _, column := range []string{"id", "name", "id,name"} {
			want, nulls := map[string][]int64{}, int64(0) // rows by key
			for row := range rows {
				if k, ok := keyAt(t, ids, names, column, row); ok {
					want[k] = append(want[k], int64(row))
				} else {
					nulls++
				}
			}
			for _, c := range []struct{ distinct, filter bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
				if c.filter && column != "id" {
					continue
				}
				what := fmt.Sprintf("%s, key %s, %+v", ending, column, c)
				o := keyscan.ReadOptions{Key: column, Distinct: c.distinct, CountNulls: true, Threads: 3}
				if c.filter {
					o.Filter = roomtest.ExactOf("id", members...)
				}
				times, hits, single := map[string]int64{}, map[string]int64{}, 0
				var mu sync.Mutex
				gotRows, gotNulls, err := keyscan.Read(t.Context(), pieces, o, func() (func(*keyscan.Keys) error, error) {
					return func(k *keyscan.Keys) error {
						mu.Lock()
						defer mu.Unlock()
						count := func(i int) int64 {
							if k.Times == nil {
								return 1
							}
							return int64(k.Times[i])
						}
						for i := range k.Batch.Rows {
							text := string(k.Batch.Append(nil, i))
							times[text] += count(i)
							if k.Times == nil {
								single++
							}
						}
						some, err := k.Probe()
						for _, i := range some {
							hits[string(k.Batch.Append(nil, int(i)))] += count(int(i))
						}
						return err
					}, nil
				})
				if err != nil {
					t.Fatal(what, err)
				}
				if gotRows != rows || gotNulls != nulls {
					t.Errorf("%s: %d rows, %d NULLs, want %d, %d", what, gotRows, gotNulls, rows, nulls)
				}
				if coded := c.distinct && ending == "parquet" && column != "id,name"; coded == (single == rows-int(nulls)) {
					t.Errorf("%s: %d keys of %d come one by one", what, single, rows-int(nulls))
				}
				for k, in := range want {
					n := int64(len(in))
					member := false
					for _, m := range members {
						member = member || k == string(keys.IntegerPart(uint64(m), false)) || k == roomtest.IntegerKey(m)
					}
					if !c.filter && (times[k] != n || hits[k] != n) {
						t.Errorf("%s: key %x came %d times, %d hits, want %d", what, k, times[k], hits[k], n)
					}
					if c.filter && (member && (times[k] != n || hits[k] != n) || !member && hits[k] != 0) {
						t.Errorf("%s: key %x, a member: %v, came %d times of %d, %d hits", what, k, member, times[k], n, hits[k])
					}
				}
				if len(times) > len(want) && !c.distinct {
					t.Errorf("%s: %d keys, want %d", what, len(times), len(want))
				}
			}
		}
	}
}

// A panic or error of the caller's function becomes an error of the earliest row group.
func TestReadKeysFails(t *testing.T) {
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "log.parquet"), 10, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(200, func(i int) int64 { return int64(i) })}))
	pieces := source.Split(roomtest.Open(t, source.Opening{}, name), dataset.Shard{})
	for _, runs := range []int{0, 5} {
		_, _, err := keyscan.Read(t.Context(), pieces, keyscan.ReadOptions{Key: "id", Runs: runs, RunRows: 3, Threads: 4}, func() (func(*keyscan.Keys) error, error) {
			return func(k *keyscan.Keys) error {
				if k.Piece.Lo >= 3 {
					panic("here")
				}
				return nil
			}, nil
		})
		if err == nil || !strings.Contains(err.Error(), "here") || !strings.Contains(err.Error(), "row group") {
			t.Errorf("%d runs: %v", runs, err)
		}
	}
	for range 10 {
		_, _, err := keyscan.Read(t.Context(), pieces, keyscan.ReadOptions{Key: "id", Threads: 4}, func() (func(*keyscan.Keys) error, error) {
			return func(k *keyscan.Keys) error {
				if k.Piece.Lo >= 3 {
					return fmt.Errorf("row group %d", k.Piece.Lo)
				}
				return nil
			}, nil
		})
		if err == nil || err.Error() != "row group 3" {
			t.Errorf("%v, want the error of row group 3", err)
		}
	}
}
