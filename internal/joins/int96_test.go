package joins_test

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// int96 is a point in time as Spark and Hive store it.
func int96(t time.Time) deprecated.Int96 {
	var b [12]byte
	day := t.Unix() / 86400
	if t.Unix()%86400 < 0 {
		day--
	}
	binary.LittleEndian.PutUint64(b[:], uint64((t.Unix()-day*86400)*1e9+int64(t.Nanosecond())))
	binary.LittleEndian.PutUint32(b[8:], uint32(day+2440588))
	return deprecated.Int96{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
}

type event struct {
	T   deprecated.Int96 `parquet:"t"`
	Row int64            `parquet:"row"`
}

// events are log rows of the years 1 and 9999, and one with nanoseconds.
func events(t *testing.T, name string, nanos int, opts partition.OpenOptions) []*partition.File {
	rows := []event{
		{int96(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)), 0},
		{int96(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)), 1},
		{int96(time.Date(1969, 12, 31, 23, 59, 59, nanos, time.UTC)), 2},
		{int96(time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)), 3},
	}
	return open(t, opts, save(t, filepath.Join(t.TempDir(), name), rows))
}

// TestInt96Keys: INT96 keys are compared in full, whatever their years and digits, with
// each other and with other timestamps, and copied unchanged.
func TestInt96Keys(t *testing.T) {
	ids := events(t, "ids.parquet", 123456789, partition.OpenOptions{})
	for _, on := range []string{"t", "t,row", "row,t"} {
		for typ, want := range map[join.Type]int{join.Semi: 3, join.Anti: 1} {
			logs := events(t, "log.parquet", 123456788, partition.OpenOptions{}) // row 2 is another nanosecond
			out := filepath.Join(t.TempDir(), "o.parquet")
			j, err := join.New(ids, logs, join.Options{On: on, Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.Write(t.Context(), partition.Output{Name: out}); err != nil {
				t.Fatalf("%s on %s: %v", typ, on, err)
			}
			rows, err := pq.ReadFile[event](out)
			if err != nil || len(rows) != want {
				t.Fatalf("%s on %s: %d rows, want %d: %v", typ, on, len(rows), want, err)
			}
			all := events(t, "log.parquet", 123456788, partition.OpenOptions{})
			in, _ := pq.ReadFile[event](all[0].Name())
			for _, r := range rows {
				if !slices.Contains(in, r) {
					t.Errorf("%s on %s: %v is no row of the log", typ, on, r)
				}
			}
		}
	}
}

// TestInt96Records: rows that become records have microseconds in all years, or
// nanoseconds in a few centuries. A value that does not fit is an error that names the
// other option.
func TestInt96Records(t *testing.T) {
	ids := files(t, 1, 1, ints("row", "0", "1", "2", "3"))
	inner := join.Options{On: "row", Type: join.Inner}
	micros, nanos := partition.OpenOptions{}, partition.OpenOptions{Int96Nanos: true}

	got, err := run(t, ids, events(t, "log.parquet", 999999000, micros), inner)
	want := []string{"253402214400000000000ns 0", "-62135596800000000000ns 1", "-1000ns 2", "1709168523000004000ns 3"}
	if err != nil || !slices.Equal(got.rows, want) {
		t.Errorf("%q, %v, want %q", got.rows, err, want)
	}
	for _, c := range []struct {
		opts  partition.OpenOptions
		nanos int
		hint  string
	}{{micros, 999999999, "Int96Nanos true"}, {nanos, 0, "Int96Nanos false"}} {
		_, err := run(t, ids, events(t, "log.parquet", c.nanos, c.opts), inner)
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), c.hint) || !strings.Contains(err.Error(), "column t") {
			t.Errorf("%+v: %v, want an error that names %s", c, err, c.hint)
		}
	}
	logs := events(t, "log.parquet", 999999999, nanos)
	got, err = run(t, files(t, 1, 1, ints("row", "2", "3")), logs, join.Options{On: "row", Type: join.Semi})
	if want := []string{"-1ns 2", "1709168523000004000ns 3"}; err != nil || !slices.Equal(got.rows, want) {
		t.Errorf("nanoseconds: %q, %v", got.rows, err)
	}
	if err := (*source.File)(logs[0]).Check(context.Background(), 0); err != nil {
		t.Errorf("a check that finds values bad for what they are made of elsewhere: %v", err)
	}
}

// TestNullLogKey: a log key of type null matches no ID.
func TestNullLogKey(t *testing.T) {
	ids := files(t, 1, 1, ints("null", "1", "2"), texts("z", "a", "b"))
	for typ, want := range map[join.Type]int{join.Semi: 0, join.Anti: 3, join.Inner: 0, join.Left: 3, join.Right: 2, join.Full: 5} {
		logs := open(t, partition.OpenOptions{}, filepath.Join(vectorDir(), "pyarrow_layouts.arrow"))
		got, err := run(t, ids, logs, join.Options{On: "null", Type: typ})
		if err != nil || len(got.rows) != want {
			t.Errorf("%s: %d rows, want %d: %v", typ, len(got.rows), want, err)
		}
	}
}
