// Package address takes apart the names of objects that are URLs. Names without
// "://" are paths of local files.
package address

import (
	"path/filepath"
	"strings"
)

// IsURL reports whether a name is a URL.
func IsURL(name string) bool { return strings.Index(name, "://") > 0 }

// WithoutQuery returns a name without the query of an HTTP URL, which may be a
// signature. In other names a question mark stands for itself.
func WithoutQuery(name string) string {
	scheme, _, ok := strings.Cut(name, "://")
	if ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		name, _, _ = strings.Cut(name, "#")
		name, _, _ = strings.Cut(name, "?")
	}
	return name
}

// Parent returns the directory that holds what is named; the root of a file system
// and a bucket are their own parents.
func Parent(name string) string {
	i := strings.Index(name, "://")
	if i < 0 {
		return filepath.Dir(name)
	}
	name = WithoutQuery(name)
	if slash := strings.LastIndexByte(name, '/'); slash >= i+len("://") {
		return name[:slash]
	}
	return name
}
