package cloud

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
)

func TestParse(t *testing.T) {
	for given, want := range map[string]name{
		"s3://b/k/l":                           {place: place{schemeS3, "", "b"}, key: "k/l"},
		"S3A://b/k?x=%20":                      {place: place{schemeS3, "", "b"}, key: "k?x=%20"},
		"s3n://b":                              {place: place{schemeS3, "", "b"}},
		"gs://b/":                              {place: place{schemeGS, "", "b"}},
		"az://c/k":                             {place: place{schemeAzure, "", "c"}, key: "k"},
		"azblob://c/k":                         {place: place{schemeAzure, "", "c"}, key: "k"},
		"abfss://c@a.dfs.core.windows.net/k@l": {place: place{schemeAzure, "a.core.windows.net", "c"}, key: "k@l"},
		"wasb://c@a.blob.core.chinacloudapi.cn/k": {place: place{schemeAzure, "a.core.chinacloudapi.cn", "c"}, key: "k"},
		"mem://b/k":            {place: place{schemeMem, "", "b"}, key: "k"},
		"https://h:1/p?q=/x#f": {place: place{schemeHTTP, "", "h:1"}, key: "https://h:1/p?q=/x#f"},
		"file:///a%20b/c":      {key: "/a b/c", local: true},
		"file://localhost/a":   {key: "/a", local: true},
		"a/b":                  {key: "a/b", local: true},
		"C:\\x":                {key: "C:\\x", local: true},
		"://x":                 {key: "://x", local: true},
		"dt=a://b":             {key: "dt=a://b", local: true},
	} {
		want.given = given
		if got, err := parse(given); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", given, got, err, want)
		}
	}
	for given, text := range map[string]string{
		"hdfs://h/x": "hdfs:// addresses", "ftp://h/x": "ftp:// addresses", "s3://": "want s3://BUCKET/KEY", "s3:///k": "want s3://BUCKET/KEY",
		"s3://a*/k": "want s3://BUCKET/KEY", "s3://user:secret@b/k": "s3://REDACTED@b/k", "s3a://user:sec/ret@b/k": "s3a://REDACTED@b/k", "abfss://c@/k": "CONTAINER@ACCOUNT", "http:///x": "want http://HOST", "http://u:p w@h/a?sig=x": "http://REDACTED@h/a?REDACTED: not a valid address: it has spaces", "http://u:p/w@h/a": "http://REDACTED@h/a: not",
		"https://h/a?b=' '&sig=x": "https://h/a?REDACTED: not a valid address: it has spaces or quotes", "file://host/x": "want file:///PATH", "file:///%zz": "invalid URL escape",
	} {
		_, err := parse(given)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", given, err)
		}
		if strings.HasSuffix(text, "addresses") && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v is not unsupported", given, err)
		}
	}
}

func TestResolve(t *testing.T) {
	s := made(Options{})
	defer s.Close()
	dir := t.TempDir()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"s3a://b/dir/": "s3://b/dir", "s3://b/dir": "s3://b/dir", "s3://b": "s3://b/", "s3://b/": "s3://b/",
		"wasbs://c@a.blob.core.windows.net/k": "abfss://c@a.dfs.core.windows.net/k", "abfs://c@a.dfs.core.windows.net/k/": "abfss://c@a.dfs.core.windows.net/k",
		"az://c/k": "azblob://c/k", address.FileURL(dir): real, dir: real,
		"https://h/k?X-Amz-Signature=1": "https://h/k?X-Amz-Signature=REDACTED",
	} {
		if got := s.Resolve(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for given, want := range map[string]string{
		"s3://b/k?x=secret": "s3://b/k?x=REDACTED",
		"s3://b/k?region=eu&accessKeyId=A/B&secretAccessKey=c+d/e=: no": "s3://b/k?region=eu&accessKeyId=REDACTED&secretAccessKey=REDACTED: no",
		"s3://b/day-0?/a=1, gs://b/x?":                                  "s3://b/day-0?/a=1, gs://b/x?",
		"abfss://c@a.dfs.core.windows.net/k":                            "abfss://c@a.dfs.core.windows.net/k",
		"open s3a://AKIA:ab/cd+ef@b/k: no":                              "open s3a://REDACTED@b/k: no",
		"s3://b/a:b@c":                                                  "s3://b/a:b@c",
		"http://user:pass@h/p":                                          "http://REDACTED@h/p",
		"Get \"https://h/p?X-Amz-Credential=AKIA%2F1&X-Amz-Signature=ab&part=1\": EOF": "Get \"https://h/p?X-Amz-Credential=REDACTED&X-Amz-Signature=REDACTED&part=1\": EOF",
		"https://a.blob.core.windows.net/c/k?sv=1&se=2026&sr=b&sp=r&sig=x%3D":          "https://a.blob.core.windows.net/c/k?sv=REDACTED&se=REDACTED&sr=REDACTED&sp=REDACTED&sig=REDACTED",
		"two: https://h/?token=1, HTTP://h/a?b=c":                                      "two: https://h/?token=REDACTED, HTTP://h/a?b=c",
		"https://h?access_token=x":                                                     "https://h?access_token=REDACTED",
		"https://h/p?":                                                                 "https://h/p?",
		"a/b.parquet":                                                                  "a/b.parquet",
	} {
		if got := address.Redact(given); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", given, got, want)
		}
		if got := address.Redact(address.Redact(given)); got != address.Redact(given) {
			t.Errorf("%s: redacted twice: %s", given, got)
		}
	}
}
