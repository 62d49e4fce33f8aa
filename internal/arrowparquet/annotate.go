package arrowparquet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bloomjoin/bloomjoin/internal/parquet/meta"
	"github.com/bloomjoin/bloomjoin/internal/take"
)

// Parquet annotations are represented in Arrow as field metadata. An annotation for
// which Arrow has an extension type is stored as the extension's name and
// parameters. One for which Arrow has no type is also stored under logicalKey, so
// that it can be written again.

// Keys of a field's metadata. Other tools use the first three as well.
const (
	fieldIDKey    = take.FieldID
	extensionKey  = "ARROW:extension:name"
	extensionData = "ARROW:extension:metadata"
	logicalKey    = "PARQUET:logical_type"
)

// timeUTC is the annotation name for times that are adjusted to UTC.
const timeUTC = "TIME_UTC"

// annotations are the names of annotations for which Arrow has no type.
var annotations = map[meta.Kind]string{
	meta.Enum: "ENUM", meta.BSON: "BSON", meta.Interval: "INTERVAL",
	meta.Geometry: "GEOMETRY", meta.Geography: "GEOGRAPHY",
	meta.Variant: "VARIANT", meta.Unknown: "UNKNOWN",
}

// withParameters are the annotations with parameters. They are stored under
// logicalKey as the name, a colon and their encoded form in base64.
var withParameters = map[string]bool{"GEOMETRY": true, "GEOGRAPHY": true, "VARIANT": true, "UNKNOWN": true}

// extensions are Arrow's names of extension types, by annotation.
var extensions = map[meta.Kind]string{
	meta.UUID: "arrow.uuid", meta.JSON: "arrow.json", meta.Variant: variantName,
	meta.Geometry: "geoarrow.wkb", meta.Geography: "geoarrow.wkb",
}

const variantName = "arrow.parquet.variant"

// pairs collects the metadata of a field. The first value of a key is kept.
type pairs struct{ keys, values []string }

func (p *pairs) has(key string) bool { return slices.Contains(p.keys, key) }

func (p *pairs) add(key, value string) {
	if !p.has(key) {
		p.keys, p.values = append(p.keys, key), append(p.values, value)
	}
}

// fieldMetadata returns the metadata of a node's field: that of the stored Arrow
// schema, the annotation if annotated is set, and the field id if withID is set.
func (p *planner) fieldMetadata(n *meta.Node, o origin, annotated, withID bool) (arrow.Metadata, error) {
	var out pairs
	for k, v := range o.Metadata() {
		if k != fieldIDKey && k != logicalKey && !o.entries {
			out.add(k, v)
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
	return arrow.NewMetadata(out.keys, out.values), nil
}

func (p *planner) annotate(out *pairs, n *meta.Node) error {
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
	if kind == meta.Time && n.Logical.UTC {
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

// geoArrow returns the metadata of geoarrow.wkb for a Parquet coordinate reference
// system: "" for longitude and latitude, srid:N, projjson:KEY for a system stored
// under a key of the file's metadata, or any other text. edges is empty for
// straight edges.
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
		return "" // cannot happen with strings and valid JSON
	}
	return string(b)
}

// annotation returns the name of the annotation to write for a field, and its
// encoded form if the metadata has it.
func annotation(m arrow.Metadata) (name string, stored []byte, err error) {
	name, encoded, ok := strings.Cut(value(m, logicalKey), ":")
	if ok {
		stored, err = base64.StdEncoding.DecodeString(encoded)
	}
	return name, stored, err
}

// annotateGroup sets the annotation of a struct's group, if it has one. why is the
// reason if it cannot.
func annotateGroup(e *meta.Element, f arrow.Field, dt *arrow.StructType) (why string) {
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
