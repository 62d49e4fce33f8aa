package output

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/bloomjoin/bloomjoin/codec"
	"github.com/bloomjoin/bloomjoin/dataset"
	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/arraycopy"
	"github.com/bloomjoin/bloomjoin/internal/inputs"
	"github.com/bloomjoin/bloomjoin/internal/keyscan"
	"github.com/bloomjoin/bloomjoin/internal/options"
	"github.com/bloomjoin/bloomjoin/internal/roomtest"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/sourcetest"
	"github.com/bloomjoin/bloomjoin/storage"
)

// oneFile returns a file with the rows 0 to 9 of the column id, and a scanner that passes
// two of them.
func oneFile(t *testing.T) (files []*source.File, s *keyscan.Scanner) {
	t.Helper()
	name := sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), 10, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: sourcetest.Numbers(10, func(i int) int64 { return int64(i) })}))
	files = roomtest.Open(t, source.Opening{}, name)
	s, err := keyscan.New(keyscan.Options{ScanOptions: keyscan.ScanOptions{Match: []dataset.Match{{Filter: (*codec.Filter)(roomtest.ExactOf("id", 3, 5))}}}}, files...)
	if err != nil {
		t.Fatal(err)
	}
	return files, s
}

// none yields no rows.
func none(func(arraycopy.Rows, error) bool) {}

// Each wrong field of an output is an error that names it, in every call that takes the
// output, and nothing is written.
func TestOutputFields(t *testing.T) {
	t.Chdir(t.TempDir())
	files, _ := oneFile(t)
	stdout := new(bytes.Buffer)
	for _, c := range []struct {
		what  string
		out   Destination
		kind  error
		words []string
	}{
		{"zero", Destination{}, nil, []string{"Output.Name is empty", "name a file"}},
		{"no Stdout", Destination{Output: Output{Name: "-"}}, nil, []string{"Output.Stdout is nil", "set Stdout"}},
		{"one ID a line", Destination{Output: Output{Name: "o", Format: dataset.Lines}}, fault.ErrUnsupported, []string{"o: unsupported: writing lines files", "set Output.Format to Parquet, ArrowFile, CSV"}},
		{"no format", Destination{Output: Output{Name: "-", Stdout: stdout, Format: "x"}}, fault.ErrUnsupported, []string{"writing x files"}},
		{"no result", Destination{Output: Output{Name: "o"}, Result: "x"}, nil, []string{`Output.Result "x": want ResultCandidates, ResultExact or ResultFiltered`}},
		{"no IDsChanged", Destination{Output: Output{Name: "o"}, IDsChanged: "x"}, nil, []string{`Output.IDsChanged "x": want IDsRerun or IDsKeep`}},
		{"TargetSize", Destination{Output: Output{Name: "o/", TargetSize: -1}}, nil, []string{"Output.TargetSize: want at least 0 bytes, got -1"}},
		{"Memory", Destination{Output: Output{Name: "o", Memory: -2}}, nil, []string{"Output.Memory: want at least 0 bytes, got -2"}},
		{"worker 5 of 3", Destination{Output: Output{Name: "o/", Shard: dataset.Shard{Index: 5, Of: 3}}}, nil, []string{"Output.Shard: shard 5/3: counted from 0"}},
		{"worker 1 of none", Destination{Output: Output{Name: "o", Shard: dataset.Shard{Index: 1, Of: 0}}}, nil, []string{"Output.Shard: shard 1/0: counted from 0"}},
		{"too many workers", Destination{Output: Output{Name: "o", Shard: dataset.Shard{Index: 1, Of: options.MaxShards + 1}}}, nil, []string{"Output.Shard: shard 1/1048577: counted from 0"}},
		{"a nil file of the log", Destination{Output: Output{Name: "o"}, Run: &Run{Log: []*source.File{files[0], nil}}}, nil, []string{"Run.Log: file 2 of 2: the File is nil"}},
		{"a nil file of IDs", Destination{Output: Output{Name: "o"}, Run: &Run{IDs: []*source.File{nil}}}, nil, []string{"Run.IDs: file 1 of 1: the File is nil"}},
		{"a nil skipped file", Destination{Output: Output{Name: "o"}, Run: &Run{Skipped: []*source.File{nil}}}, nil, []string{"Run.Skipped: file 1 of 1: the File is nil"}},
	} {
		for call, err := range everyCall(t, c.out) {
			sourcetest.Says(t, c.what+", "+call, err, c.kind, c.words...)
		}
	}
	sourcetest.Equal(t, "standard output", stdout.Len(), 0)
	sourcetest.Equal(t, "files", sourcetest.Tree(t, "."), []string(nil))
	for call, err := range map[string]error{"Commit": second(Commit(t.Context(), Destination{}, nil)), "InspectDirectory": second(InspectDirectory(t.Context(), Destination{}, true))} {
		sourcetest.Says(t, call, err, nil, "Output.Name is empty")
	}
	for call, err := range map[string]error{"Commit": second(Commit(t.Context(), Destination{Output: Output{Name: "-"}}, nil)), "InspectDirectory": second(InspectDirectory(t.Context(), Destination{Output: Output{Name: "-"}}, true))} {
		sourcetest.Says(t, call+" of -", err, nil, "Output.Name is -: want a directory")
	}
}

func second[T any](_ T, err error) error { return err }

// everyCall returns the error of each call that takes an output with rows.
func everyCall(t *testing.T, out Destination) map[string]error {
	files, s := oneFile(t)
	parts := []Part{{Piece: source.Piece{File: files[0], Hi: 1}, Schema: files[0].Schema()}}
	return map[string]error{
		"Write":         second(out.Write(t.Context(), parts, none)),
		"WriteScan":     second(out.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)),
		"Pending":       second(out.Pending(t.Context())),
		"PendingInputs": second(out.PendingInputs(t.Context())),
		"CheckSchemas":  out.CheckSchemas(t.Context(), keyscan.Options{}, nil),
	}
}

// A stream on standard output is Arrow, whether the format says so or is empty.
func TestStreamFormats(t *testing.T) {
	for _, format := range []dataset.Format{"", dataset.ArrowFile, dataset.ArrowStream} {
		files, s := oneFile(t)
		var b bytes.Buffer
		w, err := Destination{Output: Output{Name: "-", Stdout: &b, Format: format}}.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
		if err != nil || w.Rows != 2 || !strings.HasPrefix(b.String(), "\xff\xff\xff\xff") {
			t.Errorf("%q: %d rows, %v, %d bytes", format, w.Rows, err, b.Len())
		}
	}
	files, s := oneFile(t)
	out := filepath.Join(t.TempDir(), "out")
	_, err := Destination{Output: Output{Name: out + "/", Format: dataset.ArrowStream}}.WriteScan(t.Context(), s, source.Split(files, dataset.Shard{}), files, nil)
	sourcetest.Says(t, "in a directory", err, fault.ErrUnsupported, "arrow-stream files in a directory", "ArrowFile")
}

// What is given besides the output is checked, too.
func TestOutputArguments(t *testing.T) {
	files, s := oneFile(t)
	schema, pieces := files[0].Schema(), source.Split(files, dataset.Shard{})
	part := []Part{{Piece: pieces[0], Schema: schema}}
	for _, name := range []string{"o.parquet", "o/"} {
		out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "x") + name}}
		for _, c := range []struct {
			what  string
			parts []Part
			rows  iter.Seq2[arraycopy.Rows, error]
			words string
		}{
			{"nil rows", part, nil, "the sequence of rows is nil"},
			{"no schema", []Part{{Piece: pieces[0]}}, none, "part 1 of 1: its Schema is nil"},
			{"a zero file", []Part{part[0], {Piece: source.Piece{File: new(source.File)}, Schema: schema}}, none, "part 2 of 2: its Piece: the File was not opened"},
			{"row groups", []Part{{Piece: source.Piece{File: files[0], Lo: 0, Hi: 9}, Schema: schema}}, none, "row groups from 0 up to 9: want a range within 0 to 1"},
			{"a nil record", part, func(yield func(arraycopy.Rows, error) bool) { yield(arraycopy.Rows{}, nil) }, "Rows.Record is nil"},
			{"a part before the first", part, oneRecord(t, -1), "rows out of order: want a part from 0 to 0, got -1"},
			{"a part after the last", part, oneRecord(t, 1), "rows out of order: want a part from 0 to 0, got 1"},
		} {
			_, err := out.Write(t.Context(), c.parts, c.rows)
			sourcetest.Says(t, c.what+", "+name, err, nil, c.words)
		}
		for _, c := range []struct {
			what   string
			s      *keyscan.Scanner
			pieces []source.Piece
			logs   []*source.File
			words  string
		}{
			{"no scanner", nil, pieces, files, "WriteScan: the Scanner is nil or empty"},
			{"a zero scanner", new(keyscan.Scanner), pieces, files, "WriteScan: the Scanner is nil or empty"},
			{"no log", s, pieces, nil, "logs is empty"},
			{"a nil file", s, pieces, []*source.File{nil}, "logs: file 1 of 1: the File is nil"},
			{"a zero piece", s, []source.Piece{{}}, files, "piece 1 of 1: the File is nil"},
			{"row groups", s, []source.Piece{{File: files[0], Lo: 1, Hi: 0}}, files, "row groups from 1 up to 0: want a range"},
			{"row groups after the last", s, []source.Piece{{File: files[0], Lo: 0, Hi: 99}}, files, "row groups from 0 up to 99: want a range"},
		} {
			_, err := out.WriteScan(t.Context(), c.s, c.pieces, c.logs, nil)
			sourcetest.Says(t, c.what+", "+name, err, nil, c.words)
		}
		for what, words := range map[string]string{"nil": "ScanWriter.Scan: the Scanner is nil", "zero": "ScanWriter.Scan: piece 1 of 1: the File is nil"} {
			_, err := out.WriteScan(t.Context(), s, pieces, files, &Scans{Each: func(w *ScanWriter) error {
				if what == "nil" {
					return w.Scan(t.Context(), nil, nil, pieces)
				}
				return w.Scan(t.Context(), s, nil, []source.Piece{{}})
			}})
			sourcetest.Says(t, "a scan: "+what+", "+name, err, nil, words)
		}
	}
}

// oneRecord yields one record as rows of a part.
func oneRecord(t *testing.T, part int) iter.Seq2[arraycopy.Rows, error] {
	return func(yield func(arraycopy.Rows, error) bool) {
		yield(arraycopy.Rows{Piece: part, Record: sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}})}, nil)
	}
}

// A Run and an Inputs that are zero or nil have no inputs, and what cannot be is an error.
func TestZeroRun(t *testing.T) {
	out := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}}
	files, err := out.Pending(t.Context())
	sourcetest.Equal(t, "Pending without a Run", fmt.Sprint(files, err), "[] <nil>")
	for _, run := range []*Run{nil, {}} {
		out.Run = run
		sourcetest.Says(t, "PendingInputs", second(out.PendingInputs(t.Context())), nil, "Output.Run.List is nil", "call Pending")
		sourcetest.Equal(t, "pieces", run.Pieces(nil, dataset.Shard{}), []source.Piece(nil))
	}
	if sum, known, err := new(Run).Digest(); err != nil || !known || sum == [32]byte{} {
		t.Errorf("Digest: %x, %t, %v", sum, known, err)
	}
	_, _, err = (&Run{Log: []*source.File{nil}}).Digest()
	sourcetest.Says(t, "Digest", err, nil, "Run.Log: file 1 of 1: the File is nil")
	sourcetest.Says(t, "ChangedSince", (&Run{IDs: []*source.File{nil}}).ChangedSince(t.Context(), nil, out.Name), nil, "Run.IDs: file 1 of 1: the File is nil")
	sourcetest.Says(t, "ChangedSince", new(Run).ChangedSince(t.Context(), nil, out.Name), os.ErrNotExist)

	for what, in := range map[string]*inputs.List{"nil": nil, "zero": new(inputs.List)} {
		sourcetest.Equal(t, what, fmt.Sprint(in.Len(), in.Rows(), in.Digest() == [32]byte{}, in.Hive(), in.Arguments(), in.Close()), "0 0 true [] [] <nil>")
		for one, err := range in.Each(t.Context()) {
			t.Errorf("%s: %v, %v", what, one, err)
		}
		pieces, err := in.Share(t.Context(), dataset.Shard{Index: 1, Of: 2})
		sourcetest.Equal(t, what+": Share", fmt.Sprint(pieces, err), "[] <nil>")
		spread, err := in.Spread(t.Context(), 3)
		sourcetest.Equal(t, what+": Spread", fmt.Sprint(spread, err), "[] <nil>")
		schemas, err := in.Schemas(t.Context())
		sourcetest.Equal(t, what+": Schemas", fmt.Sprint(schemas, err), "[] <nil>")
		picked, err := in.Pick(t.Context(), func(*inputs.Input) bool { return true })
		sourcetest.Equal(t, what+": Pick", fmt.Sprint(picked.Len(), err), "0 <nil>")
		kept, err := in.Where("a = 1", false)
		sourcetest.Equal(t, what+": Where", fmt.Sprint(kept.Len(), err), "0 <nil>")
		opened, of, err := in.Open(t.Context(), nil, source.Opening{})
		sourcetest.Equal(t, what+": Open", fmt.Sprint(opened, of, err), "[] [] <nil>")
		sourcetest.Says(t, what+": Share", second(in.Share(t.Context(), dataset.Shard{Index: 5, Of: 3})), nil, "shard 5/3: counted from 0")
		sourcetest.Says(t, what+": Pick", second(in.Pick(t.Context(), nil)), nil, "keep is nil")
		_, _, err = in.Open(t.Context(), []inputs.Piece{{Hi: 1}}, source.Opening{})
		sourcetest.Says(t, what+": Open", err, nil, "piece 1 of 1: row groups from 0 up to 1")
		sourcetest.Says(t, what+": WriteInputs", second(inputs.Write(t.Context(), nil, out.Name, in, false)), nil, "the list of inputs is nil or empty")
		pieces, err = new(Run).ListedPieces(t.Context(), in, dataset.Shard{})
		sourcetest.Equal(t, what+": ListedPieces", fmt.Sprint(pieces, err), "[] <nil>")
		list, err := inputs.Find(t.Context(), []string{sourcetest.Write(t, filepath.Join(t.TempDir(), "a.parquet"), 1, sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{1}}))}, source.Opening{}, in)
		if err != nil || list.Len() != 1 {
			t.Errorf("%s, as the earlier list: %v", what, err)
		}
	}
	sourcetest.Says(t, "no name", second(inputs.Find(t.Context(), []string{""}, source.Opening{}, nil)), nil, "a file with an empty name")
	sourcetest.Says(t, "no list", second(inputs.Read(t.Context(), nil, out.Name)), os.ErrNotExist)
}

// Without a context, a call panics at once, on the goroutine that made it.
func TestNilContext(t *testing.T) {
	var missing context.Context
	files, s := oneFile(t)
	out, in := Destination{Output: Output{Name: filepath.Join(t.TempDir(), "o.parquet")}, Run: new(Run)}, new(inputs.List)
	for what, call := range map[string]func(){
		"Write":            func() { _, _ = out.Write(missing, nil, none) },
		"WriteScan":        func() { _, _ = out.WriteScan(missing, s, source.Split(files, dataset.Shard{}), files, nil) },
		"Pending":          func() { _, _ = out.Pending(missing) },
		"PendingInputs":    func() { _, _ = out.PendingInputs(missing) },
		"CheckSchemas":     func() { _ = out.CheckSchemas(missing, keyscan.Options{}, nil) },
		"Commit":           func() { _, _ = Commit(missing, out, nil) },
		"InspectDirectory": func() { _, _ = InspectDirectory(missing, out, false) },
		"ChangedSince":     func() { _ = new(Run).ChangedSince(missing, storage.Local(), "o") },
		"ListInputs":       func() { _, _ = inputs.Find(missing, []string{files[0].Name()}, source.Opening{}, nil) },
		"ReadInputs":       func() { _, _ = inputs.Read(missing, nil, "o") },
		"WriteInputs":      func() { _, _ = inputs.Write(missing, nil, "o", in, false) },
		"Each":             func() { in.Each(missing) },
		"Share":            func() { _, _ = in.Share(missing, dataset.Shard{}) },
		"Pick":             func() { _, _ = in.Pick(missing, func(*inputs.Input) bool { return true }) },
		"Schemas":          func() { _, _ = in.Schemas(missing) },
		"Spread":           func() { _, _ = in.Spread(missing, 1) },
		"Open":             func() { _, _, _ = in.Open(missing, nil, source.Opening{}) },
	} {
		func() {
			defer func() { sourcetest.Equal(t, what, recover(), any("partition: nil context")) }()
			call()
		}()
	}
}

// What an error leaves of a directory: its complete files, without _SUCCESS, and nothing
// with Hold or of a single file.
func TestLeftByAnError(t *testing.T) {
	for _, out := range []string{"o.parquet", "o/"} {
		dir, in := t.TempDir(), t.TempDir()
		one := func() arrow.Record {
			return sourcetest.Record(t, sourcetest.Checked(t), sourcetest.Col{Name: "id", Values: []int64{3}})
		}
		var names []string
		for _, name := range []string{"a", "b", "c"} {
			names = append(names, sourcetest.Write(t, filepath.Join(in, name+".parquet"), 1, one()))
		}
		files := roomtest.Open(t, source.Opening{}, names...)
		var parts []Part
		for _, p := range source.Split(files, dataset.Shard{}) {
			parts = append(parts, Part{Piece: p, Schema: p.File.Schema()})
		}
		_, err := Destination{Output: Output{Name: dir + "/" + out}}.Write(t.Context(), parts, func(yield func(arraycopy.Rows, error) bool) {
			for i := range 2 {
				if !yield(arraycopy.Rows{Piece: i, Record: one()}, nil) {
					return
				}
			}
			yield(arraycopy.Rows{}, errAborted)
		})
		sourcetest.Says(t, out, err, errAborted)
		var left []string
		for _, name := range sourcetest.Tree(t, dir) {
			if !strings.HasPrefix(name, "o.bloomjoin/") {
				left = append(left, name)
			}
		}
		sourcetest.Equal(t, out, left, nil)
	}
}
