package cloud

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/bloomjoin/bloomjoin/internal/process"
)

// records holds the unfinished uploads to one bucket of this machine's processes,
// so that a later process can drop those of processes that were killed: S3 does
// not report which process began an upload. Each is a file in the user's cache directory,
// named HOST-PID-START.RANDOM, see [process.ID]. Where processes cannot be identified, or
// the directory is unknown, uploads are not recorded.
type records struct {
	dir      string // empty: none
	endpoint string
	bucket   string
}

// record is the content of a file.
type record struct {
	Endpoint string `json:"endpoint,omitempty"` // empty: Amazon's
	Bucket   string `json:"bucket"`
	Key      string `json:"key"`
	Upload   string `json:"upload"`
	Owner    string `json:"owner,omitempty"` // of a staged object, see SweepStaged
}

func newRecords(endpoint, bucket string) *records {
	r := &records{endpoint: endpoint, bucket: bucket}
	if cache, err := os.UserCacheDir(); err == nil {
		r.dir = filepath.Join(cache, "bloomjoin", "uploads")
	}
	return r
}

// add notes an upload and returns the name for remove. If it cannot be noted, the
// upload is dropped when it is a week old, should this process be killed.
func (r *records) add(key, upload string) (name string) {
	id, ok := process.This()
	if !ok || r.dir == "" || os.MkdirAll(r.dir, 0o700) != nil {
		return ""
	}
	return r.write(filepath.Join(r.dir, id.String()+"."+rand.Text()), record{Key: key, Upload: upload})
}

// write writes a record to a file, and returns the file's name; empty: it could not.
func (r *records) write(name string, rec record) string {
	rec.Endpoint, rec.Bucket = r.endpoint, r.bucket
	b, err := json.Marshal(rec)
	if err != nil || os.WriteFile(name, b, 0o600) != nil {
		r.remove(name)
		return ""
	}
	return name
}

// remove removes a record.
func (*records) remove(name string) {
	if name != "" {
		_ = os.Remove(name) // a record of an upload that does not exist is removed by the next sweep
	}
}

// list returns the records of the bucket's uploads by the names of their files.
// gone reports for each whether its process has certainly ended.
func (r *records) list() (found map[string]record, gone map[string]bool) {
	found, gone = map[string]record{}, map[string]bool{}
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return found, gone
	}
	for _, f := range files {
		owner, _, _ := strings.Cut(f.Name(), ".")
		id, ok := process.Parse(owner)
		if !ok {
			continue
		}
		name := filepath.Join(r.dir, f.Name())
		var rec record
		if b, err := os.ReadFile(name); err != nil || json.Unmarshal(b, &rec) != nil {
			continue
		}
		if rec.Endpoint == r.endpoint && rec.Bucket == r.bucket {
			found[name], gone[name] = rec, id.Gone()
		}
	}
	return found, gone
}
