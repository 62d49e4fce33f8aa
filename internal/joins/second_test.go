package joins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/internal/filters"
	"github.com/bloomjoin/bloomjoin/join"
	"github.com/bloomjoin/bloomjoin/partition"
)

// The rows of TestKeysWithinASecond: row i has the key of one second and i units.
const secondRows = 600

// inSecond renders the key of a row for an Arrow builder of the type.
func inSecond(dt arrow.DataType, i int) string {
	digits := len(strconv.Itoa(int(1e9/dt.(arrow.TemporalWithUnit).TimeUnit().Multiplier()))) - 1
	if dt.ID() == arrow.DURATION {
		return fmt.Sprintf("90061.%0*ds", digits, i)
	}
	return fmt.Sprintf("2024-02-29 12:34:56.%0*d", digits, i)
}

// pagesWithinASecond writes the rows as one row group of many small pages with an index, which
// arrow/go's writers do not make. Parquet has no durations.
func pagesWithinASecond(t *testing.T, dt *arrow.TimestampType, second int64) []*partition.File {
	t.Helper()
	unit := map[arrow.TimeUnit]pq.TimeUnit{arrow.Millisecond: pq.Millisecond, arrow.Microsecond: pq.Microsecond, arrow.Nanosecond: pq.Nanosecond}[dt.Unit]
	name := filepath.Join(t.TempDir(), "pages.parquet")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := pq.NewWriter(out,
		pq.NewSchema("log", pq.Group{"k": pq.TimestampAdjusted(unit, dt.TimeZone != ""), "row": pq.Leaf(pq.Int64Type)}),
		pq.CreatedBy("github.com/parquet-go/parquet-go", "0.32.0", ""), pq.PageBufferSize(160))
	perSecond := int64(1e9) / int64(dt.Unit.Multiplier())
	for i := range int64(secondRows) {
		if _, err := w.WriteRows([]pq.Row{{pq.Int64Value(second*perSecond+i).Level(0, 0, 0), pq.Int64Value(i).Level(0, 0, 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, partition.OpenOptions{}, name)
}

// TestKeysWithinASecond: keys that differ only below the second are found, although the filter's
// key range and the statistics of row groups and pages exclude their neighbours.
func TestKeysWithinASecond(t *testing.T) {
	const second = 1_709_210_096 // 2024-02-29 12:34:56
	member := func(i int) bool { return i >= 205 && i < 395 && i%19 == 0 }
	var members, others []string
	var sought []int
	for i := range secondRows {
		if member(i) {
			members, sought = append(members, strconv.Itoa(i)), append(sought, i)
		} else {
			others = append(others, strconv.Itoa(i))
		}
	}
	for at := range sought { // neither the first nor the last ID is a bound
		sought[at], sought[(at*7+3)%len(sought)] = sought[(at*7+3)%len(sought)], sought[at]
	}
	for _, dt := range []arrow.DataType{
		&arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.TimestampType{Unit: arrow.Microsecond}, &arrow.TimestampType{Unit: arrow.Nanosecond},
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, &arrow.DurationType{Unit: arrow.Millisecond}, &arrow.DurationType{Unit: arrow.Microsecond},
	} {
		log, ids := column{name: "k", dt: dt}, column{name: "k", dt: dt}
		for i := range secondRows {
			log.values = append(log.values, inSecond(dt, i))
		}
		for _, i := range sought {
			ids.values = append(ids.values, inSecond(dt, i))
		}
		idFiles := files(t, 2, 2, ids)
		layouts := map[string][]*partition.File{"row groups": files(t, 1, 30, log, numbers("row", arrow.PrimitiveTypes.Int64, 0, secondRows))}
		if ts, ok := dt.(*arrow.TimestampType); ok {
			layouts["pages"] = pagesWithinASecond(t, ts, second)
		}
		filter := filterOf(t, idFiles, "k", codec.KindBloom, 1e-9)
		for layout, logs := range layouts {
			what := fmt.Sprintf("%s in %s", dt, layout)
			s, err := partition.NewScanner(partition.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(filter)}}}, logs...)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for r, err := range s.Scan(t.Context(), partition.Split(logs, dataset.Shard{})) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range int(r.Record.NumRows()) {
					found = append(found, value(t, r.Record.Column(1), i))
				}
				r.Record.Release()
			}
			if !slices.Equal(found, members) {
				t.Errorf("%s: the scan finds rows %v, want %v", what, found, members)
			}
			if skipped := s.Stats().RowGroupsSkipped + s.Stats().PagesSkipped; dt.ID() == arrow.TIMESTAMP && skipped == 0 {
				t.Errorf("%s: the scan skips nothing", what)
			}
			var given *filters.Filter
			for _, strategy := range []join.Strategy{join.Lookup, join.Broadcast, join.Reverse, join.Shuffle, join.Lookup} {
				for typ, want := range map[join.Type][]string{join.Anti: others, join.Inner: members} {
					got, err := run(t, idFiles, logs, join.Options{On: "k", Type: typ, Strategy: strategy, Filter: (*codec.Filter)(given), Threads: 2})
					if err != nil {
						t.Fatal(err)
					}
					rows := make([]string, len(got.rows))
					for i, r := range got.rows {
						rows[i] = r[strings.LastIndexByte(r, ' ')+1:]
					}
					if !slices.Equal(rows, want) || got.report.IDsMatched != int64(len(members)) {
						t.Errorf("%s, %s by %s, filter given %v: %d rows, want %d; %d of %d IDs matched", what, typ, strategy, given != nil, len(rows), len(want), got.report.IDsMatched, len(members))
					}
				}
				if strategy == join.Shuffle { // the last join has the filter
					given = filter
				}
			}
		}
	}
}
