package filterbuild_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/filterbuild"
	"github.com/bloomjoin/bloomjoin/key"
	"github.com/bloomjoin/bloomjoin/partition"
	"github.com/bloomjoin/bloomjoin/storage"
)

// Four goroutines build one filter, which is saved, loaded and probed.
func ExampleNewBuilder() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := fourWorkers(context.Background(), filepath.Join(dir, "users.bjf")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// exact filter of 1000 keys
	// rows [0 2] <nil>
	// mismatch: key class: want integer, got text or binary (convert the values to the class of the key)
}

func fourWorkers(ctx context.Context, name string) error {
	ids := make([]int64, 1000)
	for i := range ids {
		ids[i] = int64(i) * 3
	}
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "user::int64"})
	if err != nil {
		return err
	}
	defer b.Close()
	var group errgroup.Group
	for some := range slices.Chunk(ids, 250) {
		group.Go(func() error {
			w, err := b.Worker()
			if err != nil {
				return err
			}
			return w.Add(key.Int64s(some))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	f, report, err := b.Finish(ctx)
	if err != nil {
		return err
	}
	if _, err := codec.Save(ctx, storage.Local(), name, f, codec.Options{}); err != nil {
		return err
	}
	if f, err = codec.Load(ctx, storage.Local(), name, codec.Limits{}); err != nil {
		return err
	}
	defer f.Close()
	fmt.Println(f.Kind(), "filter of", report.Distinct, "keys")
	rows, err := f.Probe(key.Uint64s([]uint64{6, 7, 2997, 3000}), nil)
	fmt.Println("rows", rows, err)
	_, err = f.Probe(key.Strings([]string{"6"}), nil)
	fmt.Println(err)
	return nil
}

// Each of three machines builds a filter of its own keys, and another one merges
// them. The machines agree on the options, on an upper bound for the number of all
// keys, and on a name for the set.
func ExampleMerge() {
	ctx := context.Background()
	var parts []*codec.Filter
	for i := range uint32(3) {
		b, err := filterbuild.NewBuilder(filterbuild.Options{
			Key: "email::string", Normalize: "trim,lower",
			Expect: 10_000, Identity: []byte("newsletter 2026-11-22"), Shard: dataset.Shard{Index: i, Of: 3},
		})
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close()
		w, err := b.Worker()
		if err != nil {
			log.Fatal(err)
		}
		if err := w.Add(key.Strings([]string{fmt.Sprintf("User%d@example.com", i)})); err != nil {
			log.Fatal(err)
		}
		f, _, err := b.Finish(ctx)
		if err != nil {
			log.Fatal(err)
		}
		parts = append(parts, f)
	}
	_, err := filterbuild.Merge(ctx, parts[:2]...)
	fmt.Println(err)
	all, err := filterbuild.Merge(ctx, parts...)
	if err != nil {
		log.Fatal(err)
	}
	found, err := all.Contains(key.Strings([]string{"USER2@example.com ", "user3@example.com"}), nil)
	fmt.Println(found, err)
	// Output:
	// mismatch: shards: want all 3, got 2, without 2 (add the missing partial filters, or merge into a larger partial filter with MergePartial)
	// [true false] <nil>
}

// A filter built from a file of IDs.
func ExampleBuild() {
	ctx := context.Background()
	ids, err := partition.Open(ctx, []string{"../testdata/flights/airports-tx.csv"}, partition.OpenOptions{Text: true})
	if err != nil {
		log.Fatal(err)
	}
	defer partition.Close(ids)
	f, report, err := filterbuild.Build(ctx, ids, filterbuild.Options{Key: "iata", FPR: 0.001})
	if err != nil {
		log.Fatal(err)
	}
	found, err := f.Contains(key.Strings([]string{"DFW", "JFK"}), nil)
	fmt.Println(report.Keys, "airports", strings.Join(f.KeyNames(), ","), found, err)
	// Output:
	// 209 airports iata [true false] <nil>
}

// The users of two days, and those of the first day who did not come back.
func ExampleCombine() {
	ctx := context.Background()
	day := func(ids ...int64) *codec.Filter {
		b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "user::int64", Kind: codec.KindExact})
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close()
		w, err := b.Worker()
		if err == nil {
			err = w.Add(key.Int64s(ids))
		}
		if err != nil {
			log.Fatal(err)
		}
		f, _, err := b.Finish(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return f
	}
	monday, tuesday := day(1, 2, 3), day(3, 4)
	both, err := filterbuild.Combine(ctx, filterbuild.Union, monday, tuesday)
	if err != nil {
		log.Fatal(err)
	}
	gone, err := filterbuild.Combine(ctx, filterbuild.Difference, monday, tuesday)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(both.Count().Keys, gone.Count().Keys)
	// Output:
	// 4 2
}

// Keys are removed from a counting filter, of which a plain one is made at last.
func ExampleUpdate() {
	ctx := context.Background()
	b, err := filterbuild.NewBuilder(filterbuild.Options{Key: "user::string", Kind: codec.KindCounting, Multiset: true, Expect: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := filterbuild.AddSeq(ctx, b, slices.Values([]string{"ada", "bob", "eve"})); err != nil {
		log.Fatal(err)
	}
	f, _, err := b.Finish(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if f, err = filterbuild.Update(ctx, f, key.Strings([]string{"eve"}), key.Strings([]string{"kim"})); err != nil {
		log.Fatal(err)
	}
	_, err = filterbuild.Update(ctx, f, key.Strings([]string{"eve"}), key.Values{})
	fmt.Println(errors.Is(err, filterbuild.ErrMissing), err)
	plain, err := filterbuild.Plain(f)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plain.Kind(), "filter of", plain.Added(), "keys")
	fmt.Println(plain.Contains(key.Strings([]string{"ada", "bob", "eve", "kim"}), nil))
	// Output:
	// true keys to remove are not in the filter: 1 of 1
	// bloom filter of 3 keys
	// [true true false true] <nil>
}

// A blacklist lets all known good hosts pass, and is asked about hosts and URLs.
func ExampleBuildAgainst() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var bad, good strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&bad, "bad%d.example\n", i)
		fmt.Fprintf(&good, "https://www.good%d.example/\n", i)
	}
	var files []*partition.File
	for name, text := range map[string]string{"bad.txt": bad.String(), "good.txt": good.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	for _, name := range []string{"bad.txt", "good.txt"} {
		opened, err := partition.Open(ctx, []string{filepath.Join(dir, name)}, partition.OpenOptions{Text: true, Column: "host"})
		if err != nil {
			log.Fatal(err)
		}
		defer partition.Close(opened)
		files = append(files, opened...)
	}
	f, report, err := filterbuild.BuildAgainst(ctx, files[:1], files[1:], filterbuild.Options{Key: "host", Normalize: "url-host", FPR: 0.05})
	if err != nil {
		log.Fatal(err)
	}
	rows, err := f.Probe(key.Strings([]string{"http://a.bad7.example/x", "good7.example", "BAD8.example"}), nil)
	fmt.Println(report.KnownInSet, report.Exceptions > 0, rows, err)
	// Output: 0 true [0 2] <nil>
}
