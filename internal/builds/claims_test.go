package builds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// claim rewrites the footer of a Parquet file of one column and one row group. The
// new footer has the given number of row groups and rows, all with the existing
// pages.
func claim(t *testing.T, file []byte, groups int, rows int64) []byte {
	t.Helper()
	f, err := parquet.Open(nil, bytes.NewReader(file), int64(len(file)), "ids")
	if err != nil {
		t.Fatal(err)
	}
	m := f.Metadata
	g := m.RowGroups[0]
	g.NumRows, g.Columns[0].MetaData.NumValues = rows, rows
	g.Columns[0].MetaData.PathInSchema = f.Leaves[0].Path // Open drops it
	m.RowGroups = nil
	for range groups {
		m.RowGroups = append(m.RowGroups, g)
	}
	m.NumRows = rows * int64(groups)
	footer, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	end := len(file) - 8 - int(binary.LittleEndian.Uint32(file[len(file)-8:]))
	out := append(bytes.Clone(file[:end]), footer...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(footer))), "PAR1"...)
}

// A footer that claims too many rows gives an error, not a filter of that size; so
// does one that claims too few.
func TestClaimedRows(t *testing.T) {
	for name, ids := range map[string]any{
		"integers": numbers(1000, func(i int) int64 { return int64(i) * 1_000_003_000 }),
		"strings":  numbers(1000, func(i int) string { return strconv.Itoa(i) }),
	} {
		s := newStore()
		putColumn(t, s, "ids", ids)
		whole, _ := s.get("ids")
		for _, c := range []struct {
			groups int
			rows   int64
		}{{1, 1<<32 - 1}, {200, 1<<32 - 1}, {1, 100_000}, {1, 1001}, {1, 999}, {3, 10}} {
			s.put("ids", claim(t, whole, c.groups, c.rows))
			for _, opts := range []Options{
				{Memory: 64 << 20}, {Memory: 64 << 20, Kind: codec.KindBloom}, {Memory: 1 << 30, Threads: 4},
				{Memory: 64 << 20, Shard: dataset.Shard{Index: 1, Of: 2}}, {Memory: 64 << 20, Kind: codec.KindBloom, Expect: 1000},
			} {
				opts.Key = "id"
				said := fmt.Sprintf("%s, %d groups of %d rows, %+v", name, c.groups, c.rows, opts)
				p, err := plan(t, s, []string{"ids"}, opts)
				if err != nil {
					t.Fatalf("%s: %v", said, err)
				}
				if opts.Shard.Of > 0 && c.groups == 1 && len(p.pieces) == 0 {
					continue // the group belongs to the other shard
				}
				_, _, err = p.Build(t.Context())
				tooMany := c.rows > 1<<30 && (errors.Is(err, fault.ErrMemory) || errors.Is(err, fault.ErrUnsupported))
				if !errors.Is(err, fault.ErrCorrupt) && !tooMany {
					t.Errorf("%s: %v", said, err)
				} else if errors.Is(err, fault.ErrCorrupt) && !strings.Contains(err.Error(), "ids: row group") {
					t.Errorf("%s: the place is missing: %v", said, err)
				}
			}
		}
	}
}
