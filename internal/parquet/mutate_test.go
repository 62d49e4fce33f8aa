package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/parquet/enc"
)

// Limits of time and memory for any file, and of what is compared.
const (
	hostileTime   = 10 * time.Second
	hostileMemory = 1 << 30

	watchedRows    = 1 << 14 // rows of a chunk that are compared one by one
	watchedEntries = 1 << 22 // entries of a chunk that are inspected
)

// chunkSums summarises the contents of a chunk: a sum for each of its first rows,
// and one of all its entries.
type chunkSums struct {
	rows []uint64
	all  uint64
}

// readChunk reads a chunk, or only the given rows if there are any.
func readChunk(ctx context.Context, f *File, g, l int, rows []uint32) (*chunkSums, error) {
	c := f.Chunk(g, l)
	defer c.Close()
	if rows != nil {
		c.Select(rows)
	}
	s, entries := new(chunkSums), 0
	for {
		p, err := c.Next(ctx)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		if err := checkPage(p, c); err != nil {
			return nil, err
		}
		if entries += p.Values; entries <= watchedEntries {
			s.add(p, c)
		}
	}
}

// checkPage checks the guarantees of a page.
func checkPage(p *Page, c *Chunk) error {
	rows, full := p.Values, p.Values
	if p.Rep != nil {
		rows = enc.CountLevels(p.Rep, 0)
	}
	if p.Def != nil {
		full = enc.CountLevels(p.Def, uint8(c.leaf.MaxDef))
	}
	size := len(p.Plain)
	switch w := c.leaf.Width(); {
	case p.Coded:
		size = len(p.Indices)
		if size > 0 && int(slices.Max(p.Indices)) >= c.dict.Len {
			return fmt.Errorf("page %d: an index beyond the dictionary", p.Number)
		}
		full -= size
	case c.leaf.Type == format.ByteArray:
		if _, tail, err := enc.CheckPlain(c.leaf.Type, c.leaf.Width(), p.Plain, p.NonNull); err != nil || tail > 0 {
			return fmt.Errorf("page %d: %d bytes after its values, %w", p.Number, tail, err)
		}
		full -= p.NonNull
	case c.leaf.Type == format.Boolean:
		if full -= p.NonNull; size != (p.NonNull+7)/8 {
			full = -1
		}
	default:
		full -= size / w
	}
	if (p.Rep != nil) != (c.leaf.MaxRep > 0) || (p.Def != nil) != (c.leaf.MaxDef > 0) ||
		p.Rep != nil && len(p.Rep) != p.Values || p.Def != nil && len(p.Def) != p.Values || rows != p.Rows || full != 0 {
		return fmt.Errorf("page %d: %d entries, %d rows, %d values, %d bytes of them do not agree", p.Number, p.Values, p.Rows, p.NonNull, size)
	}
	return nil
}

// add adds a page's entries.
func (s *chunkSums) add(p *Page, c *Chunk) {
	mix := func(x uint64) {
		for _, sum := range []*uint64{&s.all, &s.rows[len(s.rows)-1]} {
			*sum = (*sum ^ x) * 0x9e3779b97f4a7c15
			*sum ^= *sum >> 29
		}
	}
	next := 0 // index of the next value
	for i := range p.Values {
		level, there := uint64(0), true
		if p.Rep != nil {
			level = uint64(p.Rep[i])
		}
		if (level == 0 || len(s.rows) == 0) && len(s.rows) < watchedRows {
			s.rows = append(s.rows, 1)
		}
		if p.Def != nil {
			level = level<<8 | uint64(p.Def[i])
			there = int(p.Def[i]) == c.leaf.MaxDef
		}
		mix(level)
		if there {
			for _, b := range pageValue(p, c, next) {
				mix(uint64(b))
			}
			next++
		}
	}
}

func pageValue(p *Page, c *Chunk, i int) []byte {
	w, plain := c.leaf.Width(), p.Plain
	switch {
	case c.leaf.Type == format.ByteArray:
		return p.Bytes(i, c.dict)
	case c.leaf.Type == format.Boolean:
		return []byte{plain[i/8] >> (i % 8) & 1}
	case p.Coded:
		i, plain = int(p.Indices[i]), c.dict.Plain
	}
	return plain[i*w : (i+1)*w]
}

// reading is the result of reading a file.
type reading struct {
	open   error
	chunks []*chunkSums // nil for chunks that could not be read
	errs   []error
	bad    error // a guarantee that was broken
}

// read opens a file and reads all of it, and also some rows of each chunk.
func read(ctx context.Context, rng *rand.Rand, name string, b []byte) (r reading) {
	f, err := Open(nil, bytes.NewReader(b), int64(len(b)), name)
	if err != nil {
		r.open = err
		r.bad = checkPlace(err, fault.At{File: name})
		return r
	}
	for g := range f.RowGroups {
		for l := range f.Leaves {
			at := f.at(g, l)
			whole, err := readChunk(ctx, f, g, l, nil)
			r.chunks = append(r.chunks, whole)
			r.errs = append(r.errs, err)
			if bad := checkPlace(err, at); bad != nil {
				r.bad = bad
			}
			rows := pickRows(rng, min(f.RowGroups[g].Rows, watchedRows))
			some, err := readChunk(ctx, f, g, l, rows)
			if bad := checkPlace(err, at); bad != nil {
				r.bad = bad
			}
			if whole != nil && err != nil {
				r.bad = fmt.Errorf("%v: a whole walk went well, one for %d rows not: %w", at, len(rows), err)
			}
			if whole != nil && some != nil && len(whole.rows) < watchedRows {
				if bad := compareRows(whole, some, rows); bad != nil {
					r.bad = fmt.Errorf("%v: %w", at, bad)
				}
			}
			x, ok, err := f.OffsetIndex(g, l)
			if bad := checkPlace(err, at); bad != nil {
				r.bad = bad
			}
			if err == nil && ok {
				_, _, err := f.ColumnIndex(g, l, x)
				if bad := checkPlace(err, at); bad != nil {
					r.bad = bad
				}
				if err != nil {
					r.errs = append(r.errs, err)
				}
			}
			if _, _, err := f.BloomFilter(g, l); checkPlace(err, at) != nil {
				r.bad = err
			}
		}
	}
	return r
}

func pickRows(rng *rand.Rand, n int64) []uint32 {
	rows := pick(rng, int(n), 1+rng.IntN(30), 1+rng.IntN(10))
	if rows == nil {
		return []uint32{}
	}
	return rows
}

func compareRows(whole, some *chunkSums, rows []uint32) error {
	if len(some.rows) != len(rows) {
		return fmt.Errorf("%d rows for %d selected", len(some.rows), len(rows))
	}
	for i, row := range rows {
		if int(row) >= len(whole.rows) || some.rows[i] != whole.rows[row] {
			return fmt.Errorf("row %d is another one when it is selected", row)
		}
	}
	return nil
}

// checkPlace checks that an error is of a known kind and has the place as far as it
// is known.
func checkPlace(err error, want fault.At) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, panics.ErrRecovered) {
		return fmt.Errorf("a recovered panic: %w", err)
	}
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.ErrCorrupt && e.Kind != fault.ErrUnsupported {
		return fmt.Errorf("neither corrupt nor unsupported: %w", err)
	}
	got := e.At
	got.Page = 0
	if want.RowGroup == 0 { // the footer's errors may have one
		got.RowGroup, got.Column = 0, ""
	}
	if got != want {
		return fmt.Errorf("at %v, not at %v: %w", e.At, want, err)
	}
	return nil
}

// hostile counts the outcomes of mutations.
type hostile struct {
	read, refused, partly int
	kinds                 map[string]int
	whats                 map[string]int // error texts without numbers
}

func (h *hostile) count(m *mutation, r *reading) {
	h.kinds[m.kind]++
	failed := 0
	for _, err := range append(r.errs, r.open) {
		var e *fault.Error
		if errors.As(err, &e) {
			failed++
			h.whats[strings.Map(func(c rune) rune {
				if c >= '0' && c <= '9' {
					return -1
				}
				return c
			}, e.What.String())]++
		}
	}
	switch {
	case r.open != nil || failed > 0 && failed == len(r.errs):
		h.refused++
	case failed > 0:
		h.partly++
	default:
		h.read++
	}
}

// allocated returns the total memory allocated so far, and the memory in use.
func allocated() (total, inUse uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}

// bounded runs f with a time limit and returns its peak memory: its total
// allocation if that is small, else a sampled value.
func bounded(limit time.Duration, f func()) (peak uint64, ok bool) {
	before, _ := allocated()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timeout := time.After(limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			total, _ := allocated()
			return max(peak, min(total-before, 32<<20)), true
		case <-tick.C:
			_, inUse := allocated()
			peak = max(peak, inUse)
		case <-timeout:
			return peak, false
		}
	}
}

// mutations returns the number of mutations to make.
func mutations(t testing.TB) int {
	s := os.Getenv("BLOOMJOIN_MUTATIONS")
	if s == "" {
		return cases.Count(600, 2000, 3000)
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHostile reads changed files. There is no panic, not even a recovered one, no
// hang, and no more memory than hostileMemory; errors are of a known kind and have
// the place; selected rows equal those of the whole file; and if checksums cover a
// change, whatever can be read equals the original. BLOOMJOIN_MUTATIONS is the
// number of mutations (2000 if it is not set); each depends on its number alone.
func TestHostile(t *testing.T) {
	count := mutations(t)
	models := hostileModels(t)
	u, err := newMutator(models)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
	defer cancel()
	originals := map[*apart]reading{}
	for i, m := range models {
		r := read(ctx, rand.New(rand.NewPCG(17, 0)), m.name, u.whole[i])
		if r.open != nil || r.bad != nil || slices.IndexFunc(r.errs, func(err error) bool { return err != nil }) >= 0 {
			t.Fatalf("%s, as it was: %v, %v, %v", m.name, r.open, r.bad, r.errs)
		}
		originals[m] = r
	}
	h := hostile{kinds: map[string]int{}, whats: map[string]int{}}
	most, guarded := uint64(0), 0
	for i := range count {
		rng := rand.New(rand.NewPCG(17, uint64(i)+1))
		m, err := u.mutate(rng)
		if err != nil {
			continue // the change cannot be encoded
		}
		var r reading
		peak, ok := bounded(hostileTime, func() { r = read(ctx, rng, m.from.name, m.b) })
		most = max(most, peak)
		switch {
		case !ok:
			t.Fatalf("mutation %d, %s: %s: still reading after %v", i, m.from.name, m.kind, hostileTime)
		case peak > hostileMemory:
			t.Fatalf("mutation %d, %s: %s: %d MiB of memory", i, m.from.name, m.kind, peak>>20)
		case r.bad != nil:
			t.Fatalf("mutation %d, %s: %s: %v", i, m.from.name, m.kind, r.bad)
		}
		if m.guarded {
			guarded++
			for _, err := range r.errs {
				var e *fault.Error
				if errors.As(err, &e) && e.At.Page != m.page {
					t.Fatalf("mutation %d, %s: %s: page %d was changed: %v", i, m.from.name, m.kind, m.page, err)
				}
			}
			for k, sums := range r.chunks {
				if sums != nil && sums.all != originals[m.from].chunks[k].all {
					t.Fatalf("mutation %d, %s: %s: chunk %d has other values than it had", i, m.from.name, m.kind, k)
				}
			}
		}
		h.count(m, &r)
	}
	t.Logf("%d files: %d read, %d in part, %d refused with %d texts; %d under checksums; at most %d MiB",
		count, h.read, h.partly, h.refused, len(h.whats), guarded, most>>20)
	for kind, n := range h.kinds {
		t.Logf("%7d %s", n, kind)
	}
	if count >= 3000 && (h.read < count/10 || h.refused < count/10 || len(h.whats) < 50 || len(h.kinds) < 20 || guarded < count/100) {
		t.Error("the mutations do not get far")
	}
}

// FuzzRead reads any bytes as a file, with the checks of TestHostile.
func FuzzRead(f *testing.F) {
	u, err := newMutator(hostileModels(f))
	if err != nil {
		f.Fatal(err)
	}
	for i, b := range u.whole {
		if len(b) <= maxSeed {
			f.Add(b, uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		if r := read(t.Context(), rand.New(rand.NewPCG(seed, 2)), "x", b); r.bad != nil {
			t.Fatal(r.bad)
		}
	})
}

// hostileModels returns the files to change: those of testdata, more from the
// corpora if present, and ones written here; compressed and not.
func hostileModels(t testing.TB) (models []*apart) {
	files := map[string][]byte{}
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d files in testdata, %v", len(paths), err)
	}
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" {
		for _, name := range []string{"delta_encoding_optional_column", "delta_length_byte_array", "delta_byte_array", "byte_stream_split.zstd",
			"fixed_length_byte_array", "list_columns", "nonnullable.impala", "int32_with_null_pages", "datapage_v1-uncompressed-checksum",
			"plain-dict-uncompressed-checksum", "repeated_no_annotation", "hadoop_lz4_compressed", "page_v2_empty_compressed"} {
			paths = append(paths, filepath.Join(shared, "corpora/parquet-testing/data", name+".parquet"))
		}
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = b
	}
	for name, b := range writtenFiles(t) {
		files[name] = b
	}
	names := []string{}
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m, err := takeApart(name, files[name])
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
		if plain, err := m.inflated(); err == nil {
			models = append(models, plain)
		}
	}
	return models
}
