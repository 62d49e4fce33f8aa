package meta

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestAnnotationsAreKept: a footer that is decoded and encoded again has the same
// annotations, byte by byte, including unknown ones.
func TestAnnotationsAreKept(t *testing.T) {
	spherical := []byte{0x0c, 18 << 1, 0x25, 0, 0, 0}     // GEOGRAPHY, with explicit algorithm 0
	unknown := []byte{0x0c, 0xf6, 0x27, 0, 0}             // type 2555, without parameters
	parameters := []byte{0x0c, 0xf6, 0x27, 0x15, 6, 0, 0} // with one parameter
	for _, stored := range [][]byte{spherical, unknown, parameters} {
		for _, id := range []thrift.Null[int32]{{}, thrift.New(int32(7))} {
			m := &Footer{Version: 1, Schema: []Element{
				{Name: "root", NumChildren: thrift.New(int32(2))},
				{Name: "a", Type: thrift.New(format.ByteArray), RepetitionType: thrift.New(format.Optional), FieldID: id,
					annotation: annotation{stored: string(stored)}},
				{Name: "b", Type: thrift.New(format.ByteArray), RepetitionType: thrift.New(format.Required),
					LogicalType: thrift.New(format.LogicalType{Value: &format.StringType{}})},
			}}
			footer, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, _, err := DecodeFooter(footer)
			if err != nil {
				t.Fatalf("%x: %v", stored, err)
			}
			if got := back.Schema[1].annotation.stored; got != string(stored) {
				t.Errorf("annotation %x came back as %x", stored, got)
			}
			if again, err := back.Encode(); err != nil || !bytes.Equal(again, footer) {
				t.Errorf("annotation %x: encoded again, %v, the footer is\n%x, was\n%x", stored, err, again, footer)
			}
			back.Schema[1].LogicalType = thrift.New(format.LogicalType{Value: &format.StringType{}})
			changed, err := back.Encode()
			if err != nil || bytes.Contains(changed, stored) {
				t.Errorf("annotation %x is still there after it was changed, %v", stored, err)
			}
		}
	}
}

// TestAnnotationsOfFiles: the same for files of other writers.
func TestAnnotationsOfFiles(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*.parquet")
	if shared := os.Getenv("BLOOMJOIN_SHARED"); shared != "" && err == nil {
		var more []string
		for _, dir := range []string{"data", "data/geospatial"} {
			if more, err = filepath.Glob(filepath.Join(shared, "corpora/parquet-testing", dir, "*.parquet")); err != nil {
				break
			}
			paths = append(paths, more...)
		}
	}
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	seen := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		end := len(b) - 8
		m, _, err := DecodeFooter(b[end-int(binary.LittleEndian.Uint32(b[end:])) : end])
		if err != nil || string(b[end+4:]) != "PAR1" {
			continue // encrypted, or corrupt
		}
		footer, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		places, err := annotations(footer)
		if err != nil || len(places) != len(m.Schema) {
			t.Fatalf("%s: %d annotations, %v", path, len(places), err)
		}
		for i, p := range places {
			if want := m.Schema[i].annotation.stored; string(footer[p.at:p.end]) != want {
				t.Errorf("%s: %s: annotation %x, want %x", path, m.Schema[i].Name, footer[p.at:p.end], want)
			} else if want != "" {
				seen++
			}
		}
	}
	if seen < 3 {
		t.Errorf("only %d annotations in %d files", seen, len(paths))
	}
}
