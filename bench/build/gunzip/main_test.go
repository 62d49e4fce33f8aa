package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// All members are decompressed, and damage is an error.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.txt.gz")
	var want, packed bytes.Buffer
	for member := range 2 {
		z := gzip.NewWriter(&packed)
		for i := range 50_000 {
			line := []byte{byte('0' + i%10), byte('0' + i/10%10), byte('0' + member), '\n'}
			want.Write(line)
			if _, err := z.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(packed.Bytes())
	var got bytes.Buffer
	if err := run([]string{path}, &got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes, %v, want the %d that were written", got.Len(), err, want.Len())
	}
	write(packed.Bytes()[:packed.Len()-9])
	if err := run([]string{path}, &got); err == nil {
		t.Error("a file that is cut: want an error")
	}
	for _, args := range [][]string{{}, {path, path}, {path + "x"}} {
		if err := run(args, &got); err == nil {
			t.Errorf("%q: want an error", args)
		}
	}
}
