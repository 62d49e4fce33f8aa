package iceberg

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/lake"
)

// added is the part of a data file, as manifests have it, that its table does not decide. Columns have
// names, dotted in structs, in place of ids: the table gives those.
type added struct {
	Path      string            `json:"file_path"` // below the table's directory
	Partition map[string]any    `json:"partition"`
	Rows      int64             `json:"record_count"`
	Size      int64             `json:"file_size_in_bytes"`
	Values    map[string]int64  `json:"value_counts"`
	Nulls     map[string]int64  `json:"null_value_counts"`
	Least     map[string]string `json:"lower_bounds"` // in hexadecimal
	Most      map[string]string `json:"upper_bounds"`
	Splits    []int64           `json:"split_offsets"`
	IDs       map[string]int32  `json:"field_ids,omitempty"`
}

// Add returns a file as a line of JSON.
func Add(f *lake.Added) ([]byte, error) {
	a := added{
		f.Name, map[string]any{}, f.Metadata.NumRows, f.Size, map[string]int64{}, map[string]int64{},
		map[string]string{}, map[string]string{}, f.Starts(), map[string]int32{},
	}
	for _, p := range f.Parts {
		a.Partition[p.Name] = p.JSON
	}
	for _, s := range lake.StatsOf(f.File) {
		name := strings.Join(s.Path, ".")
		if s.ID >= 0 {
			a.IDs[name] = s.ID
		}
		if s.Nulls >= 0 {
			a.Values[name], a.Nulls[name] = a.Rows, s.Nulls
		}
		// The column of nanoseconds may be one of microseconds, and readers have compared UUIDs as signed.
		if s.Least != nil && s.Most != nil && s.Type != "" && s.Type != "uuid" && !strings.HasSuffix(s.Type, "_ns") {
			a.Least[name], a.Most[name] = hex.EncodeToString(s.Least), hex.EncodeToString(s.Most)
		}
	}
	return json.Marshal(a)
}
