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
