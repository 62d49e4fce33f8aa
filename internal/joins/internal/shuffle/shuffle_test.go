package shuffle

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/table"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
)

// keyKind makes keys from numbers; different numbers give different keys.
type keyKind struct {
	name  string
	types []arrow.DataType
	add   func(b []array.Builder, n int)
}

func keyKinds() []keyKind {
	spelled := func(n int) string { return fmt.Sprintf("key %d%s", n, strings.Repeat("x", n%40)) }
	return []keyKind{
		{"int64", []arrow.DataType{arrow.PrimitiveTypes.Int64}, func(b []array.Builder, n int) {
			if n%3 == 0 {
				n = -n // 0 stays
			}
			b[0].(*array.Int64Builder).Append(int64(n) * 1_000_003)
		}},
		{"uint64", []arrow.DataType{arrow.PrimitiveTypes.Uint64}, func(b []array.Builder, n int) {
			b[0].(*array.Uint64Builder).Append(-uint64(n))
		}},
		{"string", []arrow.DataType{arrow.BinaryTypes.String}, func(b []array.Builder, n int) {
			b[0].(*array.StringBuilder).Append(spelled(n))
		}},
		{"two columns", []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.LargeString}, func(b []array.Builder, n int) {
			b[0].(*array.Int32Builder).Append(int32(n % 100))
			b[1].(*array.LargeStringBuilder).Append(spelled(n / 100))
		}},
	}
}

// batches makes records of keys and a column "row" that counts them. A number below
// zero gives a NULL key.
func (k keyKind) record(t testing.TB, numbers []int, firstRow int) arrow.Record {
	var fields []arrow.Field
	for i, dt := range k.types {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("k", i), Type: dt, Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "row", Type: arrow.PrimitiveTypes.Int64})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, n := range numbers {
		if n < 0 {
			for c := range k.types {
				b.Field(c).AppendNull()
			}
		} else {
			k.add(b.Fields(), n)
		}
		b.Field(len(k.types)).(*array.Int64Builder).Append(int64(firstRow + i))
	}
	return b.NewRecord()
}

func (k keyKind) encoder(t testing.TB) *keys.Encoder {
	rec := k.record(t, nil, 0)
	var paths []keys.Column
	for i := range k.types {
		paths = append(paths, keys.Column{Path: keys.Path{fmt.Sprint("k", i)}})
	}
	enc, err := keys.NewEncoder(rec.Schema(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

// shuffleCase is a log, by row group, and IDs, both as numbers from which keys are
// made.
type shuffleCase struct {
	kind  keyKind
	rows  bool
	units [][]int
	ids   []int
	opts  Options
	mask  *uint64 // of hashes
}

const testBatch = 1000

// fill writes both sides to disk.
func (c *shuffleCase) fill(t testing.TB, s *Shuffle) error {
	enc := c.kind.encoder(t)
	var group sync.WaitGroup
	errs := make([]error, s.Threads)
	for w := range s.Threads {
		group.Go(func() {
			errs[w] = func() error {
				l, err := s.NewLogWriter()
				if err != nil {
					return err
				}
				var b keys.Batch
				for u := w; u < len(c.units); u += s.Threads {
					for chunk := range slices.Chunk(c.units[u], testBatch) {
						rec := c.kind.record(t, chunk, 0)
						if err := enc.Encode(rec, &b); err != nil {
							return err
						}
						if err := l.Add(&b, all(&b), u); err != nil {
							return err
						}
						rec.Release()
					}
				}
				return l.Close()
			}()
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	w, err := s.NewIDWriter()
	if err != nil {
		return err
	}
	var b keys.Batch
	row := 0
	for chunk := range slices.Chunk(c.ids, testBatch) {
		rec := c.kind.record(t, chunk, row)
		if err := enc.Encode(rec, &b); err != nil {
			return err
		}
		if c.rows {
			err = w.AddRows(roomtest.HeldBatch(t, s.Columns, rec, &b), all(&b), int64(row))
		} else {
			err = w.AddKeys(&b, all(&b))
		}
		if err != nil {
			return err
		}
		rec.Release()
		row += len(chunk)
	}
	return w.Close()
}

func all(b *keys.Batch) []uint32 {
	at := make([]uint32, len(b.Rows))
	for i := range at {
		at[i] = uint32(i)
	}
	return at
}

// start runs the shuffle of a case up to the exchange.
func (c *shuffleCase) start(t testing.TB, memory int64) *Shuffle {
	o := c.opts
	o.Account = budget.New(memory)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Integers = len(c.kind.types) == 1 && c.kind.types[0].ID() != arrow.STRING
	if c.rows {
		o.Columns, o.Matched = roomtest.Held(t, c.kind.record(t, nil, 0).Schema()), true
	}
	for _, u := range c.units {
		o.GroupRows = append(o.GroupRows, int64(len(u)))
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if c.mask != nil {
		s.mask = *c.mask
	}
	return s
}

// check compares the IDs that each range gets with those it needs.
func (c *shuffleCase) check(t testing.TB, s *Shuffle) (blocks int) {
	ctx := context.Background()
	inIDs, inLog := map[int]int{}, map[int]bool{}
	for _, n := range c.ids {
		inIDs[n]++
	}
	next := 0
	for r, rg := range s.Ranges {
		if rg.Lo != next || rg.Hi <= rg.Lo {
			t.Fatalf("ranges %v", s.Ranges)
		}
		next = rg.Hi
		wanted := map[int]bool{}
		for _, u := range c.units[rg.Lo:rg.Hi] {
			for _, n := range u {
				if n >= 0 && inIDs[n] > 0 {
					wanted[n], inLog[n] = true, true
				}
			}
		}
		src := s.Source(r)
		var rows []int64
		keysSeen := map[int]bool{}
		for more := true; more; blocks++ {
			side, again, err := src.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			more = again
			if c.rows {
				rows = append(rows, sideRows(t, s, side)...)
			} else {
				c.sideKeys(t, side, wanted, keysSeen)
			}
			side.Release()
		}
		src.Free()
		if c.rows {
			var want []int64
			for row, n := range c.ids {
				if wanted[n] {
					want = append(want, int64(row))
				}
			}
			if !slices.Equal(rows, want) {
				t.Fatalf("range %v: %d rows, want %d", rg, len(rows), len(want))
			}
		} else if len(keysSeen) != len(wanted) {
			t.Fatalf("range %v: %d keys, want %d", rg, len(keysSeen), len(wanted))
		}
	}
	if next != len(c.units) {
		t.Fatalf("the ranges end at %d of %d", next, len(c.units))
	}
	var matched, keys int64
	for n := range inLog {
		matched += int64(inIDs[n])
		if inIDs[n] > 0 {
			keys++
		}
	}
	if got, distinct := s.IDsMatched.Load(), s.KeysMatched.Load(); got != matched || distinct != keys {
		t.Errorf("%d IDs with %d keys are matched, want %d with %d", got, distinct, matched, keys)
	}
	if c.rows {
		m := s.MatchedRows()
		for row, n := range c.ids {
			got, err := m.Has(int64(row))
			if err != nil || got != (n >= 0 && inLog[n]) {
				t.Fatalf("row %d is matched: %v, want %v: %v", row, got, inLog[n], err)
			}
		}
		for i := range 2 << s.rows.binBits { // rows after the last one that was kept
			row := int64(len(c.ids) + i)
			if got, err := m.Has(row); err != nil || got {
				t.Fatalf("row %d, which was not kept, is matched: %v: %v", row, got, err)
			}
		}
	}
	return blocks
}

// sideRows returns the rows of a side, in order.
func sideRows(t testing.TB, s *Shuffle, side *table.Side) (rows []int64) {
	a, err := s.Columns.Array(memory.DefaultAllocator, side.Rows(), len(s.Columns.Spans)-1, table.UpTo(nil, side.NumRows()))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	return slices.Clone(a.(*array.Int64).Int64Values())
}

// sideKeys looks all existing keys up in the side.
func (c *shuffleCase) sideKeys(t testing.TB, side *table.Side, wanted, seen map[int]bool) {
	enc := c.kind.encoder(t)
	var everything []int
	for _, u := range append(slices.Clone(c.units), c.ids) {
		everything = append(everything, u...)
	}
	slices.Sort(everything)
	everything = slices.Compact(everything)
	for chunk := range slices.Chunk(everything, 1<<15) {
		rec := c.kind.record(t, chunk, 0)
		var b keys.Batch
		if err := enc.Encode(rec, &b); err != nil {
			t.Fatal(err)
		}
		found, _ := side.Find(&b, all(&b), nil, nil)
		for _, f := range found {
			n := chunk[b.Rows[f]]
			if !wanted[n] {
				t.Fatal("a key that the range does not need")
			}
			if seen[n] {
				t.Fatal("a key in two blocks")
			}
			seen[n] = true
		}
		rec.Release()
	}
}

// run runs a whole case.
func (c *shuffleCase) run(t testing.TB, memory int64) (s *Shuffle, blocks int) {
	s = c.start(t, memory)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if held := s.Account.InUse(); held != 0 {
			t.Errorf("%d bytes are still on the account", held)
		}
	}()
	if err := c.fill(t, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Exchange(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s, c.check(t, s)
}

// pick returns n numbers below span, including some -1.
func pick(rng *rand.Rand, n, span int) []int {
	all := make([]int, n)
	for i := range all {
		if all[i] = rng.IntN(span); rng.IntN(50) == 0 {
			all[i] = -1
		}
	}
	return all
}

func TestShuffle(t *testing.T) {
	// Unless all run, one or three threads in turn.
	for i, kind := range keyKinds() {
		for j, rows := range []bool{false, true} {
			for k, threads := range []int{1, 3} {
				for l, memory := range []int64{0, 512 << 10, 4 << 20} {
					if (i+j+k+l)%2 != 0 && !cases.All() {
						continue
					}
					t.Run(fmt.Sprintf("%s,rows=%v,threads=%d,memory=%d", kind.name, rows, threads, memory), func(t *testing.T) {
						rng := rand.New(rand.NewPCG(3, uint64(memory)))
						c := shuffleCase{kind: kind, rows: rows, opts: Options{Threads: threads}}
						for range 20 {
							c.units = append(c.units, pick(rng, rng.IntN(2000), 12_000))
						}
						c.ids = pick(rng, 8_000, 15_000)
						s, _ := c.run(t, memory)
						if memory == 512<<10 && len(s.Ranges) == 1 && rows {
							t.Error("one range: the test shows too little")
						}
					})
				}
			}
		}
	}
}

func TestShuffleOfNothing(t *testing.T) {
	for _, rows := range []bool{false, true} {
		for _, c := range []shuffleCase{
			{},
			{units: [][]int{{}, {1, 2, -1}, {}}},
			{units: [][]int{{}, {}}, ids: []int{1, 2, -1, 1}},
			{units: [][]int{{1}, {2}}, ids: []int{3, 4}},
		} {
			c.kind, c.rows = keyKinds()[0], rows
			c.run(t, 1<<20)
		}
	}
}

// Heavy keys: 30 % of the log's rows and of the IDs have one key; other keys follow a
// Zipf distribution.
func TestShuffleHeavyKeys(t *testing.T) {
	for _, kind := range keyKinds()[:3] {
		for _, rows := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(5, 6))
			zipf := rand.NewZipf(rng, 1.2, 1, 50_000)
			c := shuffleCase{kind: kind, rows: rows, opts: Options{Threads: 2}}
			for range 10 {
				u := pick(rng, 8000, 50_000)
				for i := range u {
					switch i % 10 {
					case 0, 1, 2:
						u[i] = 77
					case 3, 4, 5:
						u[i] = int(zipf.Uint64())
					}
				}
				c.units = append(c.units, u)
			}
			c.ids = pick(rng, 20_000, 60_000)
			for i := range c.ids {
				if i%10 < 3 {
					c.ids[i] = 77
				}
			}
			s, _ := c.run(t, 2<<20)
			var entries int64
			for _, u := range c.units {
				entries += int64(len(u))
			}
			if kind.name == "int64" && !rows && s.Written() > 9*entries+9*int64(len(c.ids)) {
				t.Errorf("%d bytes on disk for %d rows of the log: repeats were written", s.Written(), entries)
			}
		}
	}
}

// The exchange ends even if all keys have the same hash: the table takes some of them
// at a time.
func TestShuffleCollisions(t *testing.T) {
	for _, kind := range keyKinds()[1:3] {
		for _, rows := range []bool{false, true} {
			for _, mask := range []uint64{0, 1} { // no hash bit divides them, or one
				rng := rand.New(rand.NewPCG(7, 8))
				c := shuffleCase{kind: kind, rows: rows, mask: &mask, opts: Options{Threads: 2}}
				for range 60 { // to make the sets large
					c.units = append(c.units, pick(rng, 500, 1000))
				}
				c.ids = pick(rng, 800, 1000)
				c.run(t, 256<<10)
			}
		}
	}
}

// If there are more bins of rows than buffers, rows are distributed in two steps.
func TestShuffleManyBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	c := shuffleCase{kind: keyKinds()[0], rows: true, opts: Options{Threads: 2}}
	for range 40 {
		c.units = append(c.units, pick(rng, 300, 60_000))
	}
	c.ids = pick(rng, 100_000, 60_000)
	s := c.start(t, 256<<10)
	if err := c.fill(t, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Exchange(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.rows.binsPerWant == 0 {
		t.Error("one step: the test shows nothing")
	}
	c.check(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Many keys in little memory.
func TestShuffleMuchInLittle(t *testing.T) {
	scale := cases.Count(4, 4, 1)
	for _, rows := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(9, 10))
		c := shuffleCase{kind: keyKinds()[0], rows: rows, opts: Options{Threads: 2}}
		for range 30 {
			c.units = append(c.units, pick(rng, 40_000/scale, 3_000_000/scale))
		}
		c.ids = pick(rng, 1_000_000/scale, 3_000_000/scale)
		s, blocks := c.run(t, 4<<20/int64(scale))
		t.Logf("rows %v: %d ranges, %d bytes written, %d at one time", rows, len(s.Ranges), s.Written(), s.file.Disk())
		if blocks < 2 || rows && s.file.Disk() >= s.Written() {
			t.Error("the test shows too little")
		}
		if blocks != len(s.Ranges) {
			t.Errorf("%d blocks in %d ranges: not every range fits, as it should", blocks, len(s.Ranges))
		}
	}
}

// The account has what is really held.
func TestShuffleAccount(t *testing.T) {
	for _, kind := range keyKinds()[1:3] {
		rng := rand.New(rand.NewPCG(15, 16))
		c := shuffleCase{kind: kind, opts: Options{Threads: 1}, units: [][]int{make([]int, 1<<20)}}
		s := c.start(t, 64<<20)
		var batches []*keys.Batch
		for range cases.Count(20, 40, 40) {
			b := new(keys.Batch)
			if err := kind.encoder(t).Encode(kind.record(t, pick(rng, 20_000, 1<<30), 0), b); err != nil {
				t.Fatal(err)
			}
			batches = append(batches, b)
		}
		compare := func(what string, made func() (held int64, keep any)) {
			t.Helper()
			before := heapInUse()
			held, keep := made()
			got := heapInUse() - before
			runtime.KeepAlive(keep)
			least := -0.1
			if bits.UintSize < 64 { // slices and pointers are counted as those of 64 bits
				least = -0.25
			}
			if off := float64(got)/float64(held) - 1; off < least || off > 0.1 {
				t.Errorf("%s, %s: %d bytes are held, %d on the account", kind.name, what, got, held)
			}
		}
		compare("writer", func() (int64, any) {
			l, err := s.NewLogWriter()
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range batches {
				if err := l.Add(b, all(b), 0); err != nil {
					t.Fatal(err)
				}
			}
			return l.share.Bytes(), l
		})
		compare("table", func() (int64, any) {
			table := newLogKeys(s.Integers, 3<<20, 24, 100)
			return table.bytes(), table
		})
		runtime.KeepAlive(batches)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // pools are emptied in two steps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A row group that needs more IDs than fit gets them in portions.
func TestShuffleBlocks(t *testing.T) {
	for _, rows := range []bool{false, true} {
		c := shuffleCase{kind: keyKinds()[0], rows: rows, opts: Options{Threads: 2}}
		c.units = [][]int{make([]int, 100_000), {5}}
		for i := range c.units[0] {
			c.units[0][i] = i
		}
		c.ids = slices.Clone(c.units[0])
		if s, blocks := c.run(t, 1<<20); blocks < 3 || len(s.Ranges) != 2 {
			t.Errorf("rows %v: %d blocks in ranges %v", rows, blocks, s.Ranges)
		}
	}
}

// Faults: data on disk is changed, the disk fails, the context ends.
func TestShuffleFaults(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, rows := range []bool{false, true} {
		c := shuffleCase{kind: keyKinds()[0], rows: rows, opts: Options{Threads: 2}}
		for range 10 {
			c.units = append(c.units, pick(rng, 3000, 20_000))
		}
		c.ids = pick(rng, 20_000, 20_000)

		s := c.start(t, 1<<20)
		if err := c.fill(t, s); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Exchange(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
		if err := s.Close(); err != nil || s.Account.InUse() != 0 {
			t.Errorf("%d bytes are held: %v", s.Account.InUse(), err)
		}

		c.opts.Dir = t.TempDir() + "/none"
		s = c.start(t, 1<<20)
		if err := c.fill(t, s); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "TempDir") {
			t.Errorf("no directory: %v", err)
		}
		s.Close()
		c.opts.Dir = ""

		s = c.start(t, 1<<20)
		if err := c.fill(t, s); err != nil {
			t.Fatal(err)
		}
		if !damage(t, s.Dir) {
			t.Log("the file is not to be found here")
		} else if err := s.Exchange(context.Background()); !errors.Is(err, fault.ErrCorrupt) || !strings.Contains(err.Error(), "want") {
			t.Errorf("changed bytes: %v", err)
		}
		s.Close()
	}
}

// damage changes a byte of each stream in the anonymous spill file in dir. Only Linux
// shows such files.
func damage(t *testing.T, dir string) (found bool) {
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if name, err := os.Readlink(fd); err != nil || !strings.HasPrefix(name, dir) {
			continue
		}
		f, err := os.OpenFile(fd, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		const stretch, first = 256 << 10, 30 // where streams get room, and a byte of their first chunks
		for at := int64(first); at < info.Size(); at += stretch {
			var b [1]byte
			if _, err := f.ReadAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			b[0] ^= 4
			if _, err := f.WriteAt(b[:], at); err != nil {
				t.Fatal(err)
			}
			found = true
		}
		return found // Glob's own descriptor may be among fds, and may now be f
	}
	return false
}

// Random cases, in as little memory as possible. BLOOMJOIN_SHUFFLE sets their number.
func TestShuffleRandom(t *testing.T) {
	cases := 25
	if n, err := strconv.Atoi(os.Getenv("BLOOMJOIN_SHUFFLE")); err == nil {
		cases = n
	}
	for seed := range cases {
		rng := rand.New(rand.NewPCG(99, uint64(seed)))
		kinds := keyKinds()
		c := shuffleCase{kind: kinds[rng.IntN(len(kinds))], rows: rng.IntN(2) == 0, opts: Options{Threads: 1 + rng.IntN(4)}}
		span := 1 << rng.IntN(16)
		for range rng.IntN(1 << rng.IntN(9)) {
			c.units = append(c.units, pick(rng, rng.IntN(1<<rng.IntN(11)), span))
		}
		c.ids = pick(rng, rng.IntN(1<<rng.IntN(15)), span)
		if rng.IntN(8) == 0 {
			mask := uint64(rng.IntN(4))
			c.mask = &mask
		}
		memory := int64(minRoom) << rng.IntN(4)
		t.Run(fmt.Sprintf("%d: %s, rows %v, %d units, %d ids, %d bytes", seed, c.kind.name, c.rows, len(c.units), len(c.ids), memory), func(t *testing.T) {
			c.run(t, memory)
		})
	}
}
