package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/generic"
)

// beside is what a process may take beside its budget, in bytes: the program,
// a page or a record batch for each worker.
const beside = 96 << 20

// runWatched runs the command and returns the most bytes that it had resident,
// as far as the system tells while it runs. (What it tells at the end counts the
// memory of the process that started it.)
func runWatched(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-time.After(time.Millisecond):
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok && strings.HasPrefix(string(status), "Name:\tbloomjoin") {
				var kib int64
				if _, err := fmt.Sscan(after, &kib); err == nil {
					peak = max(peak, kib<<10)
				}
			}
		}
	}
}

// A budget is held, whatever the IDs are in: one record batch, row groups, lines
// that tell their number at the end alone. One that is too small is an error.
func TestMemoryBudgetOfBuild(t *testing.T) {
	const n = 4_000_000 // 32 MB of integers: several copies of them would be seen
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range uint64(n) {
		b.Append(int64(i * 0x9e3779b97f4a7c15))
	}
	column := b.NewArray()
	defer column.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "id", Type: column.DataType()}}, nil), []arrow.Array{column}, n)
	defer rec.Release()
	dir := t.TempDir()
	var inputs []string
	for name, write := range map[string]func(w io.Writer) error{
		"ids.arrow": func(w io.Writer) error {
			out, err := arrowipc.NewFileWriter(w, rec.Schema(), arrowipc.WriterOptions{})
			if err != nil {
				return err
			}
			written := out.Write(rec)
			_, _, err = out.Close()
			return errors.Join(written, err)
		},
		"ids.parquet": func(w io.Writer) error {
			out, err := generic.NewParquetWriter(w, rec.Schema(), generic.WriterOptions{RowGroupRows: n})
			if err != nil {
				return err
			}
			written := out.Write(rec)
			_, _, err = out.Close()
			return errors.Join(written, err)
		},
		"ids.txt": func(w io.Writer) error {
			lines := bufio.NewWriter(w)
			for i := range uint64(n) {
				fmt.Fprintln(lines, int64(i*0x9e3779b97f4a7c15))
			}
			return lines.Flush()
		},
	} {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, path)
	}
	for _, input := range inputs {
		for _, budget := range []int64{16 << 20, 32 << 20, 128 << 20} {
			args := []string{
				"build", "--quiet", "--json", "--key", "id", "--key-type", "int64", "--fpr", "0.01",
				"--memory", fmt.Sprint(budget), "--threads", "4", "-o", filepath.Join(t.TempDir(), "ids.bjf"), input,
			}
			if filepath.Ext(input) != ".txt" {
				args = slices.Delete(args, 5, 7)
			}
			cmd := exec.Command("bloomjoin", args...)
			var out, said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			peak, err := runWatched(cmd)
			name := fmt.Sprintf("%s in %d MiB", filepath.Base(input), budget>>20)
			t.Logf("%s: %d MiB, exit code %d", name, peak>>20, cmd.ProcessState.ExitCode())
			if !raceEnabled && peak > budget+beside || peak == 0 && runtime.GOOS == "linux" {
				t.Errorf("%s: a peak of %d MiB", name, peak>>20)
			}
			var r struct{ Keys int }
			switch {
			case err != nil && budget == 16<<20 && strings.Contains(said.String(), "over the memory budget"):
			case err != nil || json.Unmarshal(out.Bytes(), &r) != nil || r.Keys != n:
				t.Errorf("%s: %d keys, %v: %s", name, r.Keys, err, &said)
			}
		}
	}
}
