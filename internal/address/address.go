// Package address takes apart the names of objects that are URLs. All other names are
// paths of local files.
package address

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
)

// ManifestSuffix ends the name of the directory of manifests beside an output.
const ManifestSuffix = ".bloomjoin"

// IsURL reports whether a name is a URL, as opposed to the path of a local file: "://"
// after what may be a scheme. The path dt=a://b is none.
func IsURL(name string) bool {
	i := strings.Index(name, "://")
	if i <= 0 {
		return false
	}
	for j, c := range []byte(name[:i]) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (j == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return true
}

// IsWeb reports whether a name is the address of a web server, where nothing can be listed
// or written.
func IsWeb(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// WithoutQuery returns a name without the query of an HTTP URL, which may be a
// signature. In other names a question mark stands for itself.
func WithoutQuery(name string) string {
	if IsWeb(name) {
		name, _, _ = strings.Cut(name, "#")
		name, _, _ = strings.Cut(name, "?")
	}
	return name
}

// Parent returns the directory of a file or object. The root of a file system and a
// bucket are their own parents.
func Parent(name string) string {
	if !IsURL(name) {
		return filepath.Dir(name)
	}
	i := strings.Index(name, "://")
	name = WithoutQuery(name)
	if slash := strings.LastIndexByte(name, '/'); slash >= i+len("://") {
		return name[:slash]
	}
	return name
}

// Above returns the part of a name before the path that identifies the object below
// it, whose elements may be escaped in a URL. It ends in a slash, or is empty.
func Above(name, rel string) string {
	name = WithoutQuery(name)
	if above, ok := strings.CutSuffix(name, rel); ok {
		return above
	}
	for range strings.Count(rel, "/") + 1 {
		name = name[:max(strings.LastIndexByte(name, '/'), 0)]
	}
	return name + "/"
}

// FilePath returns the path that a file URL names. isFile is false for all other names; the
// error says what is wrong with a file URL.
func FilePath(name string) (path string, isFile bool, err error) {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok || !strings.EqualFold(scheme, "file") {
		return "", false, nil
	}
	host, path, ok := strings.Cut(rest, "/")
	if !ok || host != "" && !strings.EqualFold(host, "localhost") {
		return "", true, errors.New("want file:///PATH")
	}
	path, err = url.PathUnescape("/" + path)
	return path, true, err
}

// FileURL returns the file URL of a path.
func FileURL(path string) string { return "file://" + Escaped(path) }

// Escaped returns a path as it is written in a file URL.
func Escaped(path string) string { return strings.ReplaceAll(path, "%", "%25") }

// Local returns the path of a file URL. Other names stand for themselves.
func Local(name string) string {
	if path, isFile, err := FilePath(name); isFile && err == nil {
		return path
	}
	return name
}

// Unescaped returns the path of a file or HTTP URL without escapes, with its scheme and
// host. Other names have none.
func Unescaped(name string) string {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok || !strings.EqualFold(scheme, "file") && !IsWeb(name) {
		return name
	}
	path, err := url.PathUnescape(rest)
	if err != nil {
		return name
	}
	return scheme + "://" + path
}
