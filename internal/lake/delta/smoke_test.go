package delta

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/lake"
	"github.com/bloomjoin/bloomjoin/storage"
)

func TestSmoke(t *testing.T) {
	var dirs []string
	filepath.WalkDir(os.Getenv("LAKE_TABLES"), func(p string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "_delta_log" {
			dirs = append(dirs, filepath.Dir(p))
		}
		return nil
	})
	sort.Strings(dirs)
	for _, d := range dirs {
		s, err := Open(t.Context(), storage.Local(), lake.Name{Kind: "delta", Location: d}, true)
		if err != nil {
			fmt.Println("ERR ", d, err)
			continue
		}
		n, rows := 0, int64(0)
		err = s.Files(func(f *lake.File) error {
			n++
			if f.Deleted != nil {
				m, err := Rows(t.Context(), storage.Local(), f.Deleted)
				if err != nil {
					return err
				}
				rows += m.Count()
			}
			return nil
		})
		if err != nil {
			fmt.Println("ERRF", d, err)
			continue
		}
		fmt.Println("ok  ", d, "v", s.Table().Version, len(s.Table().Columns), n, rows, s.Table().Mapped)
	}
}
