package dedups

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/ring"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// columns returns the columns of tests: id, and ts in milliseconds.
func columns(t testing.TB, width time.Duration) Columns {
	id, err := keys.ParseColumns("id")
	if err != nil {
		t.Fatal(err)
	}
	ts, err := keys.ParseColumns("ts")
	if err != nil {
		t.Fatal(err)
	}
	return Columns{Key: id, Time: ts, Unit: time.Millisecond, Width: width}
}

// record returns rows of a JSON array.
func record(t testing.TB, id, ts arrow.DataType, rows string) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: id, Nullable: true}, {Name: "ts", Type: ts, Nullable: true}}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Times of all types fall into the same slots; rows without a key or a time are told apart.
func TestTimes(t *testing.T) {
	ints := arrow.PrimitiveTypes.Int64
	for _, c := range []struct {
		typ   arrow.DataType
		unit  time.Duration
		times string // of two rows: an hour after 1970, an hour before
	}{
		{ints, time.Millisecond, "3600000 -3600000"},
		{arrow.PrimitiveTypes.Int32, time.Second, "3600 -3600"},
		{arrow.FixedWidthTypes.Timestamp_us, 0, `"1970-01-01T01:00:00Z" "1969-12-31T23:00:00Z"`},
		{&arrow.TimestampType{Unit: arrow.Second}, 0, `"1970-01-01 01:00:00" "1969-12-31 23:00:00"`},
		{arrow.BinaryTypes.String, 0, `"1970-01-01T02:00:00+01:00" "1969-12-31 23:00:00"`},
		{arrow.BinaryTypes.String, time.Second, `"3600" "-3600"`},
	} {
		of := columns(t, time.Hour)
		of.Unit = c.unit
		first, second, _ := strings.Cut(c.times, `" "`)
		if second == "" {
			first, second, _ = strings.Cut(c.times, " ")
		} else {
			first, second = first+`"`, `"`+second
		}
		rec := record(t, arrow.BinaryTypes.String, c.typ, fmt.Sprintf(`[{"id":"a","ts":%s},{"ts":%s},{"id":"b"},{"id":"c","ts":%s}]`, first, first, second))
		enc, err := of.NewEncoder("x", rec.Schema())
		if err != nil {
			t.Fatal(err)
		}
		var rows Rows
		if err := enc.Encode(rec, &rows); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rows.At, []uint32{0, 3}) || !slices.Equal(rows.Slots, []int64{1, -1}) || rows.NoKey != 1 || !slices.Equal(rows.NoTime, []int{2}) {
			t.Errorf("%s: rows %v in slots %v, %d without a key, without a time %v", c.typ, rows.At, rows.Slots, rows.NoKey, rows.NoTime)
		}
	}
	rec := record(t, ints, arrow.FixedWidthTypes.Date32, `[{"id":7,"ts":"1970-01-02"}]`)
	of := columns(t, time.Hour)
	if _, err := of.NewEncoder("x", rec.Schema()); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("dates with a unit: %v", err)
	}
	of.Unit = 0
	enc, err := of.NewEncoder("x", rec.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var rows Rows
	if err := enc.Encode(rec, &rows); err != nil || rows.Slots[0] != 24 {
		t.Errorf("a date: %v, %v", rows.Slots, err)
	}
	if _, err := of.NewEncoder("x", record(t, ints, ints, `[]`).Schema()); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("integers without a unit: %v", err)
	}
	if _, err := of.NewEncoder("x", record(t, ints, arrow.FixedWidthTypes.Boolean, `[]`).Schema()); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("booleans: %v", err)
	}
	rec = record(t, ints, arrow.BinaryTypes.String, `[{"id":7,"ts":"yesterday"}]`)
	if enc, err = of.NewEncoder("x", rec.Schema()); err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(rec, &rows); !errors.Is(err, keys.ErrMisfit) || strings.Contains(err.Error(), "yesterday") {
		t.Errorf("text that is no time: %v", err)
	}
	of.Unit, of.Width = time.Second, time.Microsecond
	rec = record(t, ints, ints, `[{"id":7,"ts":4000000000000},{"id":7,"ts":9000000000000}]`)
	if enc, err = of.NewEncoder("x", rec.Schema()); err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(rec, &rows); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "too far from 1970") {
		t.Errorf("no slot has the time: %v", err)
	}
}

// Times centuries apart are in slots of their own, in all types that have them.
func TestFarTimes(t *testing.T) {
	for _, c := range []struct {
		typ   arrow.DataType
		unit  time.Duration
		times string
	}{
		{arrow.BinaryTypes.String, 0, `"0001-01-01" "1500-01-01" "1600-01-01T00:00:00.5" "2024-01-01" "3000-01-01" "4000-01-01" "9999-12-31T23:59:59.999999999Z"`},
		{&arrow.TimestampType{Unit: arrow.Second}, 0, `"0001-01-01" "1500-01-01" "2024-01-01" "3000-01-01" "9999-12-31"`},
		{arrow.FixedWidthTypes.Timestamp_us, 0, `"0001-01-01" "1500-01-01" "2024-01-01" "3000-01-01" "9999-12-31"`},
		{arrow.FixedWidthTypes.Date32, 0, `"0001-01-01" "1500-01-01" "2024-01-01" "3000-01-01" "9999-12-31"`},
		{arrow.PrimitiveTypes.Int64, time.Second, `-1714521600000 -1714521500000 1714521600000 1714608000000 1746057600000 1714521600000000`},
		{arrow.PrimitiveTypes.Uint64, time.Second, `1714521600000 1714521600000000 10000000000000000000 10000000000000010000`},
		{arrow.BinaryTypes.String, time.Millisecond, `"-62135596800000" "32503680000000" "64092211200000"`},
	} {
		var rows []string
		for i, at := range strings.Fields(c.times) {
			rows = append(rows, fmt.Sprintf(`{"id":"same","ts":%s}`, at), fmt.Sprintf(`{"id":"%d","ts":%s}`, i, at))
		}
		rec := record(t, arrow.BinaryTypes.String, c.typ, "["+strings.Join(rows, ",")+"]")
		of := columns(t, time.Hour)
		of.Unit = c.unit
		enc, err := of.NewEncoder("x", rec.Schema())
		if err != nil {
			t.Fatal(err)
		}
		var got Rows
		if err := enc.Encode(rec, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Slots) != len(rows) || !slices.IsSorted(got.Slots) || len(slices.Compact(got.Slots)) != len(rows)/2 {
			t.Errorf("%s in %s: slots %v", c.typ, c.unit, got.Slots)
		}
	}
}

// A unit of integer times that cannot be meant is named, with the one that fits.
func TestDoubt(t *testing.T) {
	const now = 1_714_521_600
	for _, c := range []struct {
		of         string
		times      []int64 // by turns
		unit       time.Duration
		what, fits string
	}{
		{of: "right", times: []int64{now, now + 1e6}, unit: time.Second},
		{of: "right, in one slot", times: []int64{now}, unit: time.Second},
		{of: "ms as s", times: []int64{now * 1e3, now*1e3 + 1e9}, unit: time.Second, what: "outside", fits: "ms"},
		{of: "ns as us", times: []int64{now * 1e9}, unit: time.Microsecond, what: "outside", fits: "ns"},
		{of: "s as ns", times: []int64{now, now + 1000}, unit: time.Nanosecond, what: "one part", fits: "s"},
		{of: "s as ms, in several slots", times: []int64{now, now + 1e8}, unit: time.Millisecond},
		{of: "a few wrong", times: []int64{now, now + 1, now * 1e3}, unit: time.Second},
		{of: "before 1970", times: []int64{-now, -2 * now}, unit: time.Second, what: "outside"},
		{of: "beyond 2100", times: []int64{5 * now * 1e9}, unit: time.Nanosecond, what: "outside"},
	} {
		times := make([]string, 30)
		for i := range times {
			times[i] = fmt.Sprintf(`{"id":"%d","ts":%d}`, i, c.times[i%len(c.times)])
		}
		for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String} {
			text := "[" + strings.Join(times, ",") + "]"
			if typ == arrow.BinaryTypes.String {
				text = regexp.MustCompile(`"ts":(-?[0-9]+)`).ReplaceAllString(text, `"ts":"$1"`)
			}
			rec := record(t, arrow.BinaryTypes.String, typ, text)
			of := columns(t, time.Hour)
			of.Unit, of.Exact = c.unit, true
			enc, err := of.NewEncoder("x", rec.Schema())
			if err != nil {
				t.Fatal(err)
			}
			var rows Rows
			if err := enc.Encode(rec, &rows); err != nil {
				t.Fatal(err)
			}
			e := NewExact(ring.Params{Slots: 2, Width: time.Hour}, Keep, 0, "")
			if _, err := e.Drop(&rows, nil); err != nil {
				t.Fatal(err)
			}
			if what, fits := e.Doubt(c.unit); (what == "") != (c.what == "") || !strings.Contains(what, c.what) || fits != c.fits {
				t.Errorf("%s, %s: %q, %q", c.of, typ, what, fits)
			}
		}
	}
}

// stream returns batches of random rows with the verdicts of a map, under a rule for late rows.
func stream(t testing.TB, random *rand.Rand, slots int, late Late) (batches []arrow.Record, drop [][]uint32) {
	var b strings.Builder
	passed, newest, begun := map[int]int64{}, int64(0), false
	now := int64(-3)
	for range 20 {
		b.Reset()
		var gone []uint32
		n := random.IntN(300)
		for row := range n {
			if random.IntN(60) == 0 {
				now += random.Int64N(int64(slots))
			}
			key, slot := random.IntN(200), now-random.Int64N(int64(slots)+2)/(1+random.Int64N(3))
			switch random.IntN(30) {
			case 0:
				fmt.Fprintf(&b, `,{"ts":%d}`, slot*1000)
				continue
			case 1:
				fmt.Fprintf(&b, `,{"id":"key %d"}`, key)
				if late == Drop {
					gone = append(gone, uint32(row))
				}
				continue
			}
			fmt.Fprintf(&b, `,{"id":"key %d","ts":%d}`, key, slot*1000+random.Int64N(1000))
			if !begun || slot > newest {
				begun, newest = true, slot
			}
			if slot <= newest-int64(slots) {
				if late == Drop {
					gone = append(gone, uint32(row))
				}
				continue
			}
			if at, ok := passed[key]; ok && at > newest-int64(slots) {
				gone = append(gone, uint32(row))
				continue
			}
			passed[key] = slot
		}
		batches = append(batches, record(t, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, "["+strings.TrimPrefix(b.String(), ",")+"]"))
		drop = append(drop, gone)
	}
	return batches, drop
}

// Exact decisions are those of a map, also if nothing of the keys fits in memory; a ring's are,
// too, if it has no false positives.
func TestLikeMap(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, slots := range []int{1, 3, 24} {
		for _, late := range []Late{Keep, Drop} {
			batches, want := stream(t, random, slots, late)
			of := columns(t, time.Second)
			of.Exact = true
			enc, err := of.NewEncoder("x", batches[0].Schema())
			if err != nil {
				t.Fatal(err)
			}
			p, err := ring.Plan(ring.Window{Window: time.Duration(slots) * time.Second, Slots: slots, Expect: 500, FPR: 1e-9})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []string{"ring", "exact", "on disk"} {
				sel, drop := NewSelection(0), []int(nil)
				j := Judge{Ring: ring.New(p), Late: late, Sample: NewSample(p, 0)}
				e := NewExact(p, late, int64(strings.Count(c, "disk")), t.TempDir()) // no limit, or none that anything fits in
				var rows Rows
				for _, rec := range batches {
					if err := enc.Encode(rec, &rows); err != nil {
						t.Fatal(err)
					}
					if c == "ring" {
						drop, err = j.Drop(&rows, drop[:0])
					} else {
						drop, err = e.Drop(&rows, drop[:0])
					}
					if err != nil {
						t.Fatal(err)
					}
					sel.Drop(sel.Next(group(0), rows.Len), drop...)
				}
				counts := &e.Counts
				if c == "ring" {
					counts = &j.Counts
					if n, _, oneIn := j.Sample.Wrong(); n != 0 || oneIn != 1 || j.Expected > 1e-3 || j.Missed(1e-9) {
						t.Errorf("%d slots: wrongly dropped: %v measured by one in %d, %v expected", slots, n, oneIn, j.Expected)
					}
				} else if err := e.End(func(row int64) { sel.Drop(row, 0) }); err != nil || (e.disk.Written() > 0) != (c == "on disk") {
					t.Fatal(err, e.disk.Written())
				}
				gone := 0
				for _, d := range want {
					gone += len(d)
				}
				if int(counts.Duplicates+counts.Unjudged) != gone {
					t.Errorf("%s: %d duplicates and %d others, want %d together", c, counts.Duplicates, counts.Unjudged, gone)
				}
				first := int64(0)
				for i, rec := range batches {
					for row := range rec.NumRows() {
						if got, want := sel.Dropped(first+row), slices.Contains(want[i], uint32(row)); got != want {
							t.Fatalf("%d slots, %s, late rows %s: batch %d row %d: dropped %t, want %t", slots, c, late, i, row, got, want)
						}
					}
					first += rec.NumRows()
				}
			}
		}
	}
}

// Files are read in their order, by any number of workers.
func TestReadTogether(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for f := range 3 {
		ids := make([]int64, 10_000)
		for i := range ids {
			ids[i] = int64(f*len(ids) + i)
		}
		name := filepath.Join(dir, fmt.Sprint(f, []string{".parquet", ".arrow", ".parquet"}[f]))
		names = append(names, sourcetest.Write(t, name, 700, sourcetest.Record(t, memory.DefaultAllocator, sourcetest.Col{Name: "id", Values: ids}, sourcetest.Col{Name: "ts", Values: ids})))
	}
	files, err := source.Open(context.Background(), names, source.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close(files)
	var want []byte
	of := columns(t, time.Second)
	of.Exact = true
	for _, threads := range []int{1, 8} {
		var got []byte
		sel := NewSelection(0)
		err := Read(context.Background(), source.Split(files, dataset.Shard{}), of, threads, func(p source.Piece, rows *Rows) error {
			sel.Drop(sel.Next(p, rows.Len), rows.Len-1)
			for i, row := range rows.At {
				got = fmt.Appendln(got, row, rows.Hashes[i], rows.Slots[i], rows.Exact[i])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != 30_000 {
			t.Errorf("%d workers read something else", threads)
		}
		if rows := sel.Rows(files[2], 1, 698, 700, nil); !slices.Equal(rows, []uint32{698}) {
			t.Errorf("rows %v stay", rows)
		}
	}
	stop := errors.New("stop")
	err = Read(context.Background(), source.Split(files, dataset.Shard{}), columns(t, time.Second), 8, func(source.Piece, *Rows) error { return stop })
	if !errors.Is(err, stop) {
		t.Error(err)
	}
}

// The rows wrongly dropped are as many as expected and as the sample says, within 5 standard
// deviations, also where it has only some of the keys.
func TestWronglyDropped(t *testing.T) {
	const n = 400_000
	p, err := ring.Plan(ring.Window{Window: 8 * time.Second, Slots: 8, Expect: n, FPR: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 5} {
		s := NewSample(p, 0)
		s.k = k
		j := Judge{Ring: ring.New(p), Late: Keep, Sample: s}
		r := Rows{At: make([]uint32, 1), Hashes: make([]uint64, 1), Slots: make([]int64, 1), Len: 1}
		truth := 0
		for i := range uint64(n) {
			r.Hashes[0], r.Slots[0] = mixed(i*0x9e3779b97f4a7c15+1), int64(i*8/n)
			drop, err := j.Drop(&r, nil)
			if err != nil {
				t.Fatal(err)
			}
			truth += len(drop)
		}
		got, deviation, oneIn := s.Wrong()
		if off := math.Abs(got - float64(truth)); off > 5*deviation || k == 0 && off > 0 || oneIn != 1<<k {
			t.Errorf("one in %d: %v ± %v, want %d", oneIn, got, deviation, truth)
		}
		if off := math.Abs(j.Expected - float64(truth)); off > 5*math.Sqrt(float64(truth)) || truth < 1000 {
			t.Errorf("expected %v, dropped %d", j.Expected, truth)
		}
	}
}

// A sample stays within its size, and forgets what has left the window first.
func TestSampleShrinks(t *testing.T) {
	p := ring.Params{Slots: 2, Width: time.Second}
	const sampled = 1 << 18
	s := NewSample(p, 4*sampleBytes*sampled)
	r := &Rows{}
	v := make([]ring.Verdict, 1<<12)
	i := uint64(0)
	for slot := range int64(3) {
		for range sampled / len(v) * 3 / 4 {
			r.Hashes, r.Slots = r.Hashes[:0], r.Slots[:0]
			for range v {
				i++
				r.Hashes, r.Slots = append(r.Hashes, mixed(i)), append(r.Slots, slot)
			}
			s.add(r, v)
		}
	}
	if len(s.passed) > sampled || s.k == 0 || s.k > 2 {
		t.Errorf("%d keys, one in %d", len(s.passed), 1<<s.k)
	}
}

// Keys that exceed the budget are divided until they fit, and the memory is released. A key that
// comes often, and keys that nothing divides, need no more.
func TestDivided(t *testing.T) {
	const rows, distinct = 50_000, 20_000
	e := NewExact(ring.Params{Slots: 1}, Keep, rows/8+64<<10, t.TempDir()) // a part has more
	r := &Rows{Len: 100, Exact: make([][]byte, 100), Slots: make([]int64, 100), Hashes: make([]uint64, 100)}
	for i := range uint32(100) {
		r.At = append(r.At, i)
	}
	seen, want, got := map[string]bool{}, map[int64]bool{}, map[int64]bool{}
	random := rand.New(rand.NewPCG(1, 9))
	for at := int64(0); at < rows; at += 100 {
		for i := range r.Exact {
			key := fmt.Sprintf("%0200d", random.IntN(distinct))
			if random.IntN(4) == 0 {
				key = "often"
			}
			want[at+int64(i)] = seen[key]
			seen[key], r.Exact[i] = true, []byte(key)
		}
		if drop, err := e.Drop(r, nil); err != nil || len(drop) > 0 {
			t.Fatal(drop, err)
		}
	}
	if err := e.End(func(row int64) { got[row] = true }); err != nil {
		t.Fatal(err)
	}
	found := int64(0)
	for row, dup := range want {
		if dup {
			found++
		}
		if got[row] != dup {
			t.Fatalf("row %d is dropped: %t", row, !dup)
		}
	}
	if e.Duplicates != found || e.disk.Written() == 0 {
		t.Errorf("%d duplicates, want %d; %d bytes were written", e.Duplicates, found, e.disk.Written())
	}
	for i := range e.parts {
		if e.parts[i].last != nil {
			t.Errorf("part %d is held", i)
		}
	}
}

// The last row of each key is the one that a map has, for times of all types, far from 1970 too,
// and NULLs; in memory, on disk, and in parts that are divided.
func TestLast(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	far := func(n int64) int64 { return n * (math.MaxInt64 / 40) }
	for _, c := range []struct {
		typ  arrow.DataType
		unit time.Duration
		time func(n int64) any // ascending in -10 to 10
	}{
		{arrow.PrimitiveTypes.Int64, time.Nanosecond, func(n int64) any { return far(n * 4 / 2) }},
		{arrow.PrimitiveTypes.Int64, time.Second, func(n int64) any { return far(n) }},
		{arrow.PrimitiveTypes.Uint64, time.Microsecond, func(n int64) any { return uint64(far(n+10)) * 2 }},
		{arrow.PrimitiveTypes.Int8, time.Millisecond, func(n int64) any { return n }},
		{&arrow.TimestampType{Unit: arrow.Nanosecond}, 0, func(n int64) any { return time.Unix(0, far(n)).UTC().Format("2006-01-02 15:04:05.999999999") }},
		{&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, 0, func(n int64) any { return time.UnixMilli(n * 300).UTC().Format(time.RFC3339Nano) }},
		{arrow.FixedWidthTypes.Date32, 0, func(n int64) any { return time.Unix(n*86400, 0).UTC().Format(time.DateOnly) }},
		{arrow.BinaryTypes.String, 0, func(n int64) any {
			return time.Unix(0, n).In(time.FixedZone("", random.IntN(9)*3600)).Format(time.RFC3339Nano)
		}},
		{arrow.BinaryTypes.String, time.Second, func(n int64) any { return fmt.Sprint(n) }},
	} {
		of := columns(t, time.Second)
		of.Unit, of.Exact, of.Last = c.unit, true, true
		for _, memory := range []int64{0, 1} { // no limit, or none that anything fits in
			e := NewExact(ring.Params{Slots: 1}, Keep, memory, t.TempDir())
			e.Last = true
			last, when, dropped, got := map[int]int64{}, []int64{}, map[int64]bool{}, map[int64]bool{}
			for range 8 {
				var b strings.Builder
				for range 250 {
					id, n := random.IntN(700), random.Int64N(21)-10
					ts, err := json.Marshal(c.time(n))
					if err != nil {
						t.Fatal(err)
					}
					if random.IntN(8) == 0 {
						ts, n = []byte("null"), -11
					}
					row := int64(len(when))
					when = append(when, n)
					before, ok := last[id]
					if last[id] = row; ok && when[before] > n {
						before, last[id] = row, before
					}
					if ok {
						dropped[before] = true
					}
					fmt.Fprintf(&b, `,{"id":"%0200d","ts":%s}`, id, ts)
				}
				rec, rows := record(t, arrow.BinaryTypes.String, c.typ, "["+b.String()[1:]+"]"), Rows{}
				enc, err := of.NewEncoder("x", rec.Schema())
				if err == nil {
					err = enc.Encode(rec, &rows)
				}
				if err != nil {
					t.Fatal(err)
				}
				if drop, err := e.Drop(&rows, nil); err != nil || len(drop) > 0 {
					t.Fatal(drop, err)
				}
			}
			if err := e.End(func(row int64) { got[row] = true }); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, dropped) || e.Duplicates != int64(len(dropped)) || (e.disk.Written() > 0) != (memory > 0) {
				t.Errorf("%s in %s, memory %d: %d rows are dropped, %d counted; want %d", c.typ, c.unit, memory, len(got), e.Duplicates, len(dropped))
			}
		}
	}
}

// A time that seconds cannot count is an error, and never a wrong order.
func TestLastTooFar(t *testing.T) {
	of := columns(t, time.Second)
	of.Unit, of.Exact, of.Last = time.Second, true, true
	rec := record(t, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Uint64, `[{"id":"a","ts":18446744073709551615},{"id":"a","ts":5}]`)
	enc, err := of.NewEncoder("x", rec.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := enc.Encode(rec, new(Rows)); !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "TimeUnit ns") {
		t.Errorf("%v", err)
	}
}

// With a NULL time between duplicates, rows to drop stay in their order.
func TestNoTimeBetween(t *testing.T) {
	rec := record(t, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int64, `[{"id":7,"ts":1},{"id":7,"ts":1},{"id":8},{"id":7,"ts":1},{"id":9},{"id":7,"ts":2}]`)
	of := columns(t, time.Second)
	enc, err := of.NewEncoder("x", rec.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var rows Rows
	if err := enc.Encode(rec, &rows); err != nil {
		t.Fatal(err)
	}
	j := Judge{Ring: ring.New(ring.Params{Slots: 1, Width: time.Second, Blocks: 8, Expect: 9, FPR: 0.1}), Late: Drop}
	if drop, err := j.Drop(&rows, nil); err != nil || !slices.Equal(drop, []int{1, 2, 3, 4, 5}) {
		t.Errorf("%v, %v", drop, err)
	}
}

// A rate is missed if the ring was too full, or if the sample has found clearly too many.
func TestMissed(t *testing.T) {
	for _, c := range []struct {
		expected, found, variance float64
		want                      bool
	}{{2.9, 0, 0, false}, {3.1, 0, 0, true}, {2, 5, 0, false}, {2, 20, 0, true}, {2, 20, 100, false}, {2, 100, 640, true}} {
		j := Judge{Expected: c.expected, Sample: &Sample{estimate: c.found, variance: c.variance}}
		j.RowsIn, j.Duplicates = 3000, 1000
		if got := j.Missed(0.001); got != c.want {
			t.Errorf("%+v", c)
		}
	}
	if j := (Judge{Expected: 10, Counts: Counts{RowsIn: 1000}}); !j.Missed(0.001) || j.Missed(0.01) {
		t.Error("without a sample")
	}
}

// A row that cannot be judged is an error that says which, and no key.
func TestRefuse(t *testing.T) {
	p := ring.Params{Slots: 1, Width: time.Second, Blocks: 1, Expect: 1, FPR: 0.1}
	j := Judge{Ring: ring.New(p), Late: Refuse}
	_, err := j.Drop(&Rows{Len: 3, At: []uint32{0, 2}, Hashes: []uint64{1, 2}, Slots: []int64{5, 4}}, nil)
	if err == nil || !strings.Contains(err.Error(), "row 3 of the input") {
		t.Error(err)
	}
}

// group returns a row group for tests, of no file.
func group(n int) source.Piece { return source.Piece{Lo: n, Hi: n + 1} }

// A state is read as it was committed; other options, other keys and a rival are refused.
func TestStateFile(t *testing.T) {
	ctx := context.Background()
	name := filepath.Join(t.TempDir(), "s")
	load := func() (*State, *ring.Ring) {
		s, r, err := LoadState(ctx, storage.Local(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s, r
	}
	s, r := load()
	if r != nil || s.Digest() != "" {
		t.Fatal("a state from nowhere")
	}
	s.Options, s.Classes = "key id", []string{"bytes"}
	if err := s.Read("in", bytes.NewReader([]byte("a\nb\n")), 2, 1); err != nil {
		t.Fatal(err)
	}
	r = ring.New(ring.Params{Slots: 1, Blocks: 1, Expect: 1, FPR: 0.1})
	if err := s.Commit(ctx, r); err != nil {
		t.Fatal(err)
	}
	again, _ := load()
	if again.Digest() != s.Digest() || again.Inputs[0] != s.Inputs[0] || again.Agree("key id") != nil {
		t.Errorf("%+v, want %+v", again, s)
	}
	if err := again.Agree("key no"); !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), "want") {
		t.Error(err)
	}
	d := again.Find("in")
	for text, ok := range map[string]bool{"a\nb\n": true, "a\n": true, "a\nc": true, "b\nb\n": false, "a": false, "": false} {
		if err := d.Check("in", strings.NewReader(text), int64(len(text))); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	long := []byte(strings.Repeat("0123456\n", 3*endBytes/8))
	if err := again.Read("long", bytes.NewReader(long), int64(len(long)), 9); err != nil {
		t.Fatal(err)
	}
	for at, ok := range map[int]bool{0: false, endBytes - 2: false, len(long) / 2: true, len(long) - 2: false} { // only the ends are compared
		other := slices.Clone(long)
		other[at] = 'x'
		if err := again.Find("long").Check("long", bytes.NewReader(other), int64(len(other))); (err == nil) != ok {
			t.Errorf("changed at %d: %v", at, err)
		}
	}
	cut := Done{Name: "in"}
	if err := again.Read("cut", strings.NewReader("ab"), 1, 1); err != nil {
		t.Fatal(err)
	}
	if cut = *again.Find("cut"); cut.Check("cut", strings.NewReader("ab"), 2) == nil || cut.Check("cut", strings.NewReader("a\n"), 2) != nil {
		t.Error("a line that was not complete")
	}
	if err := again.Read("cr", strings.NewReader("a\rb\r"), 2, 1); err != nil {
		t.Fatal(err)
	}
	if err := again.Find("cr").Check("cr", strings.NewReader("a\rb\r"), 4); err != nil {
		t.Error(err)
	}
	if err := again.Commit(ctx, r); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, r); !errors.Is(err, storage.ErrChanged) {
		t.Error(err)
	}
	newer := renewed{storage.Local(), func() {
		again.Length = 7
		if err := again.Commit(ctx, r); err != nil {
			t.Error(err)
		}
	}}
	stale, r, err := LoadState(ctx, newer, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	stale.store = storage.Local()
	if err := stale.Commit(ctx, r); !errors.Is(err, storage.ErrChanged) {
		t.Error("a state that was replaced while it was read:", err)
	}
	late := &State{store: hidden{storage.Local()}, name: name} // a run that saw no state when it began to commit
	if err := late.Commit(ctx, r); !errors.Is(err, storage.ErrChanged) {
		t.Error(err)
	}
}

// A second run cannot write to an output, and what was never begun leaves nothing.
func TestAppended(t *testing.T) {
	ctx := context.Background()
	out := filepath.Join(t.TempDir(), "out")
	a, err := OpenAppended(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAppended(out); err == nil {
		t.Error("opened twice")
	}
	if err := errors.Join(a.named(), os.Rename(out, out+".moved")); err != nil {
		t.Error(err)
	}
	if err := a.named(); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a removed file:", err)
	}
	if err := os.Rename(out+".moved", out); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s, _, err := LoadState(ctx, storage.Local(), out+".state", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := ring.New(ring.Params{Slots: 1, Blocks: 1, Expect: 1, FPR: 0.1})
	write := func(text string, commit bool) {
		t.Helper()
		if a, err = OpenAppended(out); err == nil {
			err = a.Begin(ctx, s, r, false)
		}
		if err == nil {
			_, err = a.Write([]byte(text))
		}
		if err == nil && commit {
			err = a.Commit(ctx, r)
		}
		if err := errors.Join(err, a.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("lost", false)
	write("kept ", true)
	write("lost, too", false)
	write("also kept", true)
	if b, err := os.ReadFile(out); err != nil || string(b) != "kept also kept" {
		t.Errorf("%q, %v", b, err)
	}
	other := out + ".other"
	if err := os.WriteFile(other, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err = OpenAppended(other); err != nil {
		t.Fatal(err)
	}
	if err := a.Begin(ctx, &State{store: full{storage.Local()}, name: out + ".none"}, r, true); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("ours")); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	a.Rewind()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "theirs" {
		t.Errorf("an output that no state knows has %q, %v", b, err)
	}
	for _, text := range []string{"kept", "kept also keqt"} {
		if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err = OpenAppended(out); err != nil {
			t.Fatal(err)
		}
		if err := a.Begin(ctx, s, r, true); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%q: %v", text, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Lengths are checked, whatever the checksums.
func TestNegative(t *testing.T) {
	ctx := context.Background()
	for _, s := range []*State{{Length: -1}, {Inputs: []Done{{Offset: -1}}}} {
		s.store, s.name, s.Options = storage.Local(), filepath.Join(t.TempDir(), "s"), "key id"
		if err := s.Commit(ctx, ring.New(ring.Params{Slots: 1, Blocks: 1, Expect: 1, FPR: 0.1})); err != nil {
			t.Fatal(err)
		}
		if _, _, err := LoadState(ctx, s.store, s.name, 0); !errors.Is(err, fault.ErrCorrupt) {
			t.Error(err)
		}
	}
}

// renewed calls a function whenever an object was opened.
type renewed struct {
	storage.Storage
	opened func()
}

func (s renewed) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	in, err := s.Storage.Open(ctx, o)
	s.opened()
	return in, err
}

// full is a storage that refuses Create.
type full struct{ storage.Storage }

func (full) Create(context.Context, string, storage.CreateOptions) (storage.Writer, error) {
	return nil, fs.ErrPermission
}

// hidden is a storage that refuses Open.
type hidden struct{ storage.Storage }

func (hidden) Open(context.Context, storage.Object) (storage.Reader, error) {
	return nil, fs.ErrNotExist
}

// Long keys do not stay in memory, one a part.
func TestLongKeys(t *testing.T) {
	e := NewExact(ring.Params{Slots: 1}, Keep, 1<<20, t.TempDir())
	for i := range byte(200) {
		key := bytes.Repeat([]byte{i}, 64<<10)
		if _, err := e.Drop(&Rows{Len: 1, At: []uint32{0}, Slots: []int64{0}, Exact: [][]byte{key}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for i := range e.parts {
		held += cap(e.parts[i].last)
	}
	if held > 1<<20 {
		t.Errorf("%d bytes are held", held)
	}
	if err := e.End(func(row int64) { t.Errorf("row %d is dropped", row) }); err != nil {
		t.Fatal(err)
	}
}
