package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bloomjoin/bloomjoin/bench/internal/keyset"
	"github.com/bloomjoin/bloomjoin/internal/bloom"
)

func filterSpeed() *Table {
	return &Table{Name: "filters", Title: "Filters in memory", Grid: micro{".", "./micro", "^(BenchmarkAdd|BenchmarkProbe)$", "", "ns/key"}.grid,
		Text: "Nanoseconds to add and to probe an integer, hashing included, in filters of ten bits a key; half of the probes hit. From [micro](micro)."}
}

func setSpeed() *Table {
	return &Table{Name: "sets", Title: "Exact sets in memory", Grid: micro{".", "./micro", "^BenchmarkSet$", "", "ns/key"}.grid,
		Text: "Nanoseconds to add and to probe an integer, in sets of a million, one in 4 or 64 of a range, in random order. From [micro](micro)."}
}

func fileSpeed() *Table {
	return &Table{Name: "files", Title: "Filter files", Text: "MB of filter bits a second, of filters of 128 MiB, by the share of bits that are set: written, read, and merged into another. From [internal/filters](../internal/filters).",
		Grid: micro{"..", "./internal/filters", "^(BenchmarkEncode|BenchmarkDecode|BenchmarkOrInto)$/^fill=/^(to=discard|files=1)$", "^BenchmarkDecode$/^fill=half$", "MB/s"}.grid}
}

func snappySpeed() *Table {
	return &Table{Name: "snappy", Title: "Pages of Snappy", Text: "MB of output a second, of pages of 1 MiB, by column: decompressed by [internal/snappy](../internal/snappy) and by s2. Those of `far` are compressed with offsets above 64 KiB, the others without.",
		Grid: micro{"..", "./internal/snappy", "^BenchmarkDecode$", "", "MB/s"}.grid}
}

// micro are benchmarks of a package in a module, and the figure that is shown. Quick runs
// may be of fewer.
type micro struct{ module, pkg, pattern, quick, unit string }

// grid returns the medians of several runs.
func (m micro) grid(h *Harness) (Grid, error) {
	more := []string{"-count", "3"}
	if h.quick {
		more = []string{"-benchtime", "1x", "-short"}
		if m.quick != "" {
			m.pattern = m.quick
		}
	}
	argv := append([]string{"go", "test", "-C", m.module, "-run", "^$", "-bench", m.pattern}, more...)
	_, out, err := Command{Argv: append(argv, m.pkg)}.Execute(h.ctx)
	if err != nil {
		return Grid{}, err
	}
	return benchmarks(out, m.unit)
}

// benchmarkLine is a line of go test: a name, the number of processors, and figures.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// benchmarks returns the medians of a unit in the output of go test. The part filter= of a
// name is the row, and the others the column; without it there is one column.
func benchmarks(output []byte, unit string) (g Grid, err error) {
	var rows, columns []string
	figures := map[[2]string]Samples{}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		m := benchmarkLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		fields := strings.Fields(m[2])
		i := slices.Index(fields, unit)
		if i < 1 {
			return g, fmt.Errorf("no %s in %q", unit, lines.Text())
		}
		v, err := strconv.ParseFloat(fields[i-1], 64)
		if err != nil {
			return g, err
		}
		column, row, ok := strings.Cut(m[1], "/filter=")
		if !ok {
			row, column = column, "median"
		}
		column = strings.ReplaceAll(strings.ReplaceAll(column, "/", ", "), "=", " ")
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		if !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
		at := [2]string{row, column}
		figures[at] = append(figures[at], v)
	}
	if len(rows) == 0 {
		return g, fmt.Errorf("no benchmark in %q", tail(string(output), 5))
	}
	g.Head = append([]string{unit}, columns...)
	for _, row := range rows {
		cells := []string{row}
		for _, column := range columns {
			cells = append(cells, significant(figures[[2]string{row, column}].Median()))
		}
		g.Row(cells...)
	}
	return g, nil
}

// significant renders a figure with two digits or more.
func significant(v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func falsePositives() *Table {
	return &Table{Name: "fpr", Title: "False positives", Grid: falsePositiveGrid,
		Text: "Rates of filters of a million consecutive integers: by the formula that sizes them, by the bits that are set, and measured with other integers. The last must be within the binomial bound of the one before, at 99.9 %."}
}

// falsePositiveGrid measures rates. It fails if one is implausible.
func falsePositiveGrid(h *Harness) (Grid, error) {
	keys, probes := uint64(million), uint64(50*million)
	if h.quick {
		keys, probes = 20_000, million
	}
	g := Grid{Head: []string{"geometry, asked", "bits/key", "by the formula", "by the bits", "measured", "found"}}
	for _, geometry := range bloom.Geometries() {
		for _, p := range []float64{0.1, 0.01, 0.001, 0.0001} {
			f, err := bloom.New(bloom.Params{Geometry: geometry, Hash: bloom.Hash{ID: bloom.XXH3}, Blocks: geometry.BlocksFor(keys, p)})
			if err != nil {
				return g, err
			}
			keyset.Sequence(0, keys, keyset.Into(f))
			found := outside(f, probes)
			bits := float64(8*f.Params().Bytes()) / float64(keys)
			name := fmt.Sprintf("%s, %g", geometry, p)
			if !Plausible(found, probes, f.FPR()) {
				return g, fmt.Errorf("%s: %d of %d other keys are found, want %g of them", name, found, probes, f.FPR())
			}
			g.Row(name, fmt.Sprintf("%.2f", bits), fmt.Sprintf("%.4g", geometry.FPR(f.Params().Blocks, keys)),
				fmt.Sprintf("%.4g", f.FPR()), fmt.Sprintf("%.4g", float64(found)/float64(probes)), fmt.Sprintf("%d of %s", found, count(probes)))
		}
	}
	return g, nil
}

// outside asks a filter for integers that it does not hold, and returns how many it finds.
func outside(f *bloom.Filter, probes uint64) (found uint64) {
	const first, parts = 1 << 62, 2
	var all sync.WaitGroup
	var hits [parts]uint64
	for i := range uint64(parts) {
		all.Go(func() {
			sel := make([]uint32, 0, keyset.Batch+1)
			keyset.Sequence(first+probes*i/parts, first+probes*(i+1)/parts, func(keys []uint64) { hits[i] += uint64(len(f.ProbeInts(keys, sel))) })
		})
	}
	all.Wait()
	return hits[0] + hits[1]
}

func sizes() *Table {
	return &Table{Name: "sizes", Title: "Size of a filter", Grid: sizeGrid,
		Text: "Bytes a key of a Bloom filter of 100 million keys, computed, beside the least that any filter of that rate takes, log2(1/p) bits."}
}

func sizeGrid(*Harness) (Grid, error) {
	const n = 1e8
	g := Grid{Head: []string{"false positives", "least"}}
	for _, geometry := range bloom.Geometries() {
		g.Head = append(g.Head, geometry.String(), "/ least")
	}
	for _, p := range []float64{1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6} {
		least := -math.Log2(p) / 8
		cells := []string{percent(p), fmt.Sprintf("%.3f", least)}
		for _, geometry := range bloom.Geometries() {
			bytes := float64(geometry.BlocksFor(n, p)*geometry.BlockBytes()) / n
			cells = append(cells, fmt.Sprintf("%.3f", bytes), fmt.Sprintf("%.2f", bytes/least))
		}
		g.Row(cells...)
	}
	return g, nil
}
