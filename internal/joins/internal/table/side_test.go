package table

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/arrow/util"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins/internal/budget"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/tables"
)

// sideKinds are kinds of keys, by the types of their columns.
var sideKinds = map[string][]arrow.DataType{
	"int64":     {arrow.PrimitiveTypes.Int64},
	"uint64":    {arrow.PrimitiveTypes.Uint64},
	"string":    {arrow.BinaryTypes.String},
	"composite": {arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String},
}

// idBatch is a record of IDs: keys by column as text ("" is NULL except in strings),
// and their number as payload.
type idBatch struct {
	rec   arrow.Record
	batch keys.Batch
	texts []string // of each row; "" without a key
}

func newIDBatch(t testing.TB, mem memory.Allocator, types []arrow.DataType, rows [][]string, first int) *idBatch {
	t.Helper()
	fields := []arrow.Field{}
	paths := []keys.Column{}
	for i, dt := range types {
		fields = append(fields, arrow.Field{Name: "k" + strconv.Itoa(i), Type: dt, Nullable: true})
		paths = append(paths, keys.Column{Path: keys.Path{fields[i].Name}})
	}
	fields = append(fields, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true})
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	out := &idBatch{}
	for r, row := range rows {
		text := ""
		for i, v := range row {
			if v == "NULL" {
				b.Field(i).AppendNull()
				continue
			}
			if sb, ok := b.Field(i).(*array.StringBuilder); ok {
				sb.Append(v)
			} else if err := b.Field(i).AppendValueFromString(v); err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%d %s|", len(v), v)
		}
		if slices.Contains(row, "NULL") {
			text = ""
		}
		out.texts = append(out.texts, text)
		b.Field(len(types)).(*array.Int64Builder).Append(int64(first + r))
		if (first+r)%7 == 0 {
			b.Field(len(types) + 1).AppendNull()
		} else {
			b.Field(len(types) + 1).(*array.StringBuilder).Append(payload(first + r))
		}
	}
	out.rec = b.NewRecord()
	enc, err := keys.NewEncoder(out.rec.Schema(), paths, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(out.rec, &out.batch); err != nil {
		t.Fatal(err)
	}
	return out
}

func payload(n int) string { return strings.Repeat("p", n%11) + strconv.Itoa(n) }

// someKey returns the columns of one of the given number of keys, sometimes with NULL.
func someKey(r *rand.Rand, types []arrow.DataType, different int, nulls float64) []string {
	k := r.IntN(different)
	if r.IntN(5) == 0 {
		k = 3 // heavy
	}
	var row []string
	for i, dt := range types {
		v := ""
		switch {
		case r.Float64() < nulls:
			v = "NULL"
		case dt.ID() == arrow.INT64 && i == 0:
			v = strconv.FormatInt([]int64{0, math.MinInt64, math.MaxInt64, -1, int64(k), int64(-k), int64(k) << 40}[k%7], 10)
		case dt.ID() == arrow.UINT64:
			v = strconv.FormatUint([]uint64{0, 1 << 63, math.MaxUint64, uint64(k), uint64(k) << 40}[k%5], 10)
		case k%997 == 0:
			v = strings.Repeat("long"+strconv.Itoa(k), 1+k%10_000)
		case k%13 == 0:
			v = ""
		default:
			v = strconv.Itoa(k)
		}
		row = append(row, v)
	}
	return row
}

// TestSideKeys adds keys from many goroutines and compares with a map. At the end
// nothing is left on the account.
func TestSideKeys(t *testing.T) {
	for name, types := range sideKinds {
		for _, different := range []int{1, 30_000} {
			t.Run(fmt.Sprint(name, different), func(t *testing.T) {
				r := rand.New(rand.NewPCG(5, uint64(different)))
				acc := budget.New(0)
				for _, reserved := range []int64{0, 500_000, 20_000}[cases.Count(1, 0, 0):] {
					s := New(Kind{Integers: len(types) == 1 && types[0].ID() != arrow.STRING}, acc)
					want := map[string]int64{}
					var batches []*idBatch
					for range 12 {
						var rows [][]string
						for range 1 + r.IntN(4000) {
							rows = append(rows, someKey(r, types, different, 0.02))
						}
						b := newIDBatch(t, memory.DefaultAllocator, types, rows, 0)
						batches = append(batches, b)
					}
					s.Reserve(reserved)
					var wg sync.WaitGroup
					for i, b := range batches {
						keep, half := []uint32{}, i%3 == 0
						for p, row := range b.batch.Rows {
							if half && r.IntN(2) == 0 {
								continue
							}
							keep = append(keep, uint32(p))
							want[b.texts[row]]++
						}
						wg.Go(func() {
							err := s.AddKeysAt(&b.batch, keep)
							if !half {
								err = errors.Join(err, s.AddKeysAt(&b.batch, nil))
							}
							if err != nil {
								t.Error(err)
							}
						})
					}
					wg.Wait()
					if err := s.Seal(); err != nil {
						t.Fatal(err)
					}
					findAll(t, r, s, types, different, want)
					s.Release()
				}
				if held := acc.InUse(); held != 0 {
					t.Errorf("%d bytes are on the account after all", held)
				}
			})
		}
	}
}

// findAll looks up keys that are in the side and keys that are not, from many
// goroutines, marks some, and compares the number of rows of each.
func findAll(t *testing.T, r *rand.Rand, s *Side, types []arrow.DataType, different int, want map[string]int64) {
	t.Helper()
	var mu sync.Mutex
	marked := map[string]bool{}
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		var rows [][]string
		for range 8000 {
			rows = append(rows, someKey(r, types, different*5/4, 0.01))
		}
		b := newIDBatch(t, memory.DefaultAllocator, types, rows, 0)
		var hits []uint32
		for p := range b.batch.Rows {
			if r.IntN(4) > 0 {
				hits = append(hits, uint32(p))
			}
		}
		wg.Go(func() {
			in := slices.Clone(hits)
			members, entries := s.Find(&b.batch, in, in, nil)
			at := 0
			for _, h := range hits {
				text := b.texts[b.batch.Rows[h]]
				found := at < len(members) && members[at] == h
				if found != (want[text] > 0) {
					t.Errorf("%.40q: found %v, added %d times", text, found, want[text])
				}
				if !found {
					continue
				}
				mu.Lock()
				seen[text] = true
				if len(text)%3 == 0 || strings.Contains(text, "7") {
					marked[text] = true
					s.Mark(entries[at])
				}
				if s.Marked(entries[at]) != marked[text] {
					t.Errorf("%.40q: marked %v, want %v", text, s.Marked(entries[at]), marked[text])
				}
				mu.Unlock()
				at++
			}
			if at != len(members) {
				t.Errorf("%d members, of which %d are hits", len(members), at)
			}
		})
	}
	wg.Wait()
	var n int64
	for text := range marked {
		n += want[text]
	}
	if got, keys := s.Matched(); got != n || keys != int64(len(marked)) {
		t.Errorf("%d IDs with %d keys matched, want %d with %d", got, keys, n, len(marked))
	}
	if len(seen) == 0 || different > 1 && len(marked) == 0 {
		t.Errorf("nothing was found: the test tests nothing")
	}
}

// TestSideSigns: -1 and 2^64-1 have the same bits but are different keys.
func TestSideSigns(t *testing.T) {
	s := New(Kind{Integers: true}, budget.New(0))
	signed := newIDBatch(t, memory.DefaultAllocator, sideKinds["int64"], [][]string{{"-1"}, {"5"}, {"-7"}}, 0)
	unsigned := newIDBatch(t, memory.DefaultAllocator, sideKinds["uint64"], [][]string{{"18446744073709551615"}, {"5"}, {"18446744073709551609"}, {"9"}}, 0)
	if err := s.AddKeys(&signed.batch); err != nil {
		t.Fatal(err)
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if members, _ := s.Find(&unsigned.batch, []uint32{0, 1, 2, 3}, nil, nil); !slices.Equal(members, []uint32{1}) {
		t.Errorf("found %v, want 1", members)
	}
	if members, _ := s.Find(&signed.batch, []uint32{0, 1, 2}, nil, nil); !slices.Equal(members, []uint32{0, 1, 2}) {
		t.Errorf("found %v, want all", members)
	}
}

// TestSideRows compares the rows of each key, which are in the IDs' order, and their
// columns with a map, for any number of threads and sizes of records.
func TestSideRows(t *testing.T) {
	for name, types := range sideKinds {
		for different, threads := range map[int]int{50: 1, 40_000: 4} {
			t.Run(fmt.Sprint(name, different, threads), func(t *testing.T) {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer mem.AssertSize(t, 0)
				r := rand.New(rand.NewPCG(6, uint64(different)))
				acc := budget.New(0)
				for _, reserved := range []int64{0, 500_000}[:cases.Count(1, 2, 2)] {
					s := New(Kind{Integers: len(types) == 1 && types[0].ID() != arrow.STRING, Columns: heldIf(t, true, types), Threads: threads}, acc)
					s.Reserve(reserved)
					checkSideRows(t, r, s, mem, types, different)
					s.Release()
				}
				if held := acc.InUse(); held != 0 {
					t.Errorf("%d bytes are on the account after all", held)
				}
			})
		}
	}
}

// heldIf returns the columns of IDs with the given key columns, or none.
func heldIf(t testing.TB, rows bool, types []arrow.DataType) *tables.Columns {
	if !rows {
		return nil
	}
	b := newIDBatch(t, memory.DefaultAllocator, types, nil, 0)
	defer b.rec.Release()
	return roomtest.Held(t, b.rec.Schema())
}

// addRows adds rows of a record: those at the positions in keep, or all if keep is nil.
func addRows(t testing.TB, s *Side, rec arrow.Record, k *keys.Batch, keep []uint32) error {
	b := roomtest.HeldBatch(t, s.kind.Columns, rec, k)
	if keep == nil {
		return s.AddRows(b)
	}
	return s.AddRowsAt(b, keep)
}

func checkSideRows(t *testing.T, r *rand.Rand, s *Side, mem memory.Allocator, types []arrow.DataType, different int) {
	t.Helper()
	rowsOf := map[string][]uint32{}
	var numbers []int // payload of each row of the side
	var texts []string
	next := 0
	for _, size := range []int{0, 1, 20, 3000, 30_000, 7, 40_000, 1, 500} {
		if different < 100 {
			size = min(size, 5000)
		}
		var rows [][]string
		for range size {
			rows = append(rows, someKey(r, types, different, 0.03))
		}
		b := newIDBatch(t, mem, types, rows, next)
		rec := b.rec
		var err error
		if r.IntN(2) == 0 {
			err = addRows(t, s, rec, &b.batch, nil)
			for i, text := range b.texts {
				numbers, texts = append(numbers, next+i), append(texts, text)
			}
		} else {
			var keep []uint32
			for p, row := range b.batch.Rows {
				if r.IntN(3) > 0 {
					keep = append(keep, uint32(p))
					numbers, texts = append(numbers, next+int(row)), append(texts, b.texts[row])
				}
			}
			err = addRows(t, s, rec, &b.batch, append([]uint32{}, keep...))
		}
		if err != nil {
			t.Fatal(err)
		}
		next += size
		rec.Release()
	}
	for i, text := range texts {
		if text != "" {
			rowsOf[text] = append(rowsOf[text], uint32(i))
		}
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}

	var rows [][]string
	for range 1500 {
		rows = append(rows, someKey(r, types, different, 0.03))
	}
	b := newIDBatch(t, memory.DefaultAllocator, types, rows, 0)
	all := make([]uint32, len(b.batch.Rows))
	for i := range all {
		all[i] = uint32(i)
	}
	members, entries := s.Find(&b.batch, all, nil, nil)
	matched := map[string]bool{}
	var picked []int
	for i, m := range members {
		text := b.texts[b.batch.Rows[m]]
		var got []uint32
		for row := s.First(entries[i]); row != None; row = s.Next(entries[i], row) {
			got = append(got, row)
		}
		if !slices.Equal(got, rowsOf[text]) {
			t.Fatalf("%.40q: rows %v, want %v", text, got, rowsOf[text])
		}
		s.Mark(entries[i])
		matched[text] = true
		picked = append(picked, int(got[r.IntN(len(got))]), -1)
	}
	var n int64
	for text := range matched {
		n += int64(len(rowsOf[text]))
	}
	if got, keys := s.Matched(); got != n || keys != int64(len(matched)) {
		t.Errorf("%d rows with %d keys matched, want %d with %d", got, keys, n, len(matched))
	}
	for _, text := range b.texts {
		if text != "" && len(rowsOf[text]) > 0 && !matched[text] {
			t.Errorf("%.40q was not found", text)
		}
	}
	comparePayload(t, s, len(types), numbers, picked)

	matchedRows := s.MatchedRows()
	var lone []int64
	for row := range s.NumRows() {
		if matchedRows[row/64]>>(row%64)&1 == 0 {
			lone = append(lone, int64(numbers[row]))
		}
	}
	var want []int64
	for i, text := range texts {
		if !matched[text] {
			want = append(want, int64(numbers[i]))
		}
	}
	if !slices.Equal(lone, want) {
		t.Errorf("%d rows without a match, want %d", len(lone), len(want))
	}
}

// comparePayload compares the columns of rows with those that were added.
func comparePayload(t *testing.T, s *Side, c int, numbers, rows []int) {
	t.Helper()
	at := make([]uint32, len(rows))
	for i, row := range rows {
		at[i] = uint32(row) // None for -1
	}
	ns, err := s.kind.Columns.Array(memory.DefaultAllocator, s.Rows(), c, at)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Release()
	ss, err := s.kind.Columns.Array(memory.DefaultAllocator, s.Rows(), c+1, at)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Release()
	for i, row := range rows {
		if row < 0 {
			if !ns.IsNull(i) || !ss.IsNull(i) {
				t.Fatalf("no row has a column")
			}
			continue
		}
		n := numbers[row]
		text := payload(n)
		if got := ns.(*array.Int64).Value(i); got != int64(n) || ss.IsNull(i) != (n%7 == 0) || !ss.IsNull(i) && ss.(*array.String).Value(i) != text {
			t.Fatalf("row %d is that of ID %d with %s, want %d with %q", row, got, ss, n, text)
		}
	}
}

// TestSideBudget: the account never exceeds its bound; at the bound there is an error,
// and before it everything is as without one.
func TestSideBudget(t *testing.T) {
	for name, types := range sideKinds {
		for _, columns := range []bool{false, true} {
			acc := budget.New(3 << 20)
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			s := New(Kind{Integers: len(types) == 1 && types[0].ID() != arrow.STRING, Columns: heldIf(t, columns, types)}, acc)
			n := 0
			var err error
			for err == nil {
				var rows [][]string
				for i := range 1000 {
					row := make([]string, len(types))
					for c := range row {
						row[c] = strconv.Itoa(n + i)
					}
					rows = append(rows, row)
				}
				b := newIDBatch(t, mem, types, rows, n)
				if columns {
					err = addRows(t, s, b.rec, &b.batch, nil)
				} else {
					err = s.AddKeys(&b.batch)
				}
				b.rec.Release()
				if held := acc.InUse(); held > acc.Limit() {
					t.Errorf("%s: %d bytes held, %d allowed", name, held, acc.Limit())
				}
				n += len(rows)
			}
			if !errors.Is(err, fault.ErrMemory) || !strings.Contains(err.Error(), "the table of IDs needs") || !strings.Contains(err.Error(), "Memory") {
				t.Errorf("%s: %v", name, err)
			}
			if least := map[bool]int{false: 50_000, true: 20_000}[columns]; n < least {
				t.Errorf("%s, columns %v: only %d IDs fit", name, columns, n)
			}
			s.Release()
			mem.AssertSize(t, 0)
			if acc.InUse() != 0 {
				t.Errorf("%s: %d bytes are left on the account", name, acc.InUse())
			}
		}
	}
}

// TestSideMemory: the account differs from the live heap by less than a tenth.
func TestSideMemory(t *testing.T) {
	if cases.Race {
		t.Skip("memory by the allocator's figures, which the race detector makes ten times as slow")
	}
	for _, name := range []string{"int64", "string"} {
		types := sideKinds[name]
		for _, columns := range []bool{false, true} {
			for _, repeat := range []int{1, 3} {
				acc := budget.New(0)
				before := heap()
				s := New(Kind{Integers: len(types) == 1 && types[0].ID() != arrow.STRING, Columns: heldIf(t, columns, types)}, acc)
				fillSide(t, s, types, 150_000, repeat)
				if err := s.Seal(); err != nil {
					t.Fatal(err)
				}
				s.fillers.Get() // fillers are not on the account
				got, want := acc.InUse(), heap()-before
				if diff := math.Abs(float64(got - want)); diff > 0.1*float64(want) {
					t.Errorf("%s, columns %v, %d of each: %d bytes on the account, %d held", name, columns, repeat, got, want)
				}
				t.Logf("%s, columns %v, %d of each: %.1f bytes for each ID", name, columns, repeat, float64(got)/150_000)
				s.Release()
			}
		}
	}
}

// fillSide adds n IDs with short strings, the given number for each key.
func fillSide(t testing.TB, s *Side, types []arrow.DataType, n, repeat int) {
	for lo := 0; lo < n; lo += 50_000 {
		var rows [][]string
		for i := lo; i < min(lo+50_000, n); i++ {
			row := make([]string, len(types))
			for c := range row {
				row[c] = strconv.Itoa(i / repeat * 1001)
			}
			rows = append(rows, row)
		}
		b := newIDBatch(t, memory.DefaultAllocator, types, rows, lo)
		var err error
		if s.Rows() != nil {
			err = addRows(t, s, b.rec, &b.batch, nil)
		} else {
			err = s.AddKeys(&b.batch)
		}
		b.rec.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSlicedRows: of a slice of a larger record, only its rows are held.
func TestSlicedRows(t *testing.T) {
	var rows [][]string
	for i := range 40_000 {
		rows = append(rows, []string{strconv.Itoa(i)})
	}
	whole := newIDBatch(t, memory.DefaultAllocator, sideKinds["string"], rows, 0)
	acc := budget.New(0)
	s := New(Kind{Columns: heldIf(t, true, sideKinds["string"])}, acc)
	enc, err := keys.NewEncoder(whole.rec.Schema(), []keys.Column{{Path: keys.Path{"k0"}}}, keys.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for lo := int64(0); lo < 40_000; lo += 1000 {
		var batch keys.Batch
		part := whole.rec.NewSlice(lo, lo+1000)
		if err := enc.Encode(part, &batch); err != nil {
			t.Fatal(err)
		}
		if err := addRows(t, s, part, &batch, nil); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if held, all := s.Rows().Bytes(), util.TotalRecordSize(whole.rec); held > 2*all {
		t.Errorf("%d bytes are held of rows that take %d", held, all)
	}
	numbers, picked := []int{}, []int{}
	for i := range 40_000 {
		numbers, picked = append(numbers, i), append(picked, (i*7919)%40_000)
	}
	comparePayload(t, s, 1, numbers, picked)
}

// TestMix: common patterns of keys take no more probes than random keys, whatever the
// table's secret.
func TestMix(t *testing.T) {
	const n = 1 << 15
	patterns := map[string]func(i uint64) uint64{
		"in a row":    func(i uint64) uint64 { return i + 1 },
		"by 1000":     func(i uint64) uint64 { return (i + 1) * 1000 },
		"by 2^40":     func(i uint64) uint64 { return (i + 1) << 40 },
		"by 2^48":     func(i uint64) uint64 { return (i + 1) << 48 },
		"two clumps":  func(i uint64) uint64 { return i>>1 | (i&1)<<63 | 1<<62 },
		"snowflakes":  func(i uint64) uint64 { return (i/8+1)<<22 | i%8<<12 },
		"from 2^32 -": func(i uint64) uint64 { return 1<<32 - n/2 + i },
	}
	r := rand.New(rand.NewPCG(7, 7))
	for name, key := range patterns {
		worst := 0.0
		for range 100 {
			s := arrange(slotsFor(n))
			s.words = make([]uint64, s.n+1)
			tab := &table{ints: true, secret: r.Uint64() | 1, slots: s}
			probes := 0.0
			for i := range uint64(n) {
				v := key(i)
				h := tab.mix(v)
				at, _ := tab.start(h)
				place := tab.place(v, h)
				probes += float64((place + tab.width - at) % tab.width)
				tab.words[place] = v
			}
			worst = math.Max(worst, probes/n)
		}
		// Knuth, volume 3, 6.4: (1/(1-0.7)-1)/2 = 1.17 slots after the first, on
		// average.
		if worst > 1.5 {
			t.Errorf("%s: %.2f slots behind the first, on average, by the worst of 100 secrets", name, worst)
		}
	}
}

// TestEqualHashes: if chance or an attacker places many keys in one range, the table
// grows until they fit, or reports that it may not grow.
func TestEqualHashes(t *testing.T) {
	for _, most := range []int64{0, 8 << 20} {
		acc := budget.New(most)
		s := New(Kind{Integers: true}, acc)
		s.Reserve(200_000)
		var rows [][]string
		for v := uint64(1); len(rows) < 60_000; v++ {
			if h := s.keys.mix(v); h>>58 == 5 { // one of 64 ranges
				rows = append(rows, []string{strconv.FormatUint(v, 10)})
			}
		}
		b := newIDBatch(t, memory.DefaultAllocator, sideKinds["uint64"], rows, 0)
		err := s.AddKeys(&b.batch)
		if most > 0 {
			if !errors.Is(err, fault.ErrMemory) || acc.InUse() > most {
				t.Errorf("%v with %d bytes held, want fault.ErrMemory and %d", err, acc.InUse(), most)
			}
			continue
		}
		if err := errors.Join(err, s.Seal()); err != nil {
			t.Fatal(err)
		}
		all := make([]uint32, len(rows))
		for i := range all {
			all[i] = uint32(i)
		}
		if members, _ := s.Find(&b.batch, all, nil, nil); len(members) != len(rows) {
			t.Errorf("%d of %d found", len(members), len(rows))
		}
	}
}

// TestUnique: a side is unique until some key comes a second time, in whatever batch.
func TestUnique(t *testing.T) {
	for name, types := range sideKinds {
		for _, rows := range []bool{false, true} {
			for _, again := range []string{"", "0", "17", "-3"} {
				s := New(Kind{Integers: len(types) == 1 && types[0].ID() != arrow.STRING, Columns: heldIf(t, rows, types)}, budget.New(0))
				for _, values := range [][]string{{"0", "17", "-3", "NULL"}, {"5", "NULL", again}} {
					var keys [][]string
					for _, v := range values {
						if types[0].ID() == arrow.UINT64 {
							v = strings.TrimPrefix(v, "-")
						}
						if v != "" {
							keys = append(keys, slices.Repeat([]string{v}, len(types)))
						}
					}
					b := newIDBatch(t, memory.DefaultAllocator, types, keys, 0)
					var err error
					if rows {
						err = addRows(t, s, b.rec, &b.batch, nil)
					} else {
						err = s.AddKeys(&b.batch)
					}
					if err != nil {
						t.Fatal(err)
					}
					b.rec.Release()
				}
				if err := s.Seal(); err != nil {
					t.Fatal(err)
				}
				if got := s.Unique(); got != (again == "") {
					t.Errorf("%s, rows %t, %q twice: unique %t", name, rows, again, got)
				}
				s.Release()
			}
		}
	}
}
