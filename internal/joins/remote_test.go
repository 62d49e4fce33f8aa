package joins_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/cases"
	"github.com/bloomjoin/bloomjoin/internal/joins"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/teststore"
	"github.com/bloomjoin/bloomjoin/storage"
)

// remoteRow is a row of a log over a network. Values are long enough for pages to
// matter.
type remoteRow struct {
	ID   int64    `parquet:"id"`
	Name string   `parquet:"name,dict,optional"`
	Note string   `parquet:"note,snappy"`
	Tags []string `parquet:"tags,list"`
	Seen *int64   `parquet:"seen,optional"`
}

// remoteLog writes files with page indexes and small pages.
func remoteLog(t *testing.T, dir string, files, rows, groupRows int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%02d.parquet", i)))
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[remoteRow](f, parquet.PageBufferSize(8<<10), parquet.MaxRowsPerRowGroup(int64(groupRows)), parquet.Compression(&parquet.Snappy))
		for r := range rows {
			id := int64(i*rows + r)
			row := remoteRow{ID: id, Name: fmt.Sprint("name", rng.IntN(50)), Note: fmt.Sprintf("%x%x", rng.Uint64(), rng.Uint64())}
			for range rng.IntN(3) {
				row.Tags = append(row.Tags, fmt.Sprint("tag", rng.IntN(1000)))
			}
			if rng.IntN(2) == 0 {
				row.Seen = &id
			}
			if _, err := w.Write([]remoteRow{row}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A join of files over a network announces its reads, and writes the same bytes as for
// local files.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o777); err != nil {
		t.Fatal(err)
	}
	remoteLog(t, filepath.Join(dir, "log"), 3, 20_000, 9_000)
	var few, many bytes.Buffer
	few.WriteString("id,extra\n")
	many.WriteString("id,extra\n")
	for i := range 30 { // close together
		fmt.Fprintf(&few, "%d,e%d\n", 31_000+i, i)
	}
	for i := 0; i < 60_000; i += 97 {
		fmt.Fprintf(&many, "%d,m%d\n", i, i)
		if i%5 == 0 {
			fmt.Fprintf(&many, "%d,again%d\n", i, i)
		}
	}
	write(t, filepath.Join(dir, "few.csv"), few.Bytes())
	write(t, filepath.Join(dir, "many.csv"), many.Bytes())
	// Unless all run: each type by each strategy, with few or many IDs in turn.
	for i, ids := range []string{"few.csv", "many.csv"} {
		for k, typ := range []joins.Type{joins.Semi, joins.Anti, joins.Inner, joins.Left, joins.Right, joins.Full} {
			for s, strategy := range []joins.Strategy{joins.Auto, joins.Reverse, joins.Broadcast, joins.Shuffle} {
				if (i+k+s)%2 != 0 && !cases.All() || s > 0 && k%cases.Count(3, 1, 1) != 0 {
					continue
				}
				t.Run(fmt.Sprint(ids, "/", typ, "/", strategy), func(t *testing.T) {
					run := func(store storage.Storage, memory int64, name string) []byte {
						open := source.Opening{OpenOptions: source.OpenOptions{Store: store, Text: true, Memory: memory}, InFlight: memory / 2}
						all, err := source.Open(t.Context(), []string{filepath.Join(dir, ids)}, open)
						if err != nil {
							t.Fatal(err)
						}
						defer source.Close(all)
						log, err := source.Open(t.Context(), []string{filepath.Join(dir, "log")}, open)
						if err != nil {
							t.Fatal(err)
						}
						defer source.Close(log)
						j, err := joins.New(all, log, joins.Options{On: "id", Type: typ, Strategy: strategy, Memory: memory})
						if err != nil {
							t.Fatal(err)
						}
						out := filepath.Join(t.TempDir(), name)
						if _, err := j.Write(t.Context(), exactly(out), nil); err != nil {
							t.Fatal(err)
						}
						b, err := os.ReadFile(out)
						if err != nil {
							t.Fatal(err)
						}
						return b
					}
					want := run(storage.Local(), 0, "out.parquet")
					for _, memory := range []int64{0, 64 << 20}[cases.Count(1, 0, 0):] {
						remote := &teststore.Remote{T: t, Storage: storage.Local(), At: 4}
						if got := run(remote, memory, "out.parquet"); !bytes.Equal(got, want) {
							t.Errorf("memory %d: other bytes than from local files", memory)
						}
						c := remote.Counts()
						t.Logf("memory %d: %+v", memory, c)
						if c.Kept != 0 {
							t.Errorf("memory %d: %d announcements were not released", memory, c.Kept)
						}
						if c.Unannounced > c.Read/50 {
							t.Errorf("memory %d: %d of %d bytes were read without an announcement", memory, c.Unannounced, c.Read)
						}
					}
				})
			}
		}
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}
