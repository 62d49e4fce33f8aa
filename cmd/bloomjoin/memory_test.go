package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	pq "github.com/parquet-go/parquet-go"

	"github.com/bloomjoin/bloomjoin/internal/arrowipc"
	"github.com/bloomjoin/bloomjoin/internal/arrowparquet"
	"github.com/bloomjoin/bloomjoin/internal/cases"
)

// beside is the memory in bytes that a process may take on top of its budget: for
// the program, and a page or record batch per worker.
const beside = 96 << 20

// statusBytes returns a size from /proc/PID/status, in bytes.
func statusBytes(status, field string) int64 {
	_, after, _ := strings.Cut(status, field)
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0
	}
	return kib << 10
}

// runWatched runs the command and returns its peak of anonymous and shared memory
// in bytes, polled while it runs. (The peak that the system reports at the end
// includes the parent process's memory before exec.)
func runWatched(cmd *exec.Cmd) (peak int64, err error) {
	asUsual(cmd)
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
			if strings.HasPrefix(string(status), "Name:\tbloomjoin") {
				peak = max(peak, statusBytes(string(status), "RssAnon:")+statusBytes(string(status), "RssShmem:"))
			}
		}
	}
}

// A build keeps its budget for IDs in one record batch, in row groups, and in lines
// whose number is known only at the end. A budget that is too small is an error.
func TestMemoryBudgetOfBuild(t *testing.T) {
	n := int64(4_000_000) // 32 MB of integers: several copies would show
	if cases.Race {       // no limit of memory is checked
		n /= 8
	}
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
			out, err := arrowparquet.NewParquetWriter(w, rec.Schema(), arrowparquet.WriterOptions{RowGroupRows: n})
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
				_, _ = lines.Write(append(strconv.AppendInt(lines.AvailableBuffer(), int64(i*0x9e3779b97f4a7c15), 10), '\n'))
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
	slices.Sort(inputs)
	for i, input := range inputs {
		for k, budget := range []int64{16 << 20, 32 << 20, 128 << 20} {
			if i+k == 2 && !cases.All() { // each budget with two inputs
				continue
			}
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
			if !cases.Race && peak > budget+beside || peak == 0 && runtime.GOOS == "linux" {
				t.Errorf("%s: a peak of %d MiB", name, peak>>20)
			}
			var r struct{ Keys int }
			switch {
			case err != nil && budget == 16<<20 && strings.Contains(said.String(), "over the memory budget"):
			case err != nil || json.Unmarshal(out.Bytes(), &r) != nil || int64(r.Keys) != n:
				t.Errorf("%s: %d keys, %v: %s", name, r.Keys, err, &said)
			}
		}
	}
}

// Scans and joins that build records keep the budget with any number of workers,
// although row groups of the log take some 30 MiB per worker.
func TestMemoryBudgetOfWorkers(t *testing.T) {
	if cases.Race || testing.Short() || runtime.GOOS != "linux" {
		t.Skip("memory is measured on Linux, without the race detector")
	}
	const (
		budget, rows, group = 128 << 20, 288_000, 24_000
		texts               = 6
	)
	dir := t.TempDir()
	table := func(name string, rows, texts int, id func(i int) int64) string {
		fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
		for c := range texts {
			fields = append(fields, arrow.Field{Name: fmt.Sprint("text", c), Type: arrow.BinaryTypes.String})
		}
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		out, err := arrowparquet.NewParquetWriter(f, arrow.NewSchema(fields, nil), arrowparquet.WriterOptions{RowGroupRows: group})
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for from := 0; from < rows; from += group {
			b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
			for i := from; i < min(from+group, rows); i++ {
				b.Field(0).(*array.Int64Builder).Append(id(i))
				for c := range texts {
					x := uint64(i*texts+c+1) * 0x9e3779b97f4a7c15
					text = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(text[:0], x), x*x), x*x*x)
					b.Field(1 + c).(*array.StringBuilder).Append(hex.EncodeToString(text))
				}
			}
			rec := b.NewRecord()
			if err := out.Write(rec); err != nil {
				t.Fatal(err)
			}
			rec.Release()
			b.Release()
		}
		_, _, err = out.Close()
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := table("log.parquet", rows, texts, func(i int) int64 { return int64(i) })
	ids := table("ids.parquet", rows/10, 1, func(i int) int64 { return int64(i) * 20 })
	filter := filepath.Join(dir, "ids.bjf")
	if said, err := exec.Command("bloomjoin", "build", "--key", "id", "--kind", "bloom", "-o", filter, ids).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for name, args := range map[string][]string{
		"scan":          {"scan", "--filter", filter},
		"full, lookup":  {"join", "--ids", ids, "--on", "id", "--type", "full", "--strategy", "lookup"},
		"full, shuffle": {"join", "--ids", ids, "--on", "id", "--type", "full", "--strategy", "shuffle"},
	} {
		out := filepath.Join(t.TempDir(), "out.parquet")
		cmd := exec.Command("bloomjoin", append(args, "--quiet", "--threads", "16", "--memory", fmt.Sprint(budget), "-o", out, log)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		peak, err := runWatched(cmd)
		t.Logf("%s: %d MiB", name, peak>>20)
		if err != nil || peak == 0 || peak > budget+budget*15/100 {
			t.Errorf("%s: a peak of %d MiB in %d, %v: %s", name, peak>>20, budget>>20, err, &said)
		}
	}
}

// Large pages share the budget, including those of composite keys, which many
// workers read while other pages are copied.
func TestMemoryBudgetOfLargePages(t *testing.T) {
	if cases.Race || testing.Short() || runtime.GOOS != "linux" {
		t.Skip("memory is measured on Linux, without the race detector")
	}
	const (
		budget, groups, each = 192 << 20, 8, 20_000
		wide                 = 1000 // bytes: 20 MB in a page
	)
	type row struct {
		A string `parquet:"a,plain"`
		B string `parquet:"b,plain"`
	}
	dir := t.TempDir()
	table := func(name string, rows, every int) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := pq.NewGenericWriter[row](f, pq.PageBufferSize(64<<20), pq.MaxRowsPerRowGroup(each), pq.Compression(&pq.Zstd))
		long := strings.Repeat("x", wide)
		for i := range rows {
			_, err = w.Write([]row{{long + strconv.Itoa(i*every), long + strconv.Itoa(i*every%7)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log, ids := table("log.parquet", groups*each, 1), table("ids.parquet", 100, 1000)
	cmd := exec.Command("bloomjoin", "join", "--json", "--quiet", "--ids", ids, "--on", "a,b", "--threads", "16",
		"--memory", fmt.Sprint(budget), "-o", filepath.Join(dir, "out.parquet"), log)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	peak, err := runWatched(cmd)
	t.Logf("%d MiB", peak>>20)
	var r struct {
		Rows int `json:"rows_out"`
	}
	if err != nil || json.Unmarshal(out.Bytes(), &r) != nil || r.Rows != 100 || peak == 0 || peak > budget+budget*15/100 {
		t.Errorf("a peak of %d MiB in %d, %d rows, %v: %s", peak>>20, budget>>20, r.Rows, err, &said)
	}
}

// Outputs of many columns keep the budget: each column has a page and a dictionary until
// its row group ends.
func TestMemoryBudgetOfManyColumns(t *testing.T) {
	if cases.Race || testing.Short() || runtime.GOOS != "linux" {
		t.Skip("memory is measured on Linux, without the race detector")
	}
	const budget, columns, group, groups = 80 << 20, 1500, 12_000, 2
	dir := t.TempDir()
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	for c := range columns {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", c), Type: arrow.PrimitiveTypes.Int64})
	}
	log := filepath.Join(dir, "log.parquet")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema(fields, nil)
	out, err := arrowparquet.NewParquetWriter(f, schema, arrowparquet.WriterOptions{RowGroupRows: group})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for g := range groups {
		for c := range fields {
			column := b.Field(c).(*array.Int64Builder)
			for i := range uint64(group) {
				v := i + uint64(g*group)
				if c > 0 {
					v = v%5000*0x9e3779b97f4a7c15 + uint64(c) // often enough for a dictionary
				}
				column.Append(int64(v))
			}
		}
		rec := b.NewRecord()
		err := out.Write(rec)
		rec.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = out.Close()
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	// A row group that loses few rows would be copied in another way.
	ids := putInts(t, filepath.Join(dir, "ids.parquet"), func() (int64, bool) { n += 4; return n, n < groups*group })
	// The garbage collector is late on a busy machine: the least of a few peaks is the program's.
	for attempt := 1; ; attempt++ {
		cmd := exec.Command("bloomjoin", "join", "--quiet", "--ids", ids, "--on", "id=k", "--type", "anti", "--force",
			"--memory", fmt.Sprint(budget), "-o", filepath.Join(dir, "out.parquet"), log)
		var said bytes.Buffer
		cmd.Stderr = &said
		peak, err := runWatched(cmd)
		t.Logf("%d MiB", peak>>20)
		switch {
		case err != nil || peak == 0:
			t.Fatalf("%v: %s", err, &said)
		case peak <= budget+budget*15/100:
			return
		case attempt == 4:
			t.Fatalf("a peak of %d MiB in %d", peak>>20, budget>>20)
		}
	}
}
