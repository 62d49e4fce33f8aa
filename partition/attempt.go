package partition

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
// HOST stands for the machine, its boot and its process namespace, and START is
// when the process began, so that a process ID that is used again, on this
// machine or another one on the same storage, is not taken for the writer. Where
// the system does not say so much, the name is .NAME.RANDOM.tmp, and nobody can
// tell whether its writer lives.
const (
	tmpEnding = ".tmp"
	maxName   = 255 // bytes of a file name that every usual file system takes
)

// owner is the process that writes a temporary file.
type owner struct {
	host  string // 16 hexadecimal digits
	pid   int
	start uint64 // in the system's own unit
}

// tmpName returns a new temporary name for the file of that name.
func tmpName(base string) string {
	tag := fmt.Sprintf("%016x", rand.Uint64())
	if o, ok := thisProcess(); ok {
		tag = fmt.Sprintf("%s-%d-%d-%s", o.host, o.pid, o.start, tag)
	}
	return "." + stemOf(base) + "." + tag + tmpEnding
}

// mostStem leaves room for the longest tag in a name: 16 digits of a host, 10
// of a process, 20 of its start, 16 drawn at random, and what stands between.
const mostStem = maxName - len("..---") - 16 - 10 - 20 - 16 - len(tmpEnding)

// stemOf returns the part of temporary names that says which file is written: its
// name, and of one that is too long its beginning and a checksum.
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

// ownerOf reads a temporary name. ok is false if it is none, or says nothing of
// the process that writes it.
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

// Sweep removes what attempts at writing the object or directory have left whose
// processes are surely gone, where the store can tell.
func Sweep(ctx context.Context, store Store, name string) error {
	if s, ok := store.(interface {
		Sweep(ctx context.Context, name string) error
	}); ok {
		return s.Sweep(ctx, name)
	}
	return nil
}

// Sweep removes the temporary files of earlier attempts at the file, or below
// the directory, whose processes have ended on this machine. Those of other
// machines stay, and whatever is in doubt.
func (Local) Sweep(ctx context.Context, name string) error {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				sweep(path, d, "")
			}
			return ctx.Err() // what cannot be read is left
		})
	}
	dir, base := filepath.Split(name)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return ctx.Err() // there is no such directory yet
	}
	for _, d := range entries {
		sweep(filepath.Join(dir, d.Name()), d, stemOf(base))
	}
	return ctx.Err()
}

// sweep removes a temporary file whose process has ended; stem, if not empty, is
// what it must have been for.
func sweep(path string, d fs.DirEntry, stem string) {
	of, o, ok := ownerOf(d.Name())
	if !ok || !d.Type().IsRegular() || stem != "" && of != stem || !o.gone() {
		return
	}
	_ = os.Remove(path) // else it stays: it is no data to anyone
}
