package storage

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/internal/process"
)

// A file that is being written has a temporary name beside the final one:
//
//	.NAME.HOST-PID-START-RANDOM.tmp
//
// HOST-PID-START is the writer's [process.ID]. On systems that do not provide one,
// the name is .NAME.RANDOM.tmp, and Sweep leaves it.
const (
	tmpEnding = ".tmp"
	maxName   = 255 // bytes of a file name; all common file systems allow as many
)

// tmpName returns a new temporary name for the file called base. It begins with
// a dot or an underscore, so readers of the directory do not take it for data. The
// random digits begin with tag.
func tmpName(base, tag, ending string) string {
	start := "."
	if ending == stagedEnding {
		start = stagedStart
	}
	tag += fmt.Sprintf("%016x", rand.Uint64())[len(tag):]
	if id, ok := process.This(); ok {
		tag = id.String() + "-" + tag
	}
	return start + stemOf(base) + "." + tag + ending
}

// maxStem leaves room in a name for the longest tag: an ID, 16 random digits,
// and the separators.
const maxStem = maxName - len("..-") - process.MaxLen - 16 - len(stagedEnding)

// stemOf returns the part of a temporary name that identifies the final file: its
// name, or the beginning and a checksum of a name that is too long.
func stemOf(base string) string {
	if len(base) <= maxStem {
		return base
	}
	h := fnv.New64a()
	h.Write([]byte(base))
	cut := maxStem - 17
	for cut > maxStem-21 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return fmt.Sprintf("%s~%016x", base[:cut], h.Sum64())
}

// ownerOf parses a temporary name. ok is false if it is not one, or does not
// identify its writer.
func ownerOf(name string) (stem string, id process.ID, ok bool) {
	rest, dotted := strings.CutPrefix(name, ".")
	rest, tmp := strings.CutSuffix(rest, tmpEnding)
	i := strings.LastIndexByte(rest, '.')
	j := strings.LastIndexByte(rest, '-')
	if !dotted || !tmp || i <= 0 || j < i || len(rest)-j != len("-")+16 {
		return "", id, false
	}
	id, ok = process.Parse(rest[i+1 : j])
	return rest[:i], id, ok
}

// Sweep implements [Sweeper]. It removes the temporary files of processes that
// have ended on this machine. Those of other machines stay, as do those whose
// writer is unknown.
func (local) Sweep(ctx context.Context, name string) error {
	if err := isLocal(name); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				sweep(path, d, "")
			}
			return ctx.Err() // unreadable directories are skipped
		})
	}
	dir, base := filepath.Split(name)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return ctx.Err() // the directory does not exist yet
	}
	for _, d := range entries {
		sweep(filepath.Join(dir, d.Name()), d, stemOf(base))
	}
	return ctx.Err()
}

// sweep removes a temporary file whose process has ended. If stem is not empty,
// the file must be one for the final file of that stem.
func sweep(path string, d fs.DirEntry, stem string) {
	of, id, ok := ownerOf(d.Name())
	if !ok || !d.Type().IsRegular() || stem != "" && of != stem || !id.Gone() {
		return
	}
	_ = os.Remove(path) // a file that stays is not taken for data
}
