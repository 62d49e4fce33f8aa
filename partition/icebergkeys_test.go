package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	pg "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/lake/laketest"
	"github.com/bloomjoin/bloomjoin/partition"
)

// keyedRow is a row of a table whose rows are deleted by id, or by s and n.
type keyedRow struct {
	ID int64  `parquet:"id,id(1)"`
	S  string `parquet:"s,id(2)"`
	N  *int32 `parquet:"n,optional,id(3)"`
}

// keyedTable returns a table, and which ids it has.
func keyedTable(t *testing.T, files, rows int) (d *laketest.Iceberg, want map[int64]bool) {
	r := rand.New(rand.NewPCG(uint64(files), uint64(rows)))
	d = laketest.NewIceberg(t, 2, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil))
	want = map[int64]bool{}
	var all []keyedRow
	file := func(name string, list []keyedRow) (string, int) {
		var b bytes.Buffer
		if err := pg.Write(&b, list, pg.MaxRowsPerRowGroup(int64(rows/3+1))); err != nil {
			t.Fatal(err)
		}
		return b.String(), b.Len()
	}
	for f := range files {
		var list []keyedRow
		for range rows {
			row := keyedRow{ID: int64(len(all) + len(list)), S: fmt.Sprint("text ", r.IntN(1000))}
			if n := int32(r.IntN(5)); n > 0 {
				row.N = &n
			}
			list = append(list, row)
		}
		name := fmt.Sprintf("%d.parquet", f)
		content, _ := file(name, list)
		d.Commit(d.Add(name, content, nil))
		var gone []keyedRow
		for _, row := range append(all, list...) { // rows of later files have other ids
			if r.IntN(3) == 0 {
				gone = append(gone, row)
				delete(want, row.ID)
			} else if row.ID >= int64(len(all)) {
				want[row.ID] = true
			}
		}
		all = append(all, list...)
		name = fmt.Sprintf("keys %d.parquet", f)
		content, size := file(name, gone)
		d.Put(name, content)
		d.Commit(&laketest.IcebergKeys{Name: name, Size: size, Rows: int64(len(gone)), IDs: []int{1}, Spec: -1})
		pair := all[r.IntN(len(all))]
		content, size = file("pair", []keyedRow{pair})
		d.Put("pair "+name, content)
		d.Commit(&laketest.IcebergKeys{Name: "pair " + name, Size: size, Rows: 1, IDs: []int{2, 3}, Spec: -1})
		for _, row := range all {
			if row.S == pair.S && (row.N == nil) == (pair.N == nil) && (row.N == nil || *row.N == *pair.N) {
				delete(want, row.ID)
			}
		}
	}
	return d, want
}

// A key deletes rows that are older than its newest deletion, and no others. NULL equals NULL, and no empty text.
func TestKeysAgain(t *testing.T) {
	two, empty := int32(2), ""
	file := func(list any) string {
		var b bytes.Buffer
		var err error
		switch list := list.(type) {
		case []keyedRow:
			err = pg.Write(&b, list)
		case []nullableRow:
			err = pg.Write(&b, list)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	d := laketest.NewIceberg(t, 2, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil))
	n := 0
	step := func(want string, ids []int, keys, rows any) {
		t.Helper()
		n++
		var actions []any
		if rows != nil {
			actions = append(actions, d.Add(fmt.Sprint(n, ".parquet"), file(rows), nil))
		}
		if keys != nil {
			content := file(keys)
			k := &laketest.IcebergKeys{Name: fmt.Sprint("keys ", n, ".parquet"), Size: len(content), Rows: int64(reflect.ValueOf(keys).Len()), IDs: ids, Spec: -1}
			d.Put(k.Name, content)
			actions = append(actions, k)
		}
		d.Commit(actions...)
		var got []string
		for _, text := range rowsOf(t, d.Name(), "") {
			got = append(got, strings.TrimSpace(text))
		}
		if slices.Sort(got); strings.Join(got, "; ") != want {
			t.Errorf("step %d: %s, want %s", n, strings.Join(got, "; "), want)
		}
	}
	first, again := keyedRow{ID: 1, S: "first"}, keyedRow{ID: 1, S: "again"}
	other := keyedRow{ID: 2, S: "other"}
	step("id=1 s=first n=(null); id=2 s=other n=(null)", nil, nil, []keyedRow{first, other})
	step("id=1 s=again n=(null); id=2 s=other n=(null)", []int{1}, []keyedRow{first}, []keyedRow{again})
	step("id=1 s=again n=(null)", []int{1}, []keyedRow{other}, nil) // which the set of the file needs now
	step("", []int{1}, []keyedRow{again}, nil)
	step("id=1 s=again n=(null)", []int{1}, []keyedRow{first}, []keyedRow{again})
	step("", []int{1}, []keyedRow{again}, nil)
	step("id=3 s= n=2; id=4 s=(null) n=2; id=5 s=(null) n=(null)", nil, nil, []nullableRow{{3, &empty, &two}, {4, nil, &two}, {5, nil, nil}})
	step("id=3 s= n=2; id=5 s=(null) n=(null)", []int{2, 3}, []nullableRow{{0, nil, &two}}, nil)
	step("id=3 s= n=2", []int{3, 2}, []nullableRow{{0, nil, nil}}, nil)
	step("", []int{2, 3}, []nullableRow{{0, &empty, &two}}, nil)
}

// nullableRow is a keyedRow whose text may be NULL.
type nullableRow struct {
	ID int64   `parquet:"id,id(1)"`
	S  *string `parquet:"s,optional,id(2)"`
	N  *int32  `parquet:"n,optional,id(3)"`
}

// sameIDs checks which rows of a table are read with a memory.
func sameIDs(t *testing.T, name string, memory int64, want map[int64]bool) {
	t.Helper()
	files, err := partition.Open(t.Context(), []string{name}, partition.OpenOptions{Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		for g := range f.NumGroups() {
			for rec, err := range f.Read(t.Context(), g, []int{0}) {
				if err != nil {
					t.Fatalf("memory %d: %v", memory, err)
				}
				for i := range int(rec.NumRows()) {
					if id := rec.Column(0).(interface{ Value(int) int64 }).Value(i); !want[id] {
						t.Fatalf("memory %d: row %d is there", memory, id)
					}
					n++
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("memory %d: %d rows, want %d", memory, n, len(want))
	}
	if err := partition.Close(files); err != nil {
		t.Error(err)
	}
}

// Keys that memory does not hold delete the same rows, by one share after the other.
func TestKeysBeyondMemory(t *testing.T) {
	d, want := keyedTable(t, 3, 100_000)
	for _, memory := range []int64{0, 16 << 20, 64 << 20} {
		sameIDs(t, d.Name(), memory, want)
	}
}

// So do those of many partitions, of which memory holds some.
func TestKeysOfManyPartitions(t *testing.T) {
	type row struct {
		ID int64 `parquet:"id,id(1)"`
		P  int32 `parquet:"p,id(2)"`
	}
	d := laketest.NewIceberg(t, 2, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "p", Type: arrow.PrimitiveTypes.Int32}}, nil), "p")
	var added, deleted []any
	const partitions, rows = 40, 3000
	want := map[int64]bool{}
	for p := range partitions {
		gone := []row{{int64((p + 1) % partitions), int32(p)}} // which is in another partition
		var all []row
		for i := range rows {
			all = append(all, row{int64(i*partitions + p), int32(p)})
			if i%3 > 0 {
				gone = append(gone, all[i])
			} else {
				want[all[i].ID] = true
			}
		}
		var b, k bytes.Buffer
		if err := errors.Join(pg.Write(&b, all), pg.Write(&k, gone)); err != nil {
			t.Fatal(err)
		}
		added = append(added, d.Add(fmt.Sprint(p, ".parquet"), b.String(), nil, p))
		name := fmt.Sprint("keys ", p, ".parquet")
		d.Put(name, k.String())
		deleted = append(deleted, &laketest.IcebergKeys{Name: name, Size: k.Len(), Rows: int64(len(gone)), IDs: []int{1}, Spec: -1, Values: []any{p}})
	}
	d.Commit(added...)
	d.Commit(deleted...)
	for _, memory := range []int64{0, 8 << 20, 16 << 20} {
		sameIDs(t, d.Name(), memory, want)
	}
}

// Delete files that are damaged, gone or others than the table says are errors that name them, before a row is read.
func TestDamagedKeys(t *testing.T) {
	for what, says := range map[string]string{"cut": "bytes of a delete file", "gone": "keys 0.parquet", "rows": "rows of a delete file", "column": "lacks a column"} {
		t.Run(what, func(t *testing.T) {
			d, _ := keyedTable(t, 1, 10)
			name := filepath.Join(d.Dir, "keys 0.parquet")
			b, err := os.ReadFile(name)
			switch what {
			case "cut":
				err = errors.Join(err, os.WriteFile(name, b[:len(b)-1], 0o600))
			case "gone":
				err = errors.Join(err, os.Remove(name))
			case "rows":
				d.Commit(&laketest.IcebergKeys{Name: "keys 0.parquet", Size: len(b), Rows: 1000, IDs: []int{1}, Spec: -1})
			case "column":
				d.Columns = append(d.Columns, laketest.Column{ID: 9, Name: "later", Type: "int"})
				d.Commit(&laketest.IcebergKeys{Name: "keys 0.parquet", Size: len(b), Rows: 10, IDs: []int{9}, Spec: -1})
			}
			if err != nil {
				t.Fatal(err)
			}
			files, err := partition.Open(t.Context(), []string{d.Name()}, partition.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer partition.Close(files)
			for rec, err := range files[0].Read(t.Context(), 0, nil) {
				if rec != nil || err == nil || !strings.Contains(err.Error(), says) {
					t.Fatalf("record %v, error %v; want one about %s", rec, err, says)
				}
				if what != "gone" && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrMismatch) {
					t.Error(err)
				}
			}
		})
	}
}
