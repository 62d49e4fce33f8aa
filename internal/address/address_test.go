package address

import (
	"cmp"
	"path/filepath"
	"testing"
)

// What names are, their directories, and they themselves without a query.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name          string
		url           bool
		parent, plain string // plain "": the name itself
	}{
		{name: filepath.FromSlash("/a/b"), parent: filepath.FromSlash("/a")},
		{name: "part-?.csv", parent: "."},
		{name: "a/b", parent: "a"},
		{name: "C:x", parent: filepath.Dir("C:x")},
		{name: "://x", parent: filepath.Dir("://x")},
		{name: "dt=a://b/c", parent: filepath.Dir("dt=a://b/c")},
		{name: "3s://b/c", parent: filepath.Dir("3s://b/c")},
		{name: "s3://bucket/a/b.parquet", url: true, parent: "s3://bucket/a"},
		{name: "s3://bucket/a", url: true, parent: "s3://bucket"},
		{name: "s3://bucket", url: true, parent: "s3://bucket"},
		{name: "s3://bucket/a?b/c", url: true, parent: "s3://bucket/a?b"},
		{name: "s3://bucket/part-?.csv", url: true, parent: "s3://bucket"},
		{name: "a+b-c.d1://host/e", url: true, parent: "a+b-c.d1://host"},
		{name: "https://host/a/b?sig=x/y&z=a/b", url: true, parent: "https://host/a", plain: "https://host/a/b"},
		{name: "https://host/a.csv?X-Amz-Signature=1#b", url: true, parent: "https://host", plain: "https://host/a.csv"},
		{name: "HTTP://host/a.csv?b", url: true, parent: "HTTP://host", plain: "HTTP://host/a.csv"},
		{name: "file:///a", url: true, parent: "file://"},
		{name: "file://", url: true, parent: "file://"},
	} {
		if got := IsURL(c.name); got != c.url {
			t.Errorf("%s: a URL: %t, want %t", c.name, got, c.url)
		}
		if got := Parent(c.name); got != c.parent {
			t.Errorf("%s: directory %s, want %s", c.name, got, c.parent)
		}
		if got := WithoutQuery(c.name); got != cmp.Or(c.plain, c.name) {
			t.Errorf("%s: without a query %s, want %s", c.name, got, cmp.Or(c.plain, c.name))
		}
	}
}

func TestAbove(t *testing.T) {
	for _, c := range []struct{ name, rel, above, path string }{
		{"log/a=1/x.parquet", "a=1/x.parquet", "log/", "log/"},
		{"x.parquet", "x.parquet", "", ""},
		{"s3://b/log%20/a=1/x", "x", "s3://b/log%20/a=1/", "s3://b/log%20/a=1/"},
		{"file:///log/b=%2520/c=a%252Fb/x.parquet", "c=a%2Fb/x.parquet", "file:///log/b=%2520/", "file:///log/b=%20/"},
		{"https://h/a%3D1/x%20y?sig=a/b", "x y", "https://h/a%3D1/", "https://h/a=1/"},
		{"file:///100%/x", "x", "file:///100%/", "file:///100%/"},
	} {
		if got := Above(c.name, c.rel); got != c.above {
			t.Errorf("%s above %s: %q, want %q", c.name, c.rel, got, c.above)
		}
		if got := Unescaped(c.above); got != c.path {
			t.Errorf("%s: %q, want %q", c.above, got, c.path)
		}
	}
}

func TestLocal(t *testing.T) {
	for name, want := range map[string]string{
		"file:///a%20b/c": "/a b/c", "FILE://localhost/a": "/a", "file://host/a": "file://host/a", "file:///100%": "file:///100%",
		"s3://b/k": "s3://b/k", "a/b": "a/b", "file": "file",
	} {
		if got := Local(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]bool{"http://h/x": true, "HTTPS://h": true, "s3://http": false, "http": false, "x/http://h": false} {
		if IsWeb(name) != want {
			t.Errorf("%s is at a web server: %t", name, !want)
		}
	}
}
