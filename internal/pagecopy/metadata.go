package pagecopy

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/source"
	"github.com/bloomjoin/bloomjoin/internal/tables"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// OwnKeys are the metadata keys in which an output says what it is.
var OwnKeys = []string{source.MetaResult, source.MetaFilter, source.MetaRun, source.MetaHive}

// KeptMetadata returns the entries of a file's metadata that hold for an output.
// columns are the top-level columns of the file that the output has; nil: its columns
// are exactly the file's. Entries about values, such as the calendar of Spark's dates,
// always hold.
func KeptMetadata(entries []meta.KeyValue, columns map[string]bool) (kept []meta.KeyValue) {
	for _, e := range entries {
		switch {
		case slices.Contains(OwnKeys, e.Key): // the input is itself an output
			continue
		case columns != nil && slices.Contains(take.Describing, e.Key):
			continue
		case columns != nil && e.Key == geoKey:
			var ok bool
			if e.Value, ok = geoColumns(e.Value, columns); !ok {
				continue
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// geoKey is the metadata key of GeoParquet.
const geoKey = "geo"

// geoColumns returns GeoParquet's metadata about the columns that an output has. ok is
// false if the output does not have the primary column, which GeoParquet requires.
func geoColumns(value string, has map[string]bool) (_ string, ok bool) {
	var all, columns map[string]json.RawMessage
	var primary string
	if json.Unmarshal([]byte(value), &all) != nil || json.Unmarshal(all["columns"], &columns) != nil ||
		json.Unmarshal(all["primary_column"], &primary) != nil || !has[primary] {
		return "", false
	}
	n := len(columns)
	for name := range columns {
		if !has[name] {
			delete(columns, name)
		}
	}
	if len(columns) == n {
		return value, true
	}
	var err error
	if all["columns"], err = json.Marshal(columns); err != nil {
		return "", false
	}
	b, err := json.Marshal(all)
	return string(b), err == nil
}

// TopLevel returns the names of a schema's top-level columns.
func TopLevel(schema []meta.Element) map[string]bool {
	names := map[string]bool{}
	for _, s := range tables.SpansOf(schema) {
		names[schema[s.Element].Name] = true
	}
	return names
}

// crsEntry begins a coordinate reference system that is an entry of the file's metadata.
const crsEntry = "projjson:"

// keepSystems keeps the coordinate reference systems of the table's columns that are
// entries of its files' metadata. One whose name has another meaning in the log gets a
// new name.
func (a *pairPlan) keepSystems() {
	for _, i := range a.ofIDs {
		e := &a.Schema[i]
		name, ok := strings.CutPrefix(CrsOf(e), crsEntry)
		value, found := a.p.Of.Metadata(name)
		if !ok || !found {
			continue
		}
		to := name
		for {
			at := slices.IndexFunc(a.Kept, func(o meta.KeyValue) bool { return o.Key == to })
			if at < 0 {
				a.Kept = append(a.Kept, meta.KeyValue{Key: to, Value: value})
			}
			if at < 0 || a.Kept[at].Value == value {
				break
			}
			to += "_ids"
		}
		if to != name {
			setCRS(e, crsEntry+to)
		}
	}
}

// CrsOf returns the coordinate reference system of a column of shapes, else "".
func CrsOf(e *meta.Element) string {
	switch t := e.LogicalType.V.Value.(type) {
	case *format.GeometryType:
		return t.CRS
	case *format.GeographyType:
		return t.CRS
	}
	return ""
}

func setCRS(e *meta.Element, crs string) {
	var v format.LogicalTypeValue = &format.GeometryType{CRS: crs}
	if t, ok := e.LogicalType.V.Value.(*format.GeographyType); ok {
		v = &format.GeographyType{CRS: crs, Algorithm: t.Algorithm}
	}
	e.LogicalType = thrift.New(format.LogicalType{Value: v})
}
