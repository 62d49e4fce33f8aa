package storage

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A file that is being written has a temporary name beside the final one:
//
//	.NAME.HOST-PID-START-RANDOM.tmp
//
// HOST identifies the machine, its boot and its process namespace, and START is
// when the process began. So another process that gets the same ID later, or on
// another machine with the same storage, is not taken for the writer. On systems
// that do not provide these, the name is .NAME.RANDOM.tmp, and Sweep leaves it.
const (
	tmpEnding = ".tmp"
	maxName   = 255 // bytes of a file name; all common file systems allow as many
)

// owner identifies the process that writes a temporary file.
type owner struct {
	host  string // 16 hexadecimal digits
	pid   int
	start uint64 // in a unit of the system's
}

// tmpName returns a new temporary name for the file called base. It begins with
// a dot, so readers of the directory do not take it for data.
func tmpName(base string) string {
	tag := fmt.Sprintf("%016x", rand.Uint64())
	if o, ok := thisProcess(); ok {
		tag = fmt.Sprintf("%s-%d-%d-%s", o.host, o.pid, o.start, tag)
	}
	return "." + stemOf(base) + "." + tag + tmpEnding
}

// mostStem leaves room in a name for the longest tag: 16 digits of a host, 10 of
// a process, 20 of its start, 16 random ones, and the separators.
const mostStem = maxName - len("..---") - 16 - 10 - 20 - 16 - len(tmpEnding)

// stemOf returns the part of a temporary name that identifies the final file: its
// name, or the beginning and a checksum of a name that is too long.
func stemOf(base string) string {
	if len(base) <= mostStem {
		return base
	}
	h := fnv.New64a()
	h.Write([]byte(base))
	cut := mostStem - 17
	for cut > mostStem-21 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return fmt.Sprintf("%s~%016x", base[:cut], h.Sum64())
}

// ownerOf parses a temporary name. ok is false if it is not one, or does not
// identify its writer.
func ownerOf(name string) (stem string, o owner, ok bool) {
	rest, dotted := strings.CutPrefix(name, ".")
	rest, tmp := strings.CutSuffix(rest, tmpEnding)
	i := strings.LastIndexByte(rest, '.')
	if !dotted || !tmp || i <= 0 {
		return "", o, false
	}
	tag := strings.Split(rest[i+1:], "-")
	if len(tag) != 4 || len(tag[0]) != 16 || len(tag[3]) != 16 {
		return "", o, false
	}
	pid, err1 := strconv.ParseUint(tag[1], 10, 31)
	start, err2 := strconv.ParseUint(tag[2], 10, 64)
	if err1 != nil || err2 != nil || pid == 0 {
		return "", o, false
	}
	return rest[:i], owner{tag[0], int(pid), start}, true
}

// Sweep implements [Sweeper]. It removes the temporary files of processes that
// have ended on this machine. Those of other machines stay, as do those whose
// writer is unknown.
func (Local) Sweep(ctx context.Context, name string) error {
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
	of, o, ok := ownerOf(d.Name())
	if !ok || !d.Type().IsRegular() || stem != "" && of != stem || !o.gone() {
		return
	}
	_ = os.Remove(path) // a file that stays is not taken for data
}
