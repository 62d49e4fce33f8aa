package keyindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

var update = flag.Bool("update", false, "write the golden file, if there is none")

// listOf lists files of integers: file i has rows from[i] in row groups of 100.
func listOf(t testing.TB, from [][]any) (dir string, list *inputs.List) {
	t.Helper()
	dir = t.TempDir()
	for i, values := range from {
		sourcetest.Write(t, filepath.Join(dir, fmt.Sprintf("p%03d.parquet", i)), 100, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: values}))
	}
	return dir, found(t, dir)
}

func found(t testing.TB, dir string) *inputs.List {
	t.Helper()
	list, err := inputs.Find(context.Background(), []string{dir}, source.Opening{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { list.Close() })
	return list
}

// indexed builds an index in a storage in memory, and opens it.
func indexed(t testing.TB, list *inputs.List, o Options) (*Index, []byte) {
	t.Helper()
	store := storage.Memory()
	f, err := Build(context.Background(), list, source.Opening{}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, size, err := f.Create(context.Background(), store, "list.index")
	if err == nil {
		err = w.Commit(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	x, err := Open(context.Background(), store, "list.index")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	b := make([]byte, size)
	if n, err := x.r.ReadAt(b, 0); n < len(b) {
		t.Fatal(err)
	}
	if x.Size() != size {
		t.Errorf("size: got %d, want %d", x.Size(), size)
	}
	return x, b
}

// random returns lists of integers of all sizes, and some NULLs.
func random(seed uint64) (from [][]any) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range 40 {
		var values []any
		for range []int{0, 1, 99, 100, 101, 350, 3000}[i%7] {
			if rng.IntN(20) == 0 {
				values = append(values, nil)
				continue
			}
			values = append(values, rng.IntN(200000)-100000)
		}
		from = append(from, values)
	}
	return from
}

// Every key is found where a map has it, and the others at about the rate.
func TestProbe(t *testing.T) {
	from := random(7)
	_, list := listOf(t, from)
	for _, rate := range []float64{0.01, 0.2} {
		x, _ := indexed(t, list, Options{Key: "id", FPR: rate, RowGroups: true})
		if err := errors.Join(x.Of(list), x.Check(t.Context())); err != nil {
			t.Fatal(err)
		}
		var units []Unit
		var has []map[int]bool
		nulls := 0
		for in, err := range list.Each(t.Context()) {
			if err == nil {
				err = x.Agrees(&in)
			}
			if err != nil {
				t.Fatal(err)
			}
			i := in.Number()
			all := map[int]bool{}
			units, has = append(units, x.File(i)), append(has, all)
			for g := range in.Groups {
				own := map[int]bool{}
				want := int64(0)
				for _, v := range from[i][100*g : min(100*g+100, len(from[i]))] {
					if v == nil {
						want++
						continue
					}
					all[v.(int)], own[v.(int)] = true, true
				}
				if got := x.Nulls(i, g, g+1); got != want {
					t.Errorf("file %d, row group %d: %d rows without a key, want %d", i, g, got, want)
				}
				nulls += int(want)
				if u := x.Group(i, g); len(in.Groups) > 1 {
					units, has = append(units, u), append(has, own)
				}
			}
		}
		if nulls == 0 {
			t.Fatal("no NULLs in the data")
		}
		false1, absent := 0, 0
		for key := -100000; key < 100000; key += 397 {
			may, err := x.Probe(t.Context(), units, []uint64{intHash(key)})
			if err != nil {
				t.Fatal(err)
			}
			for i, is := range may {
				switch {
				case has[i][key] && !is:
					t.Fatalf("key %d is not found in unit %d", key, i)
				case !has[i][key] && len(has[i]) > 0:
					absent++
					if is {
						false1++
					}
				case !has[i][key] && is:
					t.Fatalf("key %d is found in unit %d, which has none", key, i)
				}
			}
		}
		// Blocks are whole, so small filters are better than asked for.
		if got := float64(false1) / float64(absent); got > 1.15*rate {
			t.Errorf("false positives: %.4f of %d, want at most %.4f", got, absent, 1.15*rate)
		}
	}
}

func intHash(v int) uint64 {
	var h [1]uint64
	hash.Sum64(h[:], []uint64{uint64(int64(v))})
	return h[0]
}

// The keys of a run are few, whatever the rate and the number of files.
func TestMostKeys(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		inputs int
		want   int
	}{{0.01, 10, 300}, {1e-300, 1, 1 << 18}, {1e-9, 1 << 20, 64}} {
		x := &Index{Facts: Facts{FPR: c.rate, Inputs: c.inputs}}
		sourcetest.Equal(t, fmt.Sprint(c), x.MostKeys(), c.want)
	}
}

// Many keys at once give the union of what each gives.
func TestProbeTogether(t *testing.T) {
	from := append(random(8), nil)
	for i := range 200000 { // a filter that is not read at once
		from[len(from)-1] = append(from[len(from)-1], i*7)
	}
	_, list := listOf(t, from)
	x, _ := indexed(t, list, Options{Key: "id", FPR: 0.01})
	units := make([]Unit, x.Inputs)
	for i := range units {
		units[i] = x.File(i)
	}
	var hashes []uint64
	want := make([]bool, len(units))
	for key := range 30 {
		h := intHash(key * 991)
		may, err := x.Probe(t.Context(), units, []uint64{h})
		if err != nil {
			t.Fatal(err)
		}
		for i := range may {
			want[i] = want[i] || may[i]
		}
		hashes = append(hashes, h, h)
	}
	got, err := x.Probe(t.Context(), units, hashes)
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "together", fmt.Sprint(got), fmt.Sprint(want))
	// Filters that repeat, with blocks so far apart that they are not read at once.
	twice := slices.Repeat([]Unit{units[len(units)-1]}, 3)
	ends := []uint64{0, hashes[0], 1<<64 - 1}
	if want, err = x.Probe(t.Context(), twice[:1], ends); err == nil {
		got, err = x.Probe(t.Context(), twice, ends)
	}
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Equal(t, "repeated", fmt.Sprint(got), fmt.Sprint(slices.Repeat(want, 3)))
	got, err = x.Probe(t.Context(), units, nil)
	if err != nil || strings.Contains(fmt.Sprint(got), "true") {
		t.Errorf("no keys: %v, %v", got, err)
	}
}

// The bytes depend neither on threads nor on memory, nor on whether an old index was there.
func TestSameBytes(t *testing.T) {
	from := random(9)
	from = append(from, nil)
	for i := range 150000 { // more than are held unsorted
		from[len(from)-1] = append(from[len(from)-1], i*7)
	}
	_, list := listOf(t, from)
	o := Options{Key: "id", FPR: 0.02, RowGroups: true, Threads: 1}
	old, want := indexed(t, list, o)
	for _, how := range []Options{{Threads: 4}, {Threads: 2, Memory: 1}, {Old: old, OldList: list}} {
		how.Key, how.FPR, how.RowGroups = o.Key, o.FPR, o.RowGroups
		if how.Memory > 0 {
			how.Memory = 20 << 20
		}
		if _, got := indexed(t, list, how); !bytes.Equal(got, want) {
			t.Errorf("%d threads, %d bytes of memory, old %v: other bytes", how.Threads, how.Memory, how.Old != nil)
		}
	}
	for rate, what := range map[float64]string{0.01: "p040.parquet: over the memory budget: its distinct keys", 1e-20: "the filter of its keys"} {
		_, err := Build(t.Context(), list, source.Opening{}, Options{Key: "id", FPR: rate, Memory: 1 << 20, Threads: 1})
		sourcetest.Says(t, what, err, fault.ErrMemory, what)
	}
}

// Keys of all classes are found by their text.
func TestParse(t *testing.T) {
	mem := memory.DefaultAllocator
	for _, c := range []struct {
		json string
		typ  arrow.DataType
		rule keys.Rule
		is   string
		no   string // no value of the class
	}{
		{`[7, -3]`, arrow.PrimitiveTypes.Int32, 0, "-3", "1.5"},
		{`[9223372036854775808]`, arrow.PrimitiveTypes.Uint64, 0, "9223372036854775808", "qqq"},
		{`["a,b", ""]`, arrow.BinaryTypes.String, 0, "a,b", ""},
		{`[" Ann"]`, arrow.BinaryTypes.LargeString, keys.Trim | keys.Lower, "ANN ", ""},
		{`["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]`, arrow.BinaryTypes.String, keys.UUID, "6BA7B8109DAD11D180B400C04FD430C8", "6BA7"},
		{`["YWJjZGVmZ2hpamtsbW5vcA=="]`, &arrow.FixedSizeBinaryType{ByteWidth: 16}, 0, "61626364-6566-6768-696a-6b6c6d6e6f70", "61"},
		{`[true]`, arrow.FixedWidthTypes.Boolean, 0, "true", "maybe"},
		{`["2024-05-01"]`, arrow.FixedWidthTypes.Date32, 0, "2024-05-01", "2024-13-01"},
		{`["1.50"]`, &arrow.Decimal128Type{Precision: 9, Scale: 2}, 0, "1.5", "qqq"},
		{`[0.5]`, arrow.PrimitiveTypes.Float32, 0, "0.5", "half"},
		{`["2024-05-01 10:00:00"]`, &arrow.TimestampType{Unit: arrow.Second}, 0, "2024-05-01 10:00:00", "noon"},
		{`["2024-05-01 10:00:00"]`, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, 0, "2024-05-01T12:00:00+02:00", "noon"},
		{`["10:30:00"]`, arrow.FixedWidthTypes.Time64us, 0, "10:30:00", "noon"},
	} {
		values, _, err := array.FromJSON(mem, c.typ, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 10, sourcetest.Record(t, mem, sourcetest.Col{Name: "k", Values: values}))
		x, _ := indexed(t, found(t, dir), Options{Key: "k", FPR: 1e-6, Rule: c.rule})
		v, err := x.Parse([]string{c.is})
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		if may, err := x.Probe(t.Context(), []Unit{x.File(0)}, []uint64{v.Hash}); err != nil || !may[0] {
			t.Errorf("%s: %v, %v", c.typ, may, err)
		}
		if c.no == "" {
			continue
		}
		if _, err := x.Parse([]string{c.no}); err == nil || !errors.Is(err, fault.ErrMismatch) || strings.Contains(err.Error(), c.no) {
			t.Errorf("%s: %v", c.typ, err)
		}
	}
}

// Damage of any kind is an error: each bit, each length.
func TestDamage(t *testing.T) {
	_, list := listOf(t, random(3)[1:5])
	_, whole := indexed(t, list, Options{Key: "id", FPR: 0.1, RowGroups: true})
	if err := readWhole(whole, list); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := readWhole(whole[:n], list); err == nil {
			t.Fatalf("the first %d of %d bytes are read without an error", n, len(whole))
		}
	}
	if err := readWhole(append(bytes.Clone(whole), 0), list); err == nil {
		t.Error("a trailing byte is accepted")
	}
	b := bytes.Clone(whole)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if err := readWhole(b, list); err == nil {
				t.Fatalf("bit %d of byte %d is flipped without an error", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
}

// readWhole reads all of an index; list, if not nil, is its list.
func readWhole(b []byte, list *inputs.List) error {
	ctx := context.Background()
	store := storage.Memory()
	w, err := store.Create(ctx, "x", storage.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	if err := w.Commit(true); err != nil {
		return err
	}
	x, err := Open(ctx, store, "x")
	if err != nil {
		return err
	}
	defer x.Close()
	var units []Unit
	for i := range x.entries {
		units = append(units, x.entries[i].all)
		units = append(units, x.entries[i].groups...)
	}
	_, err = x.Probe(ctx, units, []uint64{0, 1 << 63, 1<<64 - 1})
	if list != nil {
		err = errors.Join(err, x.Of(list))
	}
	return errors.Join(err, x.Check(ctx))
}

// FuzzIndex reads any bytes, with sums that are made true.
func FuzzIndex(f *testing.F) {
	_, list := listOf(f, random(3)[:9])
	_, whole := indexed(f, list, Options{Key: "id", FPR: 0.1, RowGroups: true})
	f.Add(whole, false)
	f.Add(whole[:len(whole)/2], true)
	f.Add(whole, true)
	f.Fuzz(func(_ *testing.T, b []byte, sealed bool) {
		if sealed {
			b = seal(bytes.Clone(b))
		}
		_ = readWhole(b, nil)
	})
}

// seal makes the checksum of what stands before the filters true, if there is one.
func seal(b []byte) []byte {
	if int64(len(b)) < preludeBytes+sumBytes {
		return b
	}
	end := uint64(preludeBytes)
	for i := range 2 {
		n := binary.LittleEndian.Uint64(b[len(magic)+4+8*i:])
		if n > uint64(len(b)) {
			return b
		}
		end += n
	}
	if end+sumBytes <= uint64(len(b)) {
		binary.LittleEndian.PutUint64(b[end:], xxh3.Hash(b[:end]))
	}
	return b
}

// A file that is in testdata stays as it was: later versions read it.
func TestGolden(t *testing.T) {
	name := filepath.Join("testdata", "v1.index")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && *update {
		_, list := listOf(t, random(3)[:9])
		_, b = indexed(t, list, Options{Key: "id", FPR: 0.1, RowGroups: true})
		if err = os.MkdirAll("testdata", 0o777); err == nil {
			err = os.WriteFile(name, b, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := readWhole(b, nil); err != nil {
		t.Error(err)
	}
	x, err := Open(t.Context(), storage.Local(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i, values := range random(3)[:9] {
		for _, v := range values {
			if v == nil {
				continue
			}
			if may, err := x.Probe(t.Context(), []Unit{x.File(i)}, []uint64{intHash(v.(int))}); err != nil || !may[0] {
				t.Fatalf("file %d: %v, %v", i, may, err)
			}
		}
	}
}

// Files must have the key, of one class.
func TestRefused(t *testing.T) {
	mem := memory.DefaultAllocator
	dir := t.TempDir()
	sourcetest.Write(t, filepath.Join(dir, "a.parquet"), 10, sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: []int64{1}}))
	sourcetest.Write(t, filepath.Join(dir, "b.parquet"), 10, sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: []string{"1"}}))
	_, err := Build(t.Context(), found(t, dir), source.Opening{}, Options{Key: "id", FPR: 0.1})
	sourcetest.Says(t, "two classes", err, fault.ErrMismatch, "b.parquet", "integer", "text or binary", "index those of one class")
	_, err = Build(t.Context(), found(t, dir), source.Opening{}, Options{Key: "user", FPR: 0.1})
	sourcetest.Says(t, "no key", err, fault.ErrNoColumn, "user")
}

// A file that cannot be read is one error, in one line.
func TestUnreadable(t *testing.T) {
	dir, list := listOf(t, random(5))
	name := filepath.Join(dir, "p003.parquet")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b[:60] {
		b[4+i] = 0xff
	}
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Build(t.Context(), list, source.Opening{}, Options{Key: "id", FPR: 0.1, Threads: 2})
	sourcetest.Says(t, "damaged", err, nil, "p003.parquet")
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("several lines: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, list, source.Opening{}, Options{Key: "id", FPR: 0.1}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// A large file that was changed in place, with the same size and footer, is indexed again.
func TestChangedInPlace(t *testing.T) {
	const rows = 300_000
	ids := make([]int64, rows)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range ids {
		ids[i] = rng.Int64N(1 << 62)
	}
	dir := t.TempDir()
	name := sourcetest.Write(t, filepath.Join(dir, "p.parquet"), rows, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}))
	old := found(t, dir)
	x, _ := indexed(t, old, Options{Key: "id", FPR: 0.01})
	content := []byte(sourcetest.Get(t, name))
	at := -1
	var key []byte
	for i := rows / 2; at < 0 && i < rows; i++ { // one that was stored as it is
		key = binary.LittleEndian.AppendUint64(nil, uint64(ids[i]))
		at = bytes.Index(content, key)
	}
	if at < 0 || len(content) <= source.WholeBelow {
		t.Fatalf("no value in %d bytes", len(content))
	}
	content[at]++
	sourcetest.Put(t, name, string(content))
	if err := os.Chtimes(name, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	now := found(t, dir)
	var was, is inputs.Input
	for in := range old.Each(t.Context()) {
		was = in
	}
	for in := range now.Each(t.Context()) {
		is = in
	}
	if !bytes.Equal(was.Print, is.Print) || was.Size != is.Size {
		t.Fatal("the footer has changed, too")
	}
	// It is read again: the checksum of a page shows that it was changed.
	if f, err := Build(t.Context(), now, source.Opening{}, Options{Key: "id", FPR: 0.01, Old: x, OldList: old}); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("%v, %+v", err, f)
	}
}
