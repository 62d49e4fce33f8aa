package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rustDir is the source of the program that measures the Rust filters.
const rustDir = "filters/rust"

// errNoCargo reports that Rust is not installed.
var errNoCargo = errors.New("cargo is not installed")

// buildRust builds that program into dir, optimised for this processor.
func buildRust(dir string) (string, error) {
	if _, err := exec.LookPath("cargo"); err != nil {
		return "", errNoCargo
	}
	cmd := exec.Command("cargo", "build", "--quiet", "--release", "--locked",
		"--manifest-path", filepath.Join(rustDir, "Cargo.toml"), "--target-dir", dir)
	cmd.Env = append(os.Environ(), "RUSTFLAGS=-C target-cpu=native")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", rustDir, err)
	}
	return filepath.Join(dir, "release", "rivals"), nil
}

// crateVersion returns the version of a crate in Cargo.lock.
func crateVersion(name string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(rustDir, "Cargo.lock"))
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(lock), fmt.Sprintf("name = %q\nversion = \"", name))
	if !ok {
		return "", fmt.Errorf("crate %s is not in Cargo.lock", name)
	}
	version, _, _ := strings.Cut(rest, `"`)
	return version, nil
}

// buildSpeed builds the program that measures Go filters into dir, with the given
// build tags.
func buildSpeed(dir, tags string) (string, error) {
	out := filepath.Join(dir, "speed-"+tags)
	cmd := exec.Command("go", "build", "-tags", tags, "-o", out, "./filters/speed")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build ./filters/speed, in the directory bench: %w", err)
	}
	return out, nil
}
