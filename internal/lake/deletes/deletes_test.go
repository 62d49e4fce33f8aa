package deletes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/internal/lake/deletes"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/internal/lake/roaring"
	pg "github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

type position struct {
	Path string `parquet:"file_path,dict"`
	Pos  int64  `parquet:"pos"`
}

// put stores a list of positions and returns what refers to it.
func put(t *testing.T, s *teststore.Memory, name string, list ...position) lake.DeleteFile {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, list, parquet.MaxRowsPerRowGroup(int64(7+len(list)/10))); err != nil {
		t.Fatal(err)
	}
	s.Put(name, b.Bytes())
	return lake.DeleteFile{Place: name, Size: int64(b.Len()), Rows: int64(len(list))}
}

// values returns the values of a bitmap.
func values(m *roaring.Bitmap) (all []int64) {
	at := int64(0)
	for _, gap := range append(m.Without(0, m.End()), [2]int64{m.End(), 0}) {
		for ; at < gap[0]; at++ {
			all = append(all, at)
		}
		at = gap[1]
	}
	return all
}

// counting counts what is opened.
type counting struct {
	storage.Source
	opened atomic.Int64
}

func (c *counting) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	c.opened.Add(1)
	return c.Source.Open(ctx, o)
}

// Lists are read once for all files, whoever asks first; their rows need not be in order, or there once.
func TestLists(t *testing.T) {
	s := teststore.NewMemory()
	var first, second []position
	for i := range int64(20) {
		first = append(first, position{"a", 40 - i}, position{"b", i << 32})
		second = append(second, position{"a", 40 - i}, position{"c", 5})
	}
	in := []lake.DeleteFile{put(t, s, "1", first...), put(t, s, "2", second...), put(t, s, "3", position{"a", 0})}
	c := &counting{Source: s}
	r := new(deletes.Reader)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			of := []string{"a", "b", "c", "d"}[i%4]
			m, err := r.Rows(t.Context(), c, pg.NewPageBudget(1<<30), &lake.Deleted{Of: of, In: in})
			if err != nil {
				t.Error(err)
				return
			}
			want := map[string][]int64{"a": {0, 21, 22}, "b": {0, 1 << 32}, "c": {5}, "d": nil}[of]
			if got := values(m); int(m.Count()) != map[string]int{"a": 21, "b": 20, "c": 1}[of] || !slices.Equal(got[:min(len(got), len(want))], want) {
				t.Errorf("%s: %v", of, got)
			}
		})
	}
	if wg.Wait(); c.opened.Load() != 3 {
		t.Errorf("%d lists are opened", c.opened.Load())
	}
}

// No position is so large that the end of its container is not a number, in a list or in a vector.
func TestLimit(t *testing.T) {
	for v, want := range map[int64]error{-1: fault.ErrCorrupt, roaring.Limit - 1: nil, roaring.Limit: fault.ErrCorrupt, math.MaxInt64: fault.ErrCorrupt} {
		s := teststore.NewMemory()
		p := put(t, s, "p", position{"a", 1}, position{"a", v})
		inline := append([]byte("\xd1\xd3\x39\x64"), laketest.Roaring([]int64{1, max(v, 2)})...)
		for _, d := range []lake.Deleted{{Of: "a", In: []lake.DeleteFile{p}}, {Inline: inline, Count: 2}} {
			if d.Inline != nil && v < 0 {
				continue // vectors have no sign
			}
			m, err := new(deletes.Reader).Rows(t.Context(), s, pg.NewPageBudget(1<<30), &d)
			if !errors.Is(err, want) || err == nil && (m.End() != roaring.Limit || m.CountIn(0, 9) != 1) {
				t.Errorf("%d: %v", v, err)
			}
		}
	}
}

// A list that fails is read again, and takes no memory meanwhile.
func TestListAgain(t *testing.T) {
	s := teststore.NewMemory()
	var list []position
	for i := range int64(1000) {
		list = append(list, position{"a", i})
	}
	p := put(t, s, "p", list...)
	b, _ := s.Get("p")
	r, room := new(deletes.Reader), pg.NewPageBudget(1<<30)
	d := &lake.Deleted{Of: "a", In: []lake.DeleteFile{p}}
	damaged := bytes.Clone(b)
	damaged[len(b)-1] ^= 1
	s.Put("p", damaged)
	if _, err := r.Rows(t.Context(), s, room, d); !errors.Is(err, fault.ErrCorrupt) {
		t.Error(err)
	}
	s.Put("p", b)
	if m, err := r.Rows(t.Context(), s, room, d); err != nil || m.Count() != 1000 {
		t.Error(m, err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(deletes.Reader).Rows(canceled, s, room, d); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Memory is asked for before a list is read, by the number of rows that it is said to have.
func TestListMemory(t *testing.T) {
	s := teststore.NewMemory()
	p := put(t, s, "p", position{"a", 1})
	c := &counting{Source: s}
	for rows, want := range map[int64]error{1 << 30: fault.ErrMemory, 1 << 50: fault.ErrCorrupt, -1: fault.ErrCorrupt, math.MaxInt64: fault.ErrCorrupt} {
		p.Rows = rows
		if _, err := new(deletes.Reader).Rows(t.Context(), c, pg.NewPageBudget(1<<30), &lake.Deleted{Of: "a", In: []lake.DeleteFile{p}}); !errors.Is(err, want) {
			t.Errorf("%d: %v", rows, err)
		}
	}
	if c.opened.Load() != 0 {
		t.Error("the list is opened")
	}
	// Memory for reading is returned.
	var list []position
	for i := range int64(20000) {
		list = append(list, position{"a", i})
	}
	p = put(t, s, "p", list...)
	room := pg.NewPageBudget(64 << 20)
	for range 150 {
		if _, err := new(deletes.Reader).Rows(t.Context(), s, room, &lake.Deleted{Of: "a", In: []lake.DeleteFile{p}}); err != nil {
			t.Fatal(err)
		}
	}
}

// frame returns a vector as it is stored, after some bytes.
func frame(b []byte, before int) []byte {
	out := append(make([]byte, before), binary.BigEndian.AppendUint32(nil, uint32(len(b)))...)
	return binary.BigEndian.AppendUint32(append(out, b...), crc32.ChecksumIEEE(b))
}

// Vectors have a frame, whose lengths are checked before anything is read.
func TestVector(t *testing.T) {
	b := append([]byte("\xd1\xd3\x39\x64"), laketest.Roaring([]int64{1, 5, 1 << 40})...)
	n := int64(len(b))
	s := teststore.NewMemory()
	s.Put("v", append(frame(b, 4), 9, 9))
	s.Put("bare", frame(b, 0))
	s.Put("other", frame(append([]byte("magi"), b[4:]...), 4))
	s.Put("tiny", []byte("abc"))
	s.Put("bad", frame(b[:20], 4))
	for _, c := range []struct {
		d    lake.Deleted
		want string
	}{
		{lake.Deleted{Place: "v", Offset: 4, Size: n, Count: 3}, "[1 5 1099511627776]"},
		{lake.Deleted{Inline: b, Count: 3}, "[1 5 1099511627776]"},
		{lake.Deleted{Place: "v", Offset: 4, Size: n, Count: 2}, "v: corrupt: rows of a deletion vector: want 2, got 3"},
		{lake.Deleted{Place: "v", Offset: 5, Size: n, Count: 3}, "bytes of a deletion vector: want "},
		{lake.Deleted{Place: "v", Offset: 0, Size: n, Count: 3}, "bytes of a deletion vector: want "},
		{lake.Deleted{Place: "bare", Offset: 0, Size: n, Count: 3}, "[1 5 1099511627776]"}, // as old writers have it
		{lake.Deleted{Place: "bare", Offset: 1, Size: n, Count: 3}, "a deletion vector of "},
		{lake.Deleted{Place: "v", Offset: -1, Size: n, Count: 3}, "a deletion vector of "},
		{lake.Deleted{Place: "v", Offset: 4, Size: n + 3, Count: 3}, "a deletion vector of "},
		{lake.Deleted{Place: "v", Offset: 4, Size: 3, Count: 3}, "a deletion vector of 3 bytes at 4, in a file of "},
		{lake.Deleted{Place: "v", Offset: 4, Size: -9, Count: 3}, "a deletion vector of -9 bytes"},
		{lake.Deleted{Place: "v", Offset: 4, Size: math.MaxInt64, Count: 3}, "a deletion vector of 9223372036854775807 bytes"},
		{lake.Deleted{Place: "tiny", Offset: 4, Size: math.MaxInt64, Count: 3}, "a deletion vector of 9223372036854775807 bytes"},
		{lake.Deleted{Place: "v", Offset: math.MaxInt64, Size: n, Count: 3}, "a deletion vector of "},
		{lake.Deleted{Place: "v", Offset: 4, Size: n - 1, Count: 3}, "bytes of a deletion vector: want "},
		{lake.Deleted{Place: "other", Offset: 4, Size: n, Count: 3}, "other: corrupt: a deletion vector of an unknown format"},
		{lake.Deleted{Place: "bad", Offset: 4, Size: 20, Count: 3}, "bad: corrupt: a deletion vector: "},
		{lake.Deleted{Place: "none", Offset: 4, Size: 20, Count: 3}, "none: no such file"},
		{lake.Deleted{}, "a deletion vector of an unknown format"},
		{lake.Deleted{Inline: b[:3]}, "a deletion vector of an unknown format"},
	} {
		m, err := new(deletes.Reader).Rows(t.Context(), s, nil, &c.d)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(values(m))
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s, want %s", c.d, got, c.want)
		}
	}
}
