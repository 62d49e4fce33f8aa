package delta

import "fmt"

// action is a line of a commit, or a row of a checkpoint: one of these.
type action struct {
	Add      *add      `json:"add"`
	Remove   *remove   `json:"remove"`
	Protocol *protocol `json:"protocol"`
	Metadata *metadata `json:"metaData"`
	Sidecar  *sidecar  `json:"sidecar"`
	Info     *info     `json:"commitInfo"`
}

// add adds a file to the table, or another vector to one that has it.
type add struct {
	Path      string             `json:"path"`
	Partition map[string]*string `json:"partitionValues"`
	Size      int64              `json:"size"`
	Time      int64              `json:"modificationTime"` // ms since 1970
	Stats     string             `json:"stats"`
	Vector    *vector            `json:"deletionVector,omitempty"`
}

// remove removes a file from the table, with the vector that it had.
type remove struct {
	Path   string  `json:"path"`
	Vector *vector `json:"deletionVector"`
}

// vector refers to the deleted rows of a file.
type vector struct {
	Storage string `json:"storageType"` // u, p: in a file; i: inline
	Text    string `json:"pathOrInlineDv"`
	Offset  *int32 `json:"offset"`
	Size    int32  `json:"sizeInBytes"`
	Count   int64  `json:"cardinality"`
}

// id tells the vectors of one file apart.
func (v *vector) id() string {
	switch {
	case v == nil || v.Storage == "": // checkpoints have a struct of NULLs for none
		return ""
	case v.Offset != nil:
		return fmt.Sprintf("%s%s@%d", v.Storage, v.Text, *v.Offset)
	}
	return v.Storage + v.Text
}

// key identifies a logical file.
type key struct{ path, vector string }

type protocol struct {
	Reader   int32    `json:"minReaderVersion"`
	Features []string `json:"readerFeatures"`
}

type metadata struct {
	Format        struct{ Provider string } `json:"format"`
	Schema        string                    `json:"schemaString"`
	Partitions    []string                  `json:"partitionColumns"`
	Configuration map[string]string         `json:"configuration"`
}

type sidecar struct {
	Path string `json:"path"`
	Size int64  `json:"sizeInBytes"`
}

type info struct {
	Time *int64 `json:"inCommitTimestamp"` // ms since 1970
}
