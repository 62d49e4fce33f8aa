// Package racetest makes programs that stand in for measured ones in tests.
package racetest

import (
	"os"
	"path/filepath"
	"testing"
)

// Program returns the path of a program that runs a shell script.
func Program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
