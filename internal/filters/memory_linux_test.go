//go:build !race

package filters

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

// Every operation needs the memory of one filter plus at most 64 MiB, including the
// program. Each case is a process of its own, which reports its peak memory.
func TestPeakMemory(t *testing.T) {
	if op := os.Getenv("BLOOMJOIN_PEAK"); op != "" {
		peakChild(t, op, os.Getenv("BLOOMJOIN_PEAK_FILE"))
		return
	}
	if testing.Short() {
		t.Skip("writes files of 32 MiB")
	}
	const filterBytes = 32 << 20
	for _, c := range []struct {
		benchCase
		ops []string
	}{
		{benchCase{halfFull, Options{}}, []string{"decode", "merge", "encode"}},
		{benchCase{sparse, Options{}}, []string{"decode", "merge", "encode"}},
		{benchCase{halfFull, Options{Uncompressed: true}}, []string{"map"}},
	} {
		f := bloomFilter(t, 1, nil)
		f.SetBloom(c.fill.bits(t, peakParams(filterBytes)))
		file := benchFile(t, f, c.opts)
		for _, op := range c.ops {
			cmd := exec.Command(os.Args[0], "-test.run=^TestPeakMemory$")
			cmd.Env = append(os.Environ(), "BLOOMJOIN_PEAK="+op, "BLOOMJOIN_PEAK_FILE="+file.Name())
			out, err := cmd.CombinedOutput()
			m := regexp.MustCompile(`peak (\d+) kB`).FindSubmatch(out)
			if err != nil || m == nil {
				t.Fatalf("%s %s: %v\n%s", op, c, err, out)
			}
			kib, err := strconv.Atoi(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %d MiB beside the filter", op, c, (kib-filterBytes>>10)>>10)
			if kib > (filterBytes+64<<20)>>10 {
				t.Errorf("%s %s: %d KiB, want at most the %d of the filter and 65536", op, c, kib, filterBytes>>10)
			}
		}
	}
}

func peakParams(n uint64) bloom.Params {
	return bloom.Params{Geometry: bloom.Split512, Hash: xxh3Hash, Blocks: n / 64}
}

// peakChild performs one operation on the file and reports its peak memory.
func peakChild(t *testing.T, op, name string) {
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := benchHeader(t, file)
	switch op {
	case "decode":
		f, err := h.Load(Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer runtime.KeepAlive(f)
	case "merge":
		b, err := bloom.New(h.Filter.facts.Params)
		if err != nil {
			t.Fatal(err)
		}
		files := make([]*Header, 16)
		for i := range files {
			files[i] = benchHeader(t, file)
		}
		if err := OrInto(t.Context(), b, files...); err != nil {
			t.Fatal(err)
		}
	case "encode":
		fill := sparse
		if h.StoredBytes == h.PayloadBytes {
			fill = halfFull
		}
		f := bloomFilter(t, 1, nil)
		f.SetBloom(fill.bits(t, h.Filter.facts.Params))
		if _, err := Encode(io.Discard, f, Options{Uncompressed: h.Contiguous}); err != nil {
			t.Fatal(err)
		}
	case "map":
		m, err := syscall.Mmap(int(file.Fd()), 0, int(h.FileBytes), syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.LoadMapped(m, func() error { return syscall.Munmap(m) })
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		t.Fatal("no VmHWM")
	}
	fmt.Printf("peak %s kB\n", peak[1])
}
