package sketches

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/countmin"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/internal/keys"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/panics"
)

// samples are small sketches of all forms, by the name of their golden file.
func samples(t testing.TB) map[string]*Sketch {
	t.Helper()
	filled := func(spec Spec, facts filters.Facts, v keys.Values) *Sketch {
		facts.NormalForm = keys.NormalForm
		s := newSketch(spec, facts)
		o, err := s.KeyOptions()
		if err != nil {
			t.Fatal(err)
		}
		k := &weighted{spec: spec}
		if spec.Weight != "" {
			k.parts, o.Classes = len(o.Classes), append(o.Classes, keys.Integer)
			v = keys.Columns(v, keys.Int64s([]int64{0, 1000, 2000, 3000}))
		}
		err = keys.NewValueEncoder(o).Encode(v, func(_ int, b *keys.Batch) error {
			k.Keys = &keyscan.Keys{Batch: b}
			s.rows += uint64(len(b.Rows))
			return s.add(k)
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	integers := []filters.KeyColumn{{Name: "user_id", Class: "integer"}}
	tiny := countmin.Params{Width: 5, Depth: 2}
	return map[string]*Sketch{
		"integers": filled(Spec{Key: "user_id", Params: tiny}, filters.Facts{Key: integers, BuildID: [32]byte{1}}, keys.Int64s([]int64{1, 2, 2, -1})),
		"ranges":   filled(Spec{Key: "user_id::int64", Weight: "bytes", Params: tiny, Ranges: true}, filters.Facts{Key: integers}, keys.Int64s([]int64{1, 2, 2, -1})),
		"partial": filled(Spec{Key: "name", Params: tiny}, filters.Facts{
			Key: []filters.KeyColumn{{Name: "name", Class: "bytes"}}, Rule: "lower,ascii-only", BuildID: [32]byte{2}, Partial: &filters.Partial{Of: 3, Held: []uint32{0, 2}},
		}, keys.Strings([]string{"Anna", "anna"})),
		"empty": filled(Spec{Key: "a,b", Params: countmin.Params{Width: 1, Depth: 1}}, filters.Facts{Key: []filters.KeyColumn{{Name: "a", Class: "bytes"}, {Name: "b", Class: "bytes"}}}, keys.Columns(keys.Strings(nil), keys.Strings(nil))),
	}
}

func decoded(b []byte) (*Sketch, error) {
	h, err := DecodeHeader(bytes.NewReader(b), int64(len(b)), "file")
	if err != nil {
		return nil, err
	}
	d := h.Digest()
	s, err := h.Load(context.Background(), 1<<24)
	if err != nil {
		return nil, err
	}
	if got, err := s.Digest(); err != nil || got != d {
		return nil, errors.New("two digests of one sketch")
	}
	return s, nil
}

var renew = flag.Bool("renew", false, "write the golden files of new samples")

// Golden files are read, and written again byte for byte. Those of earlier versions never change.
func TestGolden(t *testing.T) {
	for name, s := range samples(t) {
		path := filepath.Join("testdata", name+".bjs")
		want, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && *renew {
			want = file(t, s)
			err = errors.Join(os.MkdirAll("testdata", 0o777), os.WriteFile(path, want, 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file(t, s), want) {
			t.Errorf("%s: the sketch has another file", name)
		}
		got, err := decoded(want)
		if err != nil || !bytes.Equal(file(t, got), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each changed bit, each shorter file and each longer one is refused, with the file's name.
func TestDamage(t *testing.T) {
	for name, s := range samples(t) {
		b := file(t, s)
		check := func(what string, at int, changed []byte) {
			t.Helper()
			_, err := decoded(changed)
			var f *fault.Error
			if !errors.As(err, &f) || f.At.File != "file" || errors.Is(err, panics.ErrRecovered) {
				t.Errorf("%s: %s %d: %v", name, what, at, err)
			}
		}
		for i := range 8 * len(b) {
			changed := bytes.Clone(b)
			changed[i/8] ^= 1 << (i % 8)
			check("bit", i, changed)
		}
		for n := range b {
			check("cut to", n, b[:n])
		}
		check("longer by", 1, append(bytes.Clone(b), 0))
		check("twice", 1, append(bytes.Clone(b), b...))
	}
}

// What is wrong behind correct checksums is refused: totals, sizes, keys.
func TestHostile(t *testing.T) {
	base := file(t, samples(t)["integers"])
	at := bytes.Index(base, []byte{5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0}) // the body of the own section
	ranged := file(t, samples(t)["ranges"])
	atRanged := bytes.Index(ranged, []byte{5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0})
	if at < 0 || atRanged < 0 {
		t.Fatal("the section is somewhere else")
	}
	for what, c := range map[string]struct {
		of   []byte
		at   int
		to   uint64
		want string
	}{
		"no width":      {base, at, 0, "counters in a row: want 1 to"},
		"huge":          {base, at, 1 << 29, "payload: want one part of"},
		"above 2^30":    {base, at, 1 << 40, "counters in a row: want 1 to"},
		"no depth":      {base, at + 8, 0, "rows: want 1 to 64"},
		"flags":         {base, at + 8, 2 | 2<<32, "flags 0x2"},
		"rows":          {base, at + 16, 5, "total without weights: want 5, got 4"},
		"total":         {ranged, atRanged + 24, 6001, "sum of the counters of a row: want the total, 6001"},
		"no rows":       {ranged, atRanged + 16, 0, "total without rows"},
		"a longer text": {base, at + 32, 0x65735f7265ff07, "size: want"},
	} {
		b := bytes.Clone(c.of)
		binary.LittleEndian.PutUint64(b[c.at:], c.to)
		_, err := decoded(repaired(b))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "file: ") {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// repaired makes the checksums of a file right: of the prologue, of sections, of a raw chunk and
// over all.
func repaired(b []byte) []byte {
	le := binary.LittleEndian
	b = bytes.Clone(b)
	if len(b) < 100 {
		return b
	}
	le.PutUint64(b[16:], xxh3.Hash(b[:16]))
	sections := func(b []byte) {
		for len(b) >= 16 {
			size := int64(le.Uint32(b[4:]))
			end := 8 + size + (-size & 7)
			if end > int64(len(b))-8 {
				return
			}
			le.PutUint64(b[end:], xxh3.Hash(b[:end]))
			b = b[end+8:]
		}
	}
	head := min(24+int64(le.Uint32(b[12:])), int64(len(b)))
	sections(b[24:head])
	table := len(b) - 16 - 32 // of one chunk
	if start := (head + 4095) / 4096 * 4096; le.Uint32(b[table+8:]) > 0 && b[table+12] == 0 {
		if end := start + int64(le.Uint32(b[table+8:])); end <= int64(table) {
			le.PutUint64(b[table+16:], xxh3.Hash(b[start:end]))
		}
	}
	sections(b[table : table+32])
	le.PutUint64(b[len(b)-16:], uint64(len(b)))
	le.PutUint64(b[len(b)-8:], xxh3.Hash(b[:len(b)-8]))
	return b
}

// FuzzDecode checks that no bytes make the decoder panic, also with correct checksums, and that a
// sketch which it accepts answers, and has a file that is accepted.
func FuzzDecode(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(file(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, repaired(b)} {
			s, err := decoded(b)
			if errors.Is(err, panics.ErrRecovered) {
				t.Fatal(err)
			}
			if err != nil {
				continue
			}
			if again, err := decoded(file(t, s)); err != nil || again.Total() != s.Total() || again.spec != s.spec {
				t.Fatal(err)
			}
			if _, err := Merge([]string{"a", "b"}, []*Sketch{s, s}, false, true); err == nil && s.Facts().Partial != nil {
				t.Fatal("a partial sketch is added")
			}
			_, _, _ = Product(s, s, [2]string{"a", "b"})
			_, _ = s.Heavy(0.5)
		}
	})
}
