package joins_test

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/door"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/partition"
)

// Whether marks of the IDs are possible is decided by number and range in the footers,
// before an ID is read, and otherwise after all are.
func TestExactTooFarApart(t *testing.T) {
	const most = 1 << 23 // of a small set's range
	for name, c := range map[string]struct {
		format dataset.Format
		last   string
		memory int64
		read   bool // some ID is
		want   string
	}{
		"fits":            {dataset.Parquet, "8388608", 0, true, ""},
		"from statistics": {dataset.Parquet, "8400000", 0, false, "integer between the smallest and the largest: up to 3 IDs in a range of 8.4e+06"},
		"no statistics":   {dataset.ArrowFile, "8400000", 0, true, "integer between the smallest and the largest (leave"},
		"rounded bounds":  {dataset.Parquet, "8388700", 0, true, "integer between the smallest and the largest (leave"},
		"far":             {dataset.Parquet, "9223372036854775807", 0, false, "in a range of 9.22e+18"},
		"memory":          {dataset.Parquet, "8388608", most / 16, false, "marks of the IDs"},
	} {
		rec := table(t, column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: []string{"0", "7", c.last}})
		ids := open(t, partition.OpenOptions{}, writeTable(t, rec, 1, 3, c.format))
		var read atomic.Bool
		err := prepared(t, ids, ids, joins.Options{On: "k", Type: joins.Semi, Strategy: joins.Exact, Memory: c.memory, Prepares: func(bool, int64) { read.Store(true) }})
		switch {
		case (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case c.memory > 0 && !errors.Is(err, fault.ErrMemory):
			t.Errorf("%s: not about memory: %v", name, err)
		}
		if read.Load() != c.read {
			t.Errorf("%s: IDs were read: %t, want %t", name, read.Load(), c.read)
		}
	}
}

// Each pass over the IDs reports all of their rows, also those that it skips.
func TestPrepares(t *testing.T) {
	values := make([]string, 3000)
	for i := range values {
		values[i] = strconv.Itoa(i * 3)
	}
	k := column{name: "k", dt: arrow.PrimitiveTypes.Int64, values: values}
	v := column{name: "v", dt: arrow.BinaryTypes.String, values: values}
	for _, format := range []dataset.Format{dataset.Parquet, dataset.ArrowFile} {
		ids := open(t, partition.OpenOptions{}, writeTable(t, table(t, k, v), 2, 2, format))
		log := open(t, partition.OpenOptions{}, writeTable(t, table(t, column{name: "k", dt: k.dt, values: values[:900]}), 1, 3, dataset.Parquet))
		for _, s := range []joins.Strategy{joins.Exact, joins.Lookup, joins.Broadcast, joins.Reverse, joins.Shuffle} {
			for _, typ := range []joins.Type{joins.Semi, joins.Inner, joins.Full} {
				if s == joins.Exact && typ != joins.Semi {
					continue
				}
				var ofIDs, ofLog atomic.Int64
				err := prepared(t, ids, log, joins.Options{On: "k", Type: typ, Strategy: s, Prepares: func(ids bool, rows int64) {
					if ids {
						ofIDs.Add(rows)
					} else {
						ofLog.Add(rows)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				if n := ofIDs.Load(); n == 0 || n%3000 != 0 {
					t.Errorf("%s, %s, %s: %d rows of 3000 IDs", format, s, typ, n)
				}
				if n := ofLog.Load(); n%900 != 0 || (n > 0) != (s != joins.Exact && s != joins.Lookup) {
					t.Errorf("%s, %s, %s: %d keys of a log of 900 rows", format, s, typ, n)
				}
			}
		}
	}
}

// prepared runs a join with options that only the room has.
func prepared(t *testing.T, ids, logs []*partition.File, opts joins.Options) error {
	t.Helper()
	j, err := joins.New(door.In(ids), door.In(logs), opts)
	if err != nil {
		return err
	}
	for r, err := range j.Run(t.Context()) {
		if err != nil {
			return err
		}
		r.Record.Release()
	}
	return nil
}
