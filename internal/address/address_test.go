package address

import (
	"path/filepath"
	"testing"
)

func TestParent(t *testing.T) {
	for name, want := range map[string]string{
		filepath.FromSlash("/a/b"):       filepath.FromSlash("/a"),
		"s3://bucket/a/b.parquet":        "s3://bucket/a",
		"s3://bucket/a":                  "s3://bucket",
		"s3://bucket":                    "s3://bucket",
		"s3://bucket/a?b/c":              "s3://bucket/a?b",
		"https://host/a/b?sig=x/y&z=a/b": "https://host/a",
		"file:///a":                      "file://",
		"file://":                        "file://",
	} {
		if got := Parent(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestWithoutQuery(t *testing.T) {
	for name, want := range map[string]string{
		"https://host/a.csv?X-Amz-Signature=1#b": "https://host/a.csv",
		"HTTP://host/a.csv?b":                    "HTTP://host/a.csv",
		"s3://bucket/part-?.csv":                 "s3://bucket/part-?.csv",
		"part-?.csv":                             "part-?.csv",
	} {
		if got := WithoutQuery(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
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
