package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/publish"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// listed writes n files in directories of days, some with a NULL day, and a list of
// them.
func listed(t testing.TB, n int) (dir, list string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	mem := sourcetest.Checked(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		rows := 1 + rng.IntN(40)
		rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(rows, func(k int) int64 { return int64(1000*i + k) })})
		day := fmt.Sprintf("2024-05-%02d", 1+i%7)
		if i%7 == 6 {
			day = "__HIVE_DEFAULT_PARTITION__"
		}
		sourcetest.Write(t, filepath.Join(dir, "dt="+day, fmt.Sprintf("p%03d.parquet", i)), 8, rec)
		rec.Release()
	}
	list = filepath.Join(filepath.Dir(dir), "list.jsonl")
	freeze(t, list, source.Opening{}, dir)
	return dir, list
}

// freeze lists what the names stand for.
func freeze(t testing.TB, list string, opts source.Opening, names ...string) {
	t.Helper()
	l, err := Find(context.Background(), names, opts, nil)
	if err == nil {
		_, err = Write(context.Background(), storage.Local(), list, l, true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openList opens a list, which the test closes.
func openList(t testing.TB, name string) *List {
	t.Helper()
	in, err := Read(context.Background(), storage.Local(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// openFiles opens files for the test.
func openFiles(t testing.TB, opts source.Opening, names ...string) []*source.File {
	t.Helper()
	files, err := source.Open(context.Background(), names, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := source.Close(files); err != nil {
			t.Error(err)
		}
	})
	return files
}

// piecesText names pieces.
func piecesText(pieces []source.Piece) (out []string) {
	for _, p := range pieces {
		out = append(out, fmt.Sprint(p.File.Name(), " ", p.File.Rel(), " ", p.Lo, "-", p.Hi, " ", p.File.Partitions()))
	}
	return out
}

// A list has what the files have, and each shard reads of it what it would read of the
// files, with a condition, too.
func TestInputsAreTheFiles(t *testing.T) {
	ctx := context.Background()
	dir, list := listed(t, 300) // more than one block
	in := openList(t, list)
	for _, where := range []string{"", "dt >= '2024-05-03'", "dt IS NULL", "id < 5000", "dt = '1999-01-01'"} {
		files := openFiles(t, source.Opening{OpenOptions: source.OpenOptions{Where: where, Hive: dataset.HiveAuto}}, dir)
		chosen, err := in.Where(where, false)
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, where, chosen.Len(), len(files))
		i := 0
		for got, err := range chosen.Each(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			want, err := describedOf(files[i])
			if err != nil {
				t.Fatal(err)
			}
			sourcetest.Equal(t, want.Rel, *got.Root, *want.Root)
			got.Root, want.Root, want.number = nil, nil, got.number
			sourcetest.Equal(t, want.Rel, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
			i++
		}
		for _, of := range []uint32{0, 1, 2, 7, uint32(cases.Count(11, 40, 100))} {
			for i := range max(of, 1) {
				pieces, err := chosen.Share(ctx, dataset.Shard{Index: i, Of: of})
				if err != nil {
					t.Fatal(err)
				}
				shared, parts, err := chosen.Open(ctx, pieces, source.Opening{OpenOptions: source.OpenOptions{Where: where}})
				if err != nil {
					t.Fatal(err)
				}
				sourcetest.Equal(t, fmt.Sprint(where, " ", i, "/", of), piecesText(parts), piecesText(source.Split(files, dataset.Shard{Index: i, Of: of})))
				if err := source.Close(shared); err != nil {
					t.Error(err)
				}
			}
		}
	}
	files := openFiles(t, source.Opening{OpenOptions: source.OpenOptions{Hive: dataset.HiveAuto}}, dir)
	of := NewDigest()
	err := of.Files(files)
	if sum, known := of.Sum(); err != nil || !known || sum != in.Digest() {
		t.Errorf("digest %x, %t, %v; want %x", in.Digest(), known, err, sum)
	}
	var rows int64
	for _, f := range files {
		rows += f.Rows()
	}
	sourcetest.Equal(t, "rows", in.Rows(), rows)
	sourcetest.Equal(t, "columns", in.Hive(), []arrow.Field{{Name: "dt", Type: arrow.FixedWidthTypes.Date32, Nullable: true}})
	sourcetest.Equal(t, "arguments", in.Arguments(), []string{dir})
}

// rels yields what Each does, also for names that JSON escapes, and of chosen inputs.
func TestInputsRels(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	mem := sourcetest.Checked(t)
	names := []string{"plain", `"`, `,"rel":"x`, `back\slash`, "<&>", "ü", "line\nend", `x","rel":"y`, "dt=1"}
	if runtime.GOOS == "linux" {
		names = append(names, "\xff")
	}
	for _, name := range names {
		rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "a", Values: []int64{1}})
		sourcetest.Write(t, filepath.Join(dir, name+".parquet"), 10, rec)
		rec.Release()
	}
	list := filepath.Join(dir, "_list")
	freeze(t, list, source.Opening{}, dir)
	all := openList(t, list)
	some, err := all.Pick(ctx, func(in *Input) bool { return len(in.Rel)%2 == 0 })
	if err != nil || all.Len() != len(names) || some.Len() == 0 || some.Len() == all.Len() {
		t.Fatal(all.Len(), some.Len(), err)
	}
	for _, in := range []*List{all, some} {
		var want, got []string
		for one, err := range in.Each(ctx) {
			want = append(want, one.Rel)
			if err != nil {
				t.Fatal(err)
			}
		}
		for rel, err := range in.rels(ctx) {
			got = append(got, rel)
			if err != nil {
				t.Fatal(err)
			}
		}
		sourcetest.Equal(t, "rels", got, want)
	}
}

// The same files make the same bytes, in whatever order they are named; a column more
// makes another schema.
func TestInputsAreCanonical(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	mem := sourcetest.Checked(t)
	for i, c := range [][]sourcetest.Col{{{Name: "a", Values: []int64{1}}}, {{Name: "a", Values: []int64{2, 3}}}, {{Name: "a", Values: []int64{4}}, {Name: "b", Values: []string{"x"}}}} {
		rec := sourcetest.Record(t, mem, c...)
		sourcetest.Write(t, filepath.Join(dir, fmt.Sprint("f", i, ".parquet")), 10, rec)
		rec.Release()
	}
	first, second := filepath.Join(dir, "list1"), filepath.Join(dir, "list2")
	freeze(t, first, source.Opening{}, dir+"/f0.parquet", dir+"/f1.parquet", dir+"/f2.parquet")
	freeze(t, second, source.Opening{}, dir+"/f0.parquet", dir+"/f1.parquet", dir+"/f2.parquet")
	sourcetest.Equal(t, "bytes", sourcetest.Get(t, second), sourcetest.Get(t, first))
	schemas, err := openList(t, first).Schemas(ctx)
	if err != nil || len(schemas) != 2 || schemas[0].Rel != "f0.parquet" || schemas[1].Rel != "f2.parquet" {
		t.Errorf("schemas %+v, %v", schemas, err)
	}
	picked, err := openList(t, first).Pick(ctx, func(in *Input) bool { return in.Rel != "f1.parquet" })
	if err != nil || picked.Len() != 2 {
		t.Fatalf("%v", err)
	}
	pieces, err := picked.Share(ctx, dataset.Shard{})
	if err != nil || len(pieces) != 2 || pieces[1].Input.Rel != "f2.parquet" {
		t.Errorf("%+v, %v", pieces, err)
	}
	for n, want := range []string{"[f0.parquet f2.parquet]", "[f1.parquet f2.parquet]", "[f2.parquet]"} {
		from, err := openList(t, first).Pick(ctx, func(in *Input) bool { return in.Rel >= fmt.Sprint("f", n) })
		if err != nil {
			t.Fatal(err)
		}
		schemas, err := from.Schemas(ctx)
		var rels []string
		for _, in := range schemas {
			rels = append(rels, in.Rel)
		}
		if fmt.Sprint(rels) != want || err != nil {
			t.Errorf("schemas of those from f%d on: %v, %v; want %s", n, rels, err, want)
		}
	}
	l, err := Find(ctx, []string{dir + "/f0.parquet"}, source.Opening{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Write(ctx, storage.Local(), first, l, false)
	sourcetest.Says(t, "another list", err, publish.ErrExists, "list1", "Force")
	third := filepath.Join(dir, "list3")
	freeze(t, third, source.Opening{}, dir+"/f2.parquet", dir+"/f0.parquet", dir+"/f1.parquet")
	rels := []string{}
	for in, err := range openList(t, third).Each(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		rels = append(rels, in.Rel)
	}
	sourcetest.Equal(t, "inputs in another order than they were named", rels, []string{"f0.parquet", "f1.parquet", "f2.parquet"})
}

// Names of any bytes, and a list without inputs.
func TestInputsEdges(t *testing.T) {
	ctx := context.Background()
	m := teststore.NewMemory()
	names := []string{"a\\b\n\"c", "b\xff\xfe", "c<&>", "ø"}
	list := newInputList(nil, new(source.Opening), nil)
	for _, n := range names {
		if err := list.add(&Input{Name: "logs/" + n, Rel: n, Identity: `W/"x"`, Format: dataset.Parquet, Print: []byte{1, 2}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []*inputList{list, newInputList(nil, new(source.Opening), nil)} {
		written, err := l.open(nil)
		if err == nil {
			_, err = Write(ctx, m, "list", written, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		in, err := Read(ctx, m, "list")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, err := range in.Each(ctx) {
			if err != nil || i.Name != "logs/"+i.Rel || i.Identity != `W/"x"` {
				t.Errorf("%+v, %v", i, err)
			}
			got = append(got, i.Rel)
		}
		sourcetest.Equal(t, "names", len(got), l.header.Inputs)
		for i := range got {
			sourcetest.Equal(t, "name", got[i], names[i])
		}
		pieces, err := in.Share(ctx, dataset.Shard{Index: 0, Of: 1})
		if err != nil || len(pieces) != l.header.Inputs {
			t.Errorf("%v, %v", pieces, err)
		}
	}
}

// Each truncation, each flipped bit (unless all run, two bits of each byte), and each line removed is an error.
func TestInputsDamaged(t *testing.T) {
	_, list := listed(t, 9)
	whole := []byte(sourcetest.Get(t, list))
	if err := readWhole(whole); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte) {
		if err := readWhole(b); !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range whole {
		refused(fmt.Sprint("cut off at ", n), whole[:n])
		for bit := range 8 {
			if (n+bit)%cases.Count(8, 4, 1) != 0 {
				continue
			}
			b := slices.Clone(whole)
			b[n] ^= 1 << bit
			refused(fmt.Sprintf("byte %d, bit %d", n, bit), b)
		}
	}
	refused("a byte more", append(slices.Clone(whole), '\n'))
	lines := strings.SplitAfter(string(whole), "\n")
	for i := range lines[:len(lines)-1] {
		refused(fmt.Sprint("without line ", i), []byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")))
	}
}

// Parts with right checksums may still say anything.
func TestInputsContradict(t *testing.T) {
	_, list := listed(t, 9)
	whole := sourcetest.Get(t, list)
	body := whole[:len(whole)-int(pointerSize)]
	if err := readWhole(seal([]byte(body))); err != nil {
		t.Fatal(err)
	}
	half := fmt.Sprintf(`{"inputs":%d,"of":["2024-05-01"]},`, uint64(1)<<62)
	for _, c := range []struct{ old, by string }{
		{`[{"inputs":`, `[` + strings.Repeat(half, 4) + `{"inputs":`}, // which adds nothing to the sum
		{`[{"inputs":2,`, `[{"inputs":1,`},
		{"\n[[", "\n[[-2,"},
		{"\n[[", "\n[[1,"},
		{"\n[[", "\n[[],["},
		{`,"weight":`, `,"weight":1`},
		{`,"weight":`, `,"weight":99999999999999999`},
		{`"groups":2`, `"groups":1`},
		{`{"bytes":`, `{"bytes":1`},
		{`{"bytes":`, `{"bytes":-`},
		{`["2024-05-02"]`, `["2024-05-03"]`}, // of the first input, which has another day beside it
		{`,"of":["2024-05-02"]`, `,"of":["2024-05-03"]`},
		{`"largest":`, `"largest":9`},
		{`"largest":`, `"largest":0,"was":`},
		{`"digest":"`, `"digest":"` + strings.Repeat("0", 64) + `","was":"`},
		{`"found":true`, `"found":false`},
		{`"first":0`, `"first":1`},
		{`"inputs":9`, `"inputs":8`},
		{`"inputs":9`, `"inputs":300`},
		{`"inputs":9`, `"inputs":-9`},
	} {
		changed := strings.Replace(body, c.old, c.by, 1)
		if changed == body {
			t.Fatalf("no %s in %s", c.old, body)
		}
		if err := readWhole(seal([]byte(changed))); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: %v", c.by, err)
		}
	}
	needs := strings.Replace(body, `"version":3,`, `"version":3,"needs":["table","deletes"],"table":{"kind":"delta"},`, 1)
	sourcetest.Says(t, "a list of a table", readWhole(seal([]byte(needs))), fault.ErrUnsupported, "needs table, deletes")
	sourcetest.Says(t, "an old list", readWhole([]byte(strings.Replace(whole, `"version":3`, `"version":2`, 1))), fault.ErrUnsupported, "version 2", "want 3")
}

// readWhole reads all of a list.
func readWhole(b []byte) error {
	in, err := Parse("list", b)
	if err != nil {
		return err
	}
	if err := in.Check(context.Background()); err != nil {
		return err
	}
	chosen, err := in.Where("dt >= DATE '2024-05-01' OR dt IS NULL", false)
	if err != nil {
		return err
	}
	for _, l := range []*List{in, chosen} {
		for _, of := range []uint32{1, 3} {
			if _, err = l.Share(context.Background(), dataset.Shard{Index: of - 1, Of: of}); err != nil {
				return err
			}
		}
		if _, err := l.Spread(context.Background(), 5); err != nil {
			return err
		}
	}
	_, err = in.Schemas(context.Background())
	return err
}

// A file that is not the one that was listed is refused, unless it is a copy.
func TestInputsChanged(t *testing.T) {
	ctx := context.Background()
	dir, list := listed(t, 3)
	in := openList(t, list)
	pieces, err := in.Share(ctx, dataset.Shard{})
	if err != nil {
		t.Fatal(err)
	}
	name := pieces[1].Input.Name
	old := sourcetest.Get(t, name)
	try := func() error {
		files, _, err := in.Open(ctx, pieces, source.Opening{})
		return errors.Join(err, source.Close(files))
	}
	if err := try(); err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	sourcetest.Put(t, name, old) // at another time
	if err := try(); err != nil {
		t.Errorf("a copy: %v", err)
	}
	for what, content := range map[string]string{"longer": sourcetest.Get(t, pieces[0].Input.Name) + "", "bit": old[:len(old)/3] + "\x00\x01" + old[len(old)/3+2:]} {
		os.Remove(name)
		sourcetest.Put(t, name, content)
		sourcetest.Says(t, what, try(), ErrOutdated, name, list, "list the inputs again")
		sourcetest.Says(t, what, try(), storage.ErrChanged)
	}
	os.Remove(name)
	sourcetest.Says(t, "gone", try(), storage.ErrChanged, name, "no longer")
	_ = dir
}

// An update opens only what is new or has changed, and finds what a list from nothing
// finds.
func TestInputsUpdate(t *testing.T) {
	ctx := context.Background()
	dir, list := listed(t, 12)
	old := openList(t, list)
	days, err := filepath.Glob(dir + "/dt=2024-05-0*/*")
	if err != nil || len(days) < 9 {
		t.Fatal(days, err)
	}
	sourcetest.Put(t, days[0], sourcetest.Get(t, days[1])) // changed
	os.Remove(days[2])                                     // gone
	if err := os.MkdirAll(dir+"/dt=2024-05-31", 0o777); err != nil {
		t.Fatal(err)
	}
	sourcetest.Put(t, dir+"/dt=2024-05-31/new.parquet", sourcetest.Get(t, days[3]))
	counting := &opens{Storage: storage.Local()}
	l, err := Find(ctx, []string{dir}, source.Opening{OpenOptions: source.OpenOptions{Store: counting}}, old)
	if err != nil {
		t.Fatal(err)
	}
	changed, gone := l.Changes().Changed, l.Changes().Gone
	sourcetest.Equal(t, "new", l.Changes().New, []string{"dt=2024-05-31/new.parquet"})
	sourcetest.Equal(t, "inputs", l.Len(), 12)
	sourcetest.Equal(t, "changed and gone", len(changed)*10+len(gone), 11)
	sourcetest.Equal(t, "opened", int(counting.n.Load()), 2)
	again, err := Find(ctx, []string{dir}, source.Opening{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]*List{"updated": l, "new": again} {
		if _, err := Write(ctx, storage.Local(), filepath.Join(filepath.Dir(list), name), in, true); err != nil {
			t.Fatal(err)
		}
	}
	sourcetest.Equal(t, "an update", sourcetest.Get(t, filepath.Join(filepath.Dir(list), "updated")), sourcetest.Get(t, filepath.Join(filepath.Dir(list), "new")))
}

// opens counts the objects that are opened.
type opens struct {
	storage.Storage
	n atomic.Int64
}

func (o *opens) Open(ctx context.Context, e storage.Object) (storage.Reader, error) {
	o.n.Add(1)
	return o.Storage.Open(ctx, e)
}

func FuzzInputs(f *testing.F) {
	_, list := listed(f, 9)
	whole := []byte(sourcetest.Get(f, list))
	f.Add(whole, false)
	f.Add(whole[:len(whole)/2], false)
	f.Add([]byte(`{"kind":"bloomjoin inputs","version":3,"arguments":[],"inputs":0,"rows":0,"bytes":0,"digest":""}`+"\n"), true)
	f.Fuzz(func(_ *testing.T, b []byte, sealed bool) {
		if sealed {
			b = seal(b)
		}
		_ = readWhole(b)
	})
}

// seal appends the last line, with right checksums.
func seal(b []byte) []byte {
	p := listPointer{}
	begin := func(text string) int64 {
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			return int64(at) + 1
		}
		return int64(len(b))
	}
	p.at = [4]int64{min(begin("\n{\"name\":"), begin("\n{\"bytes\":")), begin("\n[["), min(begin("\n[{\"inputs\":"), begin("\n{\"bytes\":")), begin("\n{\"bytes\":")}
	p.at[1] = min(p.at[1], p.at[2])
	if !slices.IsSorted(p.at[:]) {
		return b
	}
	p.sums[0], p.sums[1] = xxh3.Hash(b[p.at[1]:p.at[2]]), xxh3.Hash(b[p.at[2]:p.at[3]])
	p.sums[2] = p.sumOf(b[:p.at[0]], b[p.at[3]:])
	return append(slices.Clone(b), p.text()...)
}

// The last of many workers has nothing to read, and opens no file.
func TestInputsEmptyShare(t *testing.T) {
	ctx := t.Context()
	_, list := listed(t, 1)
	in := openList(t, list)
	share, err := in.Share(ctx, dataset.Shard{Index: 99, Of: 100})
	if err != nil || len(share) > 0 {
		t.Fatalf("the last of many workers has %v, %v: want nothing", share, err)
	}
	if files, pieces, err := in.Open(ctx, share, source.Opening{}); err != nil || len(files)+len(pieces) > 0 {
		t.Errorf("an empty share: %v, %v, %v", files, pieces, err)
	}
}

// Inputs by their numbers, which may repeat, are those that Each yields.
func TestInputsAt(t *testing.T) {
	_, list := listed(t, 300)
	in := openList(t, list)
	var all []Input
	for one, err := range in.Each(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Equal(t, "number", one.Number(), len(all))
		all = append(all, one)
	}
	numbers := []int{0, 0, 3, 3, 3, 254, 255, 256, 256, 299, 299}
	got, err := in.At(t.Context(), numbers)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range numbers {
		sourcetest.Equal(t, fmt.Sprint("input ", n), got[i].Rel, all[n].Rel)
		sourcetest.Equal(t, fmt.Sprint("number of input ", n), got[i].Number(), n)
	}
}

// TestDiffer checks how files that are not read are compared: by size and fingerprint, and, if
// asked for, by time above 1 MiB, where a fingerprint covers only the footer. Objects are compared
// by identity.
func TestDiffer(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, rows, first int) string {
		name = filepath.Join(dir, name)
		return sourcetest.Write(t, name, 1<<20, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: sourcetest.Numbers(rows, func(k int) int64 { return int64((k + first) * 0x9E3779B97F4A7C1) })}))
	}
	small, large := write("a.parquet", 3, 0), write("b.parquet", 200_000, 0)
	memory := storage.Memory()
	put := func(content string) {
		w, err := memory.Create(t.Context(), "s3://b/log/c.parquet", storage.CreateOptions{})
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err == nil {
			err = w.Commit(true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put(sourcetest.Get(t, small))
	list := func(src storage.Source, name string) (l *List, all []Input) {
		l, err := Find(t.Context(), []string{name}, source.Opening{OpenOptions: source.OpenOptions{Store: src}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		for in := range l.Each(t.Context()) {
			all = append(all, in)
		}
		return l, all
	}
	local, files := list(storage.Local(), dir)
	remote, objects := list(memory, "s3://b/log")
	check := func(about string, timed bool, want ...bool) {
		t.Helper()
		why, err := local.Differ(t.Context(), files, source.Opening{}, timed)
		more, failed := remote.Differ(t.Context(), objects, source.Opening{OpenOptions: source.OpenOptions{Store: memory}}, timed)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		for i, err := range append(why, more...) {
			if (err != nil) != want[i] || err != nil && !errors.Is(err, storage.ErrChanged) {
				t.Errorf("%s, input %d: %v", about, i, err)
			}
		}
	}
	if len(files) != 2 || files[1].Size <= source.WholeBelow {
		t.Fatalf("%+v", files)
	}
	check("as listed", true, false, false, false)
	for _, name := range []string{small, large} {
		if err := os.Chtimes(name, time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	check("copies", true, false, true, false)
	check("copies", false, false, false, false)
	write("a.parquet", 3, 1)
	put(sourcetest.Get(t, small))
	check("other content", false, true, false, true)
	os.Remove(large)
	check("gone", true, true, true, true)
}

// weighing returns a list of inputs whose row groups have the given bytes.
func weighing(t testing.TB, of [][]int64) *List {
	t.Helper()
	list := newInputList(nil, new(source.Opening), nil)
	for i, bytes := range of {
		in := Input{Name: fmt.Sprint("logs/", i), Rel: fmt.Sprintf("%06d", i), Format: dataset.Parquet, Print: []byte{1}, Groups: [][2]int64{}}
		for _, b := range bytes {
			in.Groups = append(in.Groups, [2]int64{1, b})
		}
		if err := list.add(&in, nil); err != nil {
			t.Fatal(err)
		}
	}
	in, err := list.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// Share divides as source.Divide does, whether it reads the weights or not, also at the border
// between the two.
func TestShareDivides(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	middles, border := 0, 0
	for round := range cases.Count(20, 60, 300) {
		var of [][]int64
		var weights []int64
		most := int64(1) << rng.IntN(12)
		for range 1 + rng.IntN(900) {
			bytes := make([]int64, rng.IntN(4))
			for g := range bytes {
				if bytes[g] = rng.Int64N(most) - 1; rng.IntN(200) == 0 {
					bytes[g] = most * rng.Int64N(20)
				}
				if round%10 == 9 {
					bytes[g] = []int64{1<<60 - 1, 1 << 55, 1}[rng.IntN(3)]
				}
			}
			of = append(of, bytes)
			weights = source.AppendWeights(weights, len(bytes), func(g int) int64 { return bytes[g] })
		}
		in := weighing(t, of)
		n := uint32(1)
		for source.ByMiddles(in.file().weight, in.file().header.Largest, n+1) {
			n++
		}
		for _, n := range []uint32{1, 2, n - min(n-1, 1), n, n + 1, 1 + rng.Uint32N(64)} {
			if source.ByMiddles(in.file().weight, in.file().header.Largest, n) {
				middles++
			} else {
				border++
			}
			for _, i := range []uint32{0, n / 2, rng.Uint32N(n), n - 1} {
				s := dataset.Shard{Index: i, Of: n}
				lo, hi := source.Divide(weights, s)
				var want, got []string
				at := 0
				for k, bytes := range of {
					if from, to, ok := source.Overlap(at, len(bytes), lo, hi); ok {
						want = append(want, fmt.Sprint(k, " ", from, "-", to))
					}
					at += max(len(bytes), 1)
				}
				pieces, err := in.Share(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range pieces {
					got = append(got, fmt.Sprint(p.Input.Number(), " ", p.Lo, "-", p.Hi))
				}
				sourcetest.Equal(t, fmt.Sprint("round ", round, ", shard ", s), got, want)
			}
		}
	}
	if middles < 20 || border < 20 {
		t.Errorf("%d by the middles, %d by all weights", middles, border)
	}
}

// Alike is set exactly if two inputs have outputs of one name.
func TestInputsAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	alike := 0
	for range 2000 {
		rels, stems, want := []string{}, map[string]bool{}, false
		for range 1 + rng.IntN(6) {
			rel := ""
			for range 1 + rng.IntN(3) {
				rel += []string{"a", "b", ".parquet", ".arrow", "/c", ".", "ab", ".csv"}[rng.IntN(8)]
			}
			rels, want = append(rels, rel), want || stems[source.StemOf(rel)]
			stems[source.StemOf(rel)] = true
		}
		slices.Sort(rels)
		list := newInputList(nil, new(source.Opening), nil)
		for _, rel := range rels {
			if err := list.add(&Input{Name: rel, Rel: rel, Format: dataset.Parquet, Print: []byte{1}}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if sourcetest.Equal(t, fmt.Sprint(rels), list.header.Alike, want); want {
			alike++
		}
	}
	if alike < 200 || alike > 1800 {
		t.Errorf("%d of 2000 are alike", alike)
	}
}

// A directory is listed without keeping its files, and says what else listings say.
func TestInputsNotes(t *testing.T) {
	dir, _ := listed(t, 20)
	for _, link := range []func(string, string) error{os.Symlink, os.Link} {
		names, _ := filepath.Glob(dir + "/dt=*/*.parquet")
		to := filepath.Join(filepath.Dir(names[0]), "z.parquet")
		os.Remove(to)
		sourcetest.Equal(t, "a link", link(names[0], to), error(nil))
		var notes, same []string
		l, err := Find(t.Context(), []string{dir}, source.Opening{Note: func(n fault.Text) { notes = append(notes, fmt.Sprint(n)) }}, nil)
		files := openFiles(t, source.Opening{Note: func(n fault.Text) { same = append(same, fmt.Sprint(n)) }}, dir)
		sourcetest.Equal(t, "files", errors.Join(err, l.Close()) == nil && l.Len() == len(files), true)
		sourcetest.Equal(t, "notes", fmt.Sprint(len(notes), notes), fmt.Sprint(1, same))
	}
	opts := source.Opening{OpenOptions: source.OpenOptions{Include: []string{"none*"}}}
	_, err := Find(t.Context(), []string{dir}, opts, nil)
	_, other := source.Open(t.Context(), []string{dir}, opts)
	sourcetest.Equal(t, "the error", fmt.Sprint(err), fmt.Sprint(other))
}

// lazy opens objects of known identities without a request, as stores do.
type lazy struct{ storage.Storage }

func (l lazy) Open(ctx context.Context, o storage.Object) (storage.Reader, error) {
	if o.Identity == "" {
		return l.Storage.Open(ctx, o)
	}
	return lazyReader{o, l.Storage}, nil
}

type lazyReader struct {
	object storage.Object
	of     storage.Storage
}

func (r lazyReader) Object() storage.Object { return r.object }
func (r lazyReader) Close() error           { return nil }
func (r lazyReader) ReadAt(b []byte, at int64) (int, error) {
	if src, err := r.of.Open(context.Background(), r.object); err != nil {
		return 0, err
	} else {
		return src.ReadAt(b, at)
	}
}

// An object that has changed is noticed, also one that was empty, of which nothing is read.
func TestStoredInputsChanged(t *testing.T) {
	for _, was := range []string{"", "1\n"} {
		m := teststore.NewMemory()
		m.Put("s3://bucket/a.txt", []byte(was))
		opts := source.Opening{OpenOptions: source.OpenOptions{Text: true, Store: lazy{m}}}
		l, err := Find(t.Context(), []string{"s3://bucket/a.txt"}, opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		read := func() error {
			pieces, err := l.Share(t.Context(), dataset.Shard{})
			if err != nil {
				return err
			}
			files, _, err := l.Open(t.Context(), pieces, opts)
			return errors.Join(err, source.Close(files))
		}
		sourcetest.Equal(t, "unchanged", read(), error(nil))
		m.Put("s3://bucket/a.txt", []byte("2\n"))
		sourcetest.Says(t, fmt.Sprintf("%q has changed", was), read(), ErrOutdated, "list the inputs again")
		sourcetest.Equal(t, "closed", l.Close(), error(nil))
	}
}

// Whatever changes, an update is a new list, and says what changed.
func TestUpdatesAreNewLists(t *testing.T) {
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(11, 12))
	mem := sourcetest.Checked(t)
	for range cases.Count(4, 12, 40) {
		root := t.TempDir()
		content := map[string]int{} // by path below root
		put := func(name string, n int) {
			content[name] = n
			rec := sourcetest.Record(t, mem, sourcetest.Col{Name: "id", Values: sourcetest.Numbers(1+n%50, func(k int) int64 { return int64(1000*n + k) })})
			os.Remove(filepath.Join(root, name))
			sourcetest.Write(t, filepath.Join(root, name), 8, rec)
			rec.Release()
		}
		random := func() string {
			hour := []string{"7", "8", "9", "08", "x"}[rng.IntN(3+rng.IntN(3))]
			return fmt.Sprintf("%c/h=%s/%d.parquet", "ab"[rng.IntN(2)], hour, rng.IntN(200))
		}
		for range 1 + rng.IntN(600) {
			put(random(), rng.IntN(1000))
		}
		names := [][]string{{root}, {root + "/a", root + "/b"}, {root + "/*/*"}, {root + "/b", root + "/a/"}, {root + "/b/*/*.parquet", root + "/a"}, {root, root + "/a"}}[rng.IntN(6)]
		opts := source.Opening{AllowEmpty: true, Repeated: rng.IntN(2) == 0, OpenOptions: source.OpenOptions{Base: []string{"", root}[rng.IntN(2)]}}
		old, err := Find(ctx, names, opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		was := maps.Clone(content)
		for _, name := range slices.Sorted(maps.Keys(content)) {
			switch rng.IntN(12) {
			case 0:
				put(name, content[name]+1)
			case 1:
				os.Remove(filepath.Join(root, name))
				delete(content, name)
			case 2:
				to := random()
				if _, there := content[to]; !there {
					put(to, content[name])
				}
			}
		}
		if rng.IntN(3) == 0 { // another base: each file is opened again
			opts.Base = []string{"", root}[rng.IntN(2)]
		}
		now, err := Find(ctx, names, opts, old)
		fresh, again := Find(ctx, names, opts, nil)
		if err := errors.Join(err, again); err != nil {
			t.Fatal(err)
		}
		bytesOf := func(l *List) string {
			b := make([]byte, l.file().size)
			if err := readAll(l.file().r, b, 0); err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		sourcetest.Equal(t, fmt.Sprint("an update of ", names), bytesOf(now) == bytesOf(fresh), true)
		relsOf := func(l *List) (names []string) {
			for in, err := range l.Each(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, in.Rel+" "+in.Name)
			}
			return names
		}
		var added, changed, gone []string
		before, after := relsOf(old), relsOf(now)
		for _, n := range after {
			rel, name, _ := strings.Cut(n, " ")
			below := strings.TrimPrefix(name, root+"/")
			switch {
			case !slices.Contains(before, n):
				added = append(added, rel)
			case was[below] != content[below]:
				changed = append(changed, rel)
			}
		}
		for _, n := range slices.Compact(before) { // a file that was there twice is gone once
			if !slices.Contains(after, n) {
				rel, _, _ := strings.Cut(n, " ")
				gone = append(gone, rel)
			}
		}
		sourcetest.Equal(t, "what changed", fmt.Sprint(*now.Changes()), fmt.Sprint(Changes{added, changed, gone}))
		for _, l := range []*List{old, now, fresh} {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
