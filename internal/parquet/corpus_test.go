package parquet_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
)

// corpus returns the Parquet files of the shared corpora, valid and broken ones.
func corpus(t testing.TB) []string {
	shared := os.Getenv("BLOOMJOIN_SHARED")
	if shared == "" {
		t.Skip("BLOOMJOIN_SHARED is not set: the corpora are not at hand")
	}
	var files []string
	for _, dir := range []string{"corpora/parquet-testing", "corpora/arrow-testing/data/parquet"} {
		err := filepath.WalkDir(filepath.Join(shared, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			switch ext := filepath.Ext(path); {
			case ext == ".parquet", ext == ".encrypted", ext == ".fuzz",
				strings.Contains(path, "fuzzing") && ext != ".md":
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 350 {
		t.Fatalf("only %d Parquet files in the corpora", len(files))
	}
	return files
}

// validate opens a file and validates all of its chunks.
func validate(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := parquet.Open(nil, strings.NewReader(string(b)), int64(len(b)), filepath.Base(path))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for g := range f.RowGroups {
		for l := range f.Leaves {
			if err := measured(ctx, f, g, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestCorpus(t *testing.T) {
	valid, corrupt, unsupported := 0, 0, 0
	for _, path := range corpus(t) {
		name := strings.TrimPrefix(path, os.Getenv("BLOOMJOIN_SHARED")+"/corpora/")
		err := validate(path)
		switch {
		case err == nil:
			valid++
		case errors.Is(err, fault.ErrCorrupt):
			corrupt++
		case errors.Is(err, fault.ErrUnsupported):
			unsupported++
		default:
			t.Errorf("%s: neither corrupt nor unsupported: %v", name, err)
		}
		if err != nil {
			t.Logf("%s: %v", name, err)
		}
	}
	t.Logf("valid %d, corrupt %d, unsupported %d", valid, corrupt, unsupported)
}
