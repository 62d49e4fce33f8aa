package iceberg

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/faults"
	"github.com/bloomjoin/bloomjoin/internal/lake"
)

// metadata is what a metadata file says of a table, as far as readers need it.
type metadata struct {
	Format     int               `json:"format-version"`
	Location   string            `json:"location"`
	SchemaID   int               `json:"current-schema-id"`
	Schemas    []schema          `json:"schemas"`
	Schema     *schema           `json:"schema"` // of version 1
	Specs      []spec            `json:"partition-specs"`
	Spec       []specField       `json:"partition-spec"` // of version 1
	Current    *int64            `json:"current-snapshot-id"`
	Snapshots  []snapshot        `json:"snapshots"`
	Refs       map[string]ref    `json:"refs"`
	Log        []logged          `json:"snapshot-log"`
	Properties map[string]string `json:"properties"`
}

type snapshot struct {
	ID        int64             `json:"snapshot-id"`
	List      string            `json:"manifest-list"`
	Manifests []string          `json:"manifests"` // of version 1, in place of List
	SchemaID  *int              `json:"schema-id"`
	KeyID     string            `json:"key-id"`
	Summary   map[string]string `json:"summary"`
}

type ref struct {
	ID   int64  `json:"snapshot-id"`
	Type string `json:"type"` // branch or tag
}

// logged says that a snapshot became the current one.
type logged struct {
	ID   int64 `json:"snapshot-id"`
	Time int64 `json:"timestamp-ms"`
}

// spec says by which fields files are divided.
type spec struct {
	ID     int64       `json:"spec-id"`
	Fields []specField `json:"fields"`
}

type specField struct {
	Source    int32  `json:"source-id"` // 0: there are several
	ID        int    `json:"field-id"`
	Transform string `json:"transform"`
	typ       string // of the source; empty: not known
}

// newestFormat is the newest version of the format that is read.
const newestFormat = 3

// kinds are words for what members are.
var kinds = map[reflect.Kind]string{
	reflect.Int: "an integer", reflect.Int32: "an integer of 32 bits", reflect.Int64: "an integer of 64 bits", reflect.String: "a string",
	reflect.Slice: "an array", reflect.Struct: "an object", reflect.Map: "an object",
}

// parse parses a metadata file.
func parse(b []byte, at fault.At) (*metadata, error) {
	var m metadata
	if !utf8.Valid(b) {
		return nil, faults.Corrupt(at, "the metadata of an Iceberg table, which is not UTF-8")
	}
	if err := json.Unmarshal(b, &m); err != nil {
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
			e := faults.Corrupt(at, "the member %s in the metadata of an Iceberg table", strconv.Quote(wrong.Field))
			return nil, faults.Wanted(e, kinds[wrong.Type.Kind()], wrong.Value)
		}
		e := faults.Corrupt(at, "the metadata of an Iceberg table")
		e.Err = err
		return nil, e
	}
	if m.Format < 1 || m.Format > newestFormat {
		return nil, faults.Unsupported(at, "version %d of the Iceberg format (want 1 to %d)", m.Format, newestFormat)
	}
	if len(m.Schemas) == 0 && m.Schema != nil {
		m.Schemas, m.SchemaID = []schema{*m.Schema}, m.Schema.ID
	}
	if len(m.Specs) == 0 && m.Format > 1 {
		return nil, faults.Corrupt(at, "the metadata of an Iceberg table without partition-specs")
	} else if len(m.Specs) == 0 {
		m.Specs = []spec{{Fields: m.Spec}}
		for i := range m.Spec {
			if f := &m.Specs[0].Fields[i]; f.ID == 0 { // old writers have no ids, which then ascend from this one
				f.ID = firstPartition + i
			}
		}
	}
	for _, s := range m.Specs {
		for i := range s.Fields {
			s.Fields[i].typ = m.typeOf(s.Fields[i].Source)
		}
	}
	if m.Refs == nil && m.Current != nil {
		m.Refs = map[string]ref{"main": {*m.Current, "branch"}}
	}
	return &m, nil
}

// firstPartition is the least id of a partition field.
const firstPartition = 1000

// find returns the snapshot that a name means, nil if the table has had none, and the schema with which
// to read it: the current one, or for older snapshots and tags their own.
func (m *metadata) find(n *lake.Name) (s *snapshot, of *schema, err error) {
	at := fault.At{File: n.Text}
	id, own, err := m.id(n)
	if err != nil {
		return nil, nil, err
	}
	schemaID := m.SchemaID
	if id != none {
		i := slices.IndexFunc(m.Snapshots, func(s snapshot) bool { return s.ID == id })
		if i < 0 {
			return nil, nil, faults.Mismatch(at, "the snapshot", "one that the table has", strconv.FormatInt(id, 10)).WithHint("it may have expired: name a newer one")
		}
		if s = &m.Snapshots[i]; s.KeyID != "" {
			return nil, nil, faults.Unsupported(at, "an encrypted table")
		}
		if own && s.SchemaID != nil {
			schemaID = *s.SchemaID
		}
	}
	i := slices.IndexFunc(m.Schemas, func(s schema) bool { return s.ID == schemaID })
	if i < 0 {
		return nil, nil, faults.Corrupt(at, "the metadata of an Iceberg table without its schema %d", schemaID)
	}
	return s, &m.Schemas[i], nil
}

// none stands for the snapshot of a table that has had none.
const none = -1

// id returns the id of the snapshot that a name means, and whether it is read with its own schema.
func (m *metadata) id(n *lake.Name) (id int64, own bool, err error) {
	at := fault.At{File: n.Text}
	switch kind, name, _ := strings.Cut(n.Version, "="); {
	case kind == "snapshot":
		if id, err = strconv.ParseInt(name, 10, 64); err != nil || id == none {
			err = faults.Mismatch(at, "the id of a snapshot", "an integer of 64 bits", name)
		}
		return id, true, err
	case kind != "":
		r, ok := m.Refs[name]
		if !ok || r.Type != kind || r.ID == none {
			err = faults.Mismatch(at, "the "+kind, "one of the table", strconv.Quote(name)).WithHint("name one that there is, or @snapshot=ID")
		}
		return r.ID, kind == "tag", err
	case !n.Time.IsZero():
		id, err = m.at(n)
		return id, true, err
	case m.Current == nil:
		return none, false, nil
	}
	return *m.Current, false, nil
}

// at returns the snapshot that was the current one at a time: that of the log, since the times of snapshots
// say when they were written, and one of a branch may have become current later.
func (m *metadata) at(n *lake.Name) (id int64, err error) {
	found := false
	for _, l := range m.Log {
		if l.Time <= n.Time.UnixMilli() {
			id, found = l.ID, true
		}
	}
	if !found {
		err = faults.Mismatch(fault.At{File: n.Text}, "the time", "one after the first snapshot in the table's log", n.Time.Format("2006-01-02T15:04:05.999999999Z07:00")).
			WithHint("name a later time, or a snapshot as @snapshot=ID")
	}
	return id, err
}
