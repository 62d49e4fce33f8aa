package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names. Raise it when command generate changes its
// output.
const dataVersion = 1

// set is a generated ID set.
type set struct {
	kind     string
	rows     uint64
	files    uint64
	distinct uint64 // if it differs from rows
}

// outside is the number of probed keys outside the set.
const outside = 10_000_000

// paths are the paths of a set's data.
type paths struct{ dir string }

func (p paths) ids() string              { return filepath.Join(p.dir, "ids") }
func (p paths) distinct() string         { return filepath.Join(p.dir, "distinct") }
func (p paths) outside(as string) string { return filepath.Join(p.dir, "outside"+as+".parquet") }
func (p paths) members(as string) string { return filepath.Join(p.dir, "members"+as+".parquet") }
func (p paths) text() string             { return filepath.Join(p.dir, "ids", "part-00.txt.gz") }

// name returns a unique name for a set's data. Sets of a kind must have different
// numbers of rows.
func (s set) name(rows uint64) string {
	return fmt.Sprintf("build-%s-%d.v%d", s.kind, rows, dataVersion)
}

// dataset returns the paths of a cell's data. It generates them if necessary, and reads
// them into the page cache.
func (b *bench) dataset(ctx context.Context, c cell) (paths, error) {
	s := c.set
	if s.kind == "" {
		return paths{}, nil
	}
	rows := b.Scaled(s.rows)
	p := paths{filepath.Join(b.Data, s.name(rows))}
	err := race.Make(p.dir, func(begun string) error {
		argv := []string{b.program.generate, "-set", s.kind, "-rows", number(rows), "-files", number(s.files), "-outside", number(b.Scaled(outside))}
		if s.distinct > 0 {
			argv = append(argv, "-distinct", number(b.Scaled(s.distinct)))
		}
		_, err := race.Execute(ctx, race.Step{Argv: append(argv, begun)})
		return err
	})
	if err != nil {
		return p, err
	}
	return p, race.Warm(p.dir)
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// storeOf returns the kind of file system that a directory is on. On a disk, fsync
// is part of every time.
func storeOf(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if s.Type == unix.TMPFS_MAGIC {
		return "to memory (tmpfs)", nil
	}
	return "to a disk, with fsync", nil
}
