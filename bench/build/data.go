package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/bloomjoin/bloomjoin/bench/internal/race"
)

// dataVersion is part of the data's names: to be raised when command generate
// makes something else than before.
const dataVersion = 1

// smaller is what -quick divides sizes by.
const smaller = 1000

// set is an ID set that command generate makes.
type set struct {
	kind     string
	rows     uint64
	files    uint64
	distinct uint64 // if not as many as rows
}

// outside is how many keys that are in no set are probed.
const outside = 10_000_000

// scaled returns a number as -quick wants it.
func (b *bench) scaled(n uint64) uint64 {
	if b.quick {
		return n / smaller
	}
	return n
}

// paths of a set's data.
type paths struct{ dir string }

func (p paths) ids() string              { return filepath.Join(p.dir, "ids") }
func (p paths) distinct() string         { return filepath.Join(p.dir, "distinct") }
func (p paths) outside(as string) string { return filepath.Join(p.dir, "outside"+as+".parquet") }
func (p paths) members(as string) string { return filepath.Join(p.dir, "members"+as+".parquet") }
func (p paths) text() string             { return filepath.Join(p.dir, "ids", "part-00.txt.gz") }

// name tells a set's data from all others, as long as no two sets of a kind have
// as many rows.
func (s set) name(rows uint64) string {
	return fmt.Sprintf("build-%s-%d.v%d", s.kind, rows, dataVersion)
}

// dataset returns where a cell's data are, which it makes if need be and reads
// once.
func (b *bench) dataset(ctx context.Context, c cell) (paths, error) {
	s := c.set
	if s.kind == "" {
		return paths{}, nil
	}
	rows := b.scaled(s.rows)
	p := paths{filepath.Join(b.data, s.name(rows))}
	err := race.Make(p.dir, func(begun string) error {
		argv := []string{b.program.generate, "-set", s.kind, "-rows", number(rows), "-files", number(s.files), "-outside", number(b.scaled(outside))}
		if s.distinct > 0 {
			argv = append(argv, "-distinct", number(b.scaled(s.distinct)))
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

// storeOf says what kind of place a directory is in: what is written to a disk
// and made sure of (fsync) takes the time that the disk takes.
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
