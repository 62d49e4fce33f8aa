package race

import (
	"embed"
	"errors"
	"iter"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Rounds iterates over n rounds, from 0, of all contenders in turn. Each round starts
// with a different one.
func Rounds[C any](n int, contenders []C) iter.Seq2[int, C] {
	return func(yield func(int, C) bool) {
		for round := range n {
			for i := range contenders {
				if !yield(round, contenders[(i+round)%len(contenders)]) {
					return
				}
			}
		}
	}
}

// Within calls a function with an empty directory below parent, which it removes. It
// flushes pending writes to disk before it returns, so that the next process does not
// wait for them.
func Within(parent string, do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp(parent, "bloomjoin-bench-")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(dir))
		unix.Sync()
	}()
	return do(dir)
}

// Script returns an embedded program, python/NAME.py.
func Script(scripts embed.FS, name string) string {
	text, err := scripts.ReadFile("python/" + name + ".py")
	if err != nil {
		panic(err) // embedded when the program was built
	}
	return string(text)
}

// Version returns the version of a requirement such as "duckdb==2.0.0".
func Version(requirement string) string {
	_, version, _ := strings.Cut(requirement, "==")
	return version
}
