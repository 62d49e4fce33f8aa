package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/builds"
	"github.com/bloomjoin/bloomjoin/internal/output"
	"github.com/bloomjoin/bloomjoin/internal/panics"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// tableVictim is a table file to mutate.
type tableVictim struct {
	dir, name string
	copies    string // directory in which copies are kept; empty: none are
	keys      []key
	sums      sums
	others    map[string]map[string]bool // by extension, the columns whose values are rendered differently in a copy
}

// key is a column that can be a key.
type key struct {
	name string // as in a list of columns
	none *source.File
	many bool // a self-join of all columns would take long
}

const maxPairs = 20_000

// sums summarises the content of a file.
type sums struct {
	rows    int64
	columns map[string]uint64
	partly  bool // the file has more than what is summed
}

func tableVictims(dir, copies string, files []string, take func([]byte) (mutable, error)) ([]victim, error) {
	var out []victim
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		v := &tableVictim{dir: dir, name: name}
		from, err := take(b)
		if err == nil {
			err = v.look(context.Background())
		}
		if err != nil {
			continue
		}
		v.copies = copies
		out = append(out, victim{name, from, v.try})
	}
	fmt.Fprintf(os.Stdout, "%d of %d files can be read as they are\n", len(out), len(files))
	return out, nil
}

// door returns a file as joins and builds take it.
func door(f *source.File) *partition.File { return (*partition.File)(f) }

func open(ctx context.Context, path string) (*source.File, error) {
	files, err := source.Open(ctx, []string{path}, source.Opening{OpenOptions: source.OpenOptions{Memory: budget}, InFlight: budget / 4})
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// look reads the original file and finds columns that can be keys.
func (v *tableVictim) look(ctx context.Context) error {
	f, err := open(ctx, v.name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if v.sums, err = sumsOf(ctx, f); err != nil {
		return err
	}
	for _, c := range f.Schema().Fields() {
		name := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		p, err := builds.NewPlan([]*source.File{f}, builds.Options{Key: name})
		if err != nil {
			continue
		}
		_, rep, err := p.Build(ctx)
		if err != nil {
			continue
		}
		none := source.Records("none", arrow.NewSchema([]arrow.Field{c}, nil), func(context.Context) iter.Seq2[arrow.Record, error] {
			return func(func(arrow.Record, error) bool) {}
		}, source.RecordsOptions{})
		v.keys = append(v.keys, key{name, none, rep.Keys*rep.Keys > maxPairs*rep.Distinct})
	}
	if len(v.keys) == 0 {
		return errors.New("no column that may be a key")
	}
	v.others = map[string]map[string]bool{}
	for n := range copies {
		s, err := v.copied(ctx, n, f)
		if err != nil {
			continue
		}
		v.others[copies[n]] = map[string]bool{}
		for c, sum := range v.sums.columns {
			v.others[copies[n]][c] = s.columns[c] != sum
		}
	}
	return nil
}

const maxSummed = 1 << 20 // largest batch in bytes whose values are summed

// sizeOf returns the size of an array in bytes.
func sizeOf(d arrow.ArrayData) (n int) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += b.Len()
		}
	}
	for _, c := range d.Children() {
		n += sizeOf(c)
	}
	if dict, ok := d.(*array.Data); ok && dict.DataType().ID() == arrow.DICTIONARY {
		n += sizeOf(dict.Dictionary())
	}
	return n
}

// valueOf returns a value as text. NULLs in dictionaries are handled.
func valueOf(c arrow.Array, row int) string {
	for {
		d, ok := c.(*array.Dictionary)
		if !ok || d.IsNull(row) {
			break
		}
		c, row = d.Dictionary(), d.GetValueIndex(row)
	}
	if c.IsNull(row) {
		return "NULL"
	}
	return "=" + c.ValueStr(row)
}

func sumsOf(ctx context.Context, f *source.File) (sums, error) {
	s := sums{columns: map[string]uint64{}}
	for r, err := range roomtest.Map(ctx, source.Split([]*source.File{f}, dataset.Shard{}), 2, nil, func() (roomtest.Work, error) {
		return func(_ source.Piece, rec arrow.Record, emit func(arrow.Record) error) error {
			rec.Retain()
			return emit(rec)
		}, nil
	}) {
		if err != nil {
			return s, err
		}
		for i, c := range r.Record.Columns() {
			if sizeOf(c.Data()) > maxSummed || c.Len() > 1<<14 {
				s.partly = true
				continue
			}
			name := r.Record.ColumnName(i)
			for row := range c.Len() {
				h := fnv.New64a()
				_, _ = fmt.Fprintf(h, "%d %d %s", i, s.rows+int64(row), valueOf(c, row))
				s.columns[name] ^= h.Sum64()
			}
		}
		s.rows += r.Record.NumRows()
		r.Record.Release()
	}
	return s, nil
}

// differ returns a difference between a and b outside the columns in except.
func (a sums) differ(b sums, except map[string]bool) string {
	if a.partly || b.partly {
		return ""
	}
	if a.rows != b.rows {
		return fmt.Sprintf("%d rows, want %d", a.rows, b.rows)
	}
	for _, c := range names(b.columns) {
		if !except[c] && a.columns[c] != b.columns[c] {
			return fmt.Sprintf("column %q differs", c)
		}
	}
	return ""
}

// try reads, copies and joins the file.
func (v *tableVictim) try(ctx context.Context, n int, path string, m mutation) verdict {
	f, err := open(ctx, path)
	if err != nil {
		return verdict{refuse: err}
	}
	defer func() { _ = f.Close() }()
	var check error
	for g := range f.NumGroups() {
		if check = f.Check(ctx, g); check != nil {
			break
		}
	}
	got, read := sumsOf(ctx, f)
	ending := copies[n%len(copies)]
	var copied sums
	var copyErr error
	if v.others[ending] != nil {
		copied, copyErr = v.copied(ctx, n, f)
	} else {
		copyErr = read
	}
	if v.copies != "" && copyErr == nil {
		if err := os.WriteFile(filepath.Join(v.copies, fmt.Sprintf("%d.was%s", n, filepath.Ext(v.name))), m.bytes, 0o600); err != nil {
			return verdict{wrong: oneLine(err)}
		}
	}
	joined := v.join(ctx, n, path, f)
	for _, err := range []error{check, read, copyErr, joined} {
		if errors.Is(err, panics.ErrRecovered) {
			return verdict{wrong: "a recovered panic: " + oneLine(err)}
		}
	}
	if err := ctx.Err(); err != nil {
		return verdict{refuse: errors.Join(err, check, read, copyErr, joined)}
	}
	if wrong := agree(check, read, copyErr, joined); wrong != "" {
		return verdict{wrong: wrong}
	}
	if read == nil && copyErr == nil && v.others[ending] != nil {
		if d := copied.differ(got, v.others[ending]); d != "" {
			return verdict{wrong: "copied otherwise than read: " + d}
		}
	}
	if read == nil && m.column != "" {
		if d := got.differ(v.sums, map[string]bool{m.column: true}); d != "" {
			return verdict{wrong: "not touched: " + d}
		}
	}
	return verdict{refuse: errors.Join(check, read, copyErr, joined)}
}

// put removes a copy, or keeps it for checks with other readers.
func (v *tableVictim) put(name string, n int) error {
	if v.copies == "" {
		return os.Remove(name)
	}
	return os.Rename(name, filepath.Join(v.copies, fmt.Sprintf("%d.copy%s", n, filepath.Ext(name))))
}

var aboutClaims = regexp.MustCompile("the (offset|column) index|Bloom filter|as decoded|for readers of streams")

// agree returns which ways to read disagree about a file. Errors about limits of one
// of them do not count.
func agree(check, read, copied, joined error) string {
	limit := func(err error) bool {
		return err == nil || errors.Is(err, fault.ErrUnsupported) || errors.Is(err, fault.ErrMemory)
	}
	ok := func(err error) bool { return !errors.Is(err, fault.ErrCorrupt) }
	if check != nil && aboutClaims.MatchString(check.Error()) {
		return "" // not all ways to read use indexes, statistics and what the footer says again
	}
	switch {
	case check == nil && !limit(read) && !ok(read):
		return "checked well, but not read: " + oneLine(read)
	case check == nil && !limit(copied) && !ok(copied):
		return "checked well, but not copied: " + oneLine(copied)
	case check == nil && !limit(joined) && !ok(joined):
		return "checked well, but not joined: " + oneLine(joined)
	case check != nil && !ok(check) && copied == nil:
		return "copied, but checked as corrupt: " + oneLine(check)
	case check != nil && !ok(check) && read == nil:
		return "read, but checked as corrupt: " + oneLine(check)
	}
	return ""
}

// copies are the extensions of copies.
var copies = []string{".parquet", ".parquet", ".arrow"}

// copied copies all rows to another file and reads it. The copy is a scan that drops
// the members of an empty set; from Parquet to Parquet it copies pages.
func (v *tableVictim) copied(ctx context.Context, n int, f *source.File) (s sums, err error) {
	k := v.keys[n%len(v.keys)]
	j, err := join.New([]*partition.File{door(k.none)}, []*partition.File{door(f)}, join.Options{On: k.name, Type: join.Anti, Memory: budget / 4, TempDir: v.dir, Threads: 2})
	if err != nil {
		return s, err
	}
	name := filepath.Join(v.dir, "copied"+copies[n%len(copies)])
	if _, err := j.Write(ctx, partition.Output(v.output(name).Output)); err != nil {
		return s, err
	}
	back, err := open(ctx, name)
	if err != nil {
		return s, fmt.Errorf("OUR OWN OUTPUT %s", oneLine(err))
	}
	defer func() { err = errors.Join(err, back.Close(), v.put(name, n)) }()
	if s, err = sumsOf(ctx, back); err != nil && !errors.Is(err, fault.ErrMemory) {
		err = fmt.Errorf("OUR OWN OUTPUT %s", oneLine(err))
	}
	return s, err
}

func (v *tableVictim) output(name string) output.Destination {
	return output.Destination{Output: output.Output{Name: name, Force: true, Memory: budget / 4, TempDir: v.dir}, Result: source.ResultExact}
}

var (
	types      = []join.Type{join.Semi, join.Inner, join.Anti, join.Left, join.Right, join.Full}
	strategies = []join.Strategy{join.Auto, join.Auto, join.Lookup, join.Broadcast, join.Reverse, join.Shuffle}
)

// join joins the file with its original, on either side.
func (v *tableVictim) join(ctx context.Context, n int, path string, f *source.File) (err error) {
	other, err := open(ctx, v.name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	ids, log := other, f
	if n%4 == 3 {
		ids, log = f, other
	}
	k := v.keys[n/3%len(v.keys)]
	opts := join.Options{
		On: k.name, Type: types[n%len(types)], Strategy: strategies[n/6%len(strategies)],
		Memory: budget / 4, TempDir: v.dir, Threads: 2,
	}
	if k.many {
		opts.Type = []join.Type{join.Semi, join.Anti}[n%2]
	}
	j, err := join.New([]*partition.File{door(ids)}, []*partition.File{door(log)}, opts)
	if err != nil {
		return err
	}
	name := filepath.Join(v.dir, "joined"+[]string{".parquet", ".arrow"}[n/2%2])
	_, err = j.Write(ctx, partition.Output(v.output(name).Output))
	if err != nil {
		return err
	}
	return os.Remove(name)
}
