package arrowparquet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/bloomjoin/bloomjoin/internal/parquet"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Parquet's annotations go through Arrow as metadata of fields: where Arrow has
// an extension type for one, as its name and parameters; where Arrow has no type
// for it at all, under logicalKey, too, so that it can be written again.

// Keys of a field's metadata. The first three are what other tools use.
const (
	fieldIDKey    = "PARQUET:field_id"
	extensionKey  = "ARROW:extension:name"
	extensionData = "ARROW:extension:metadata"
	logicalKey    = "PARQUET:logical_type"
)

// timeUTC is the name of an annotation as times that are adjusted to UTC.
const timeUTC = "TIME_UTC"

// annotations are the names of those that Arrow has no type for.
var annotations = map[parquet.Kind]string{
	parquet.Enum: "ENUM", parquet.BSON: "BSON", parquet.Interval: "INTERVAL",
	parquet.Geometry: "GEOMETRY", parquet.Geography: "GEOGRAPHY",
	parquet.Variant: "VARIANT", parquet.Unknown: "UNKNOWN",
}

// withParameters are the annotations that say more than their names do. They
// stand under logicalKey as they are stored, in base64 behind the name and a
// colon.
var withParameters = map[string]bool{"GEOMETRY": true, "GEOGRAPHY": true, "VARIANT": true, "UNKNOWN": true}

// extensions are Arrow's names for the annotations that it has extension types
// for.
var extensions = map[parquet.Kind]string{
	parquet.UUID: "arrow.uuid", parquet.JSON: "arrow.json", parquet.Variant: variantName,
	parquet.Geometry: "geoarrow.wkb", parquet.Geography: "geoarrow.wkb",
}

const variantName = "arrow.parquet.variant"

// pairs collects the metadata of a field, in which the first value of a key
// stays.
type pairs struct{ keys, values []string }

func (p *pairs) has(key string) bool {
	for _, k := range p.keys {
		if k == key {
			return true
		}
	}
	return false
}

func (p *pairs) add(key, value string) {
	if !p.has(key) {
		p.keys, p.values = append(p.keys, key), append(p.values, value)
	}
}

func (p *pairs) metadata() arrow.Metadata { return arrow.NewMetadata(p.keys, p.values) }

// fieldMetadata is that of a field of what a node holds: what the stored Arrow
// schema says, the annotation and, if it is wanted, the field id.
func (p *planner) fieldMetadata(n *parquet.Node, o *origin, annotated, withID bool) (arrow.Metadata, error) {
	var out pairs
	if o != nil {
		for i, k := range o.keys {
			if k != fieldIDKey && k != logicalKey {
				out.add(k, o.values[i])
			}
		}
	}
	if annotated {
		if err := p.annotate(&out, n); err != nil {
			return arrow.Metadata{}, err
		}
	}
	if withID && n.FieldID >= 0 {
		out.add(fieldIDKey, strconv.Itoa(int(n.FieldID)))
	}
	return out.metadata(), nil
}

func (p *planner) annotate(out *pairs, n *parquet.Node) error {
	kind := n.Logical.Kind
	if name, ok := extensions[kind]; ok && !out.has(extensionKey) {
		data := ""
		switch t := n.Element.LogicalType.V.Value.(type) {
		case *format.GeometryType:
			data = p.geoArrow(t.CRS, "")
		case *format.GeographyType:
			data = p.geoArrow(t.CRS, strings.ToLower(t.Algorithm.String()))
		}
		out.add(extensionKey, name)
		out.add(extensionData, data)
	}
	name, ok := annotations[kind]
	if kind == parquet.Time && n.Logical.UTC {
		name, ok = timeUTC, true
	}
	if !ok {
		return nil
	}
	if withParameters[name] {
		stored, err := n.Element.Annotation()
		if err != nil {
			return fmt.Errorf("%s: column %s: encoding its annotation: %w", p.f.Name, n.Name, err)
		}
		name += ":" + base64.StdEncoding.EncodeToString(stored)
	}
	out.add(logicalKey, name)
	return nil
}

// geoArrow is the metadata of geoarrow.wkb for a coordinate reference system as
// Parquet has it: "" for longitude and latitude, srid:N, projjson:KEY with the
// system under a key of the file's metadata, or any other text. edges is empty
// for straight ones.
func (p *planner) geoArrow(crs, edges string) string {
	out := struct {
		CRS   any    `json:"crs"`
		Type  string `json:"crs_type,omitempty"`
		Edges string `json:"edges,omitempty"`
	}{CRS: crs, Edges: edges}
	switch srid, isSRID := strings.CutPrefix(crs, "srid:"); {
	case crs == "":
		out.CRS, out.Type = format.GeometryDefaultCRS, "authority_code"
	case isSRID:
		out.CRS, out.Type = srid, "srid"
	case json.Valid([]byte(crs)):
		out.CRS = json.RawMessage(crs)
	}
	if key, ok := strings.CutPrefix(crs, "projjson:"); ok {
		for _, kv := range p.f.Metadata.KeyValueMetadata {
			if kv.Key == key && json.Valid([]byte(kv.Value)) {
				out.CRS, out.Type = json.RawMessage(kv.Value), "projjson"
			}
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "" // not of strings and valid JSON
	}
	return string(b)
}

// annotation returns the name of the annotation that a field is to be written
// with, and the annotation as Parquet stores it, if the field has that.
func annotation(m arrow.Metadata) (name string, stored []byte, err error) {
	name, encoded, ok := strings.Cut(value(m, logicalKey), ":")
	if ok {
		stored, err = base64.StdEncoding.DecodeString(encoded)
	}
	return name, stored, err
}

// annotateGroup gives the group of a struct its annotation, if it has one.
func annotateGroup(e *parquet.SchemaElement, f arrow.Field, dt *arrow.StructType) (why string) {
	name, stored, err := annotation(f.Metadata)
	switch {
	case err == nil && stored != nil:
		err = e.SetAnnotation(stored)
	case name != "":
		return "its annotation " + name
	case isVariant(f, dt):
		e.LogicalType = thrift.New(format.LogicalType{Value: &format.VariantType{SpecificationVersion: 1}})
	}
	if err != nil {
		return "its annotation " + name + ": " + err.Error()
	}
	return ""
}

// isVariant reports whether a struct has the name and the shape of a variant.
func isVariant(f arrow.Field, dt *arrow.StructType) bool {
	name := value(f.Metadata, extensionKey)
	if e, ok := f.Type.(arrow.ExtensionType); ok {
		name = e.ExtensionName()
	}
	if name != variantName && name != "parquet.variant" {
		return false
	}
	m, ok := dt.FieldByName("metadata")
	return ok && !m.Nullable && arrow.IsBaseBinary(storage(m.Type).ID())
}
