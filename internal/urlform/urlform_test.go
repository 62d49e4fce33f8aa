package urlform

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/idna"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// RFC 3986, section 6.2.2
		{"eXAMPLE://a/./b/../b/%63/%7bfoo%7d", "example://a/b/c/%7Bfoo%7D"},
		{"HTTP://www.EXAMPLE.com/", "http://www.example.com/"},
		// section 6.2.3
		{"http://example.com", "http://example.com/"},
		{"http://example.com:/", "http://example.com/"},
		{"http://example.com:80/", "http://example.com/"},
		{"http://example.com:0080?q", "http://example.com/?q"},
		{"https://example.com:80/", "https://example.com:80/"},
		{"wss://h:443", "wss://h/"},
		{"ftp://h:21/a;type=i", "ftp://h/a;type=i"},
		{"http://h:0/", "http://h:0/"},
		// section 5.4, resolved paths
		{"http://a/b/c/./../../g", "http://a/g"},
		{"http://a/../../../g", "http://a/g"},
		{"http://a/b/c/..g/.../g.", "http://a/b/c/..g/.../g."},
		{"http://a/b/c/..", "http://a/b/"},
		{"http://a/b/c/.", "http://a/b/c/"},
		{"http://a/b//../c", "http://a/b/c"},
		{"http://a/%2e%2E/x", "http://a/x"},
		// parts
		{"http://h/p#f?q", "http://h/p"},
		{"http://h?a=../b&c=%2f#x", "http://h/?a=../b&c=%2F"},
		{"http://h/?", "http://h/?"},
		{"http://U:P%61@H/", "http://U:Pa@h/"},
		{"http://a@b@h/", "http://a@b@h/"},
		{"http://@h", "http://@h/"},
		{"http://h/%", "http://h/%25"},
		{"http://h/%%341", "http://h/%2541"},
		{"http://h/a b\"é|", "http://h/a%20b%22%C3%A9%7C"},
		{"file:///etc/../x", "file:///x"},
		{"file://", "file:///"},
		// hosts
		{"http://EXAMPLE.com../", "http://example.com/"},
		{"http://Bücher.DE/", "http://xn--bcher-kva.de/"},
		{"http://b%C3%BCcher.de/", "http://xn--bcher-kva.de/"},
		{"http://ex%41mple.com/", "http://example.com/"},
		{"http://XN--BCHER-KVA.de/", "http://xn--bcher-kva.de/"},
		{"http://faß.de/", "http://xn--fa-hia.de/"},
		{"http://例え。jp/", "http://xn--r8jz45g.jp/"},
		{"http://ｅｘ.com/", "http://ex.com/"},
		{"http://a_b.com/", "http://a_b.com/"},
		{"http://[::0001]:80/", "http://[::1]/"},
		{"http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"},
		{"http://127.0.0.1/", "http://127.0.0.1/"},
	} {
		if got := string(Append([]byte("x"), []byte(c.text))); got != "x"+c.want {
			t.Errorf("%s: got %s, want %s", c.text, got[1:], c.want)
		}
	}
}

// TestUnchanged has texts that are not URLs of the form.
func TestUnchanged(t *testing.T) {
	for _, text := range []string{
		"", "Example.com/A", "mailto:A@B", "//H/a", "1http://H/", "http:/H", "HTTP://H:x/", "http://H:65536/", "http://H:1:2/",
		"http://:80/", "http://u@/", "http://A B/", "http://a%2Fb/", "http://a%zz/", "http://[::g]/", "http://[1.2.3.4]/", "http://[::1%25eth0]/", "http://[v1.A]/",
		"http://.", "http://\xff/", "http://⁇.com/", "http://A／b/", "http://א1a/", "http://xn--\U0001FAE8é/",
		"http://" + strings.Repeat("é", 127) + "/",
		"http://ẞ.de/",          // converted differently by Unicode 15.1
		"http://\U0002EBF0.de/", // new in Unicode 15.1
	} {
		if got := string(Append(nil, []byte(text))); got != text {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestAppendHost(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Example.COM", "example.com"}, {"example.com.", "example.com"}, {"example.com:8080/x", "example.com"},
		{"//u:p@Example.com", "example.com"}, {"HTTPS://user@sub.Example.com:1/x?y@z#w", "sub.example.com"},
		{"bücher.de", "xn--bcher-kva.de"}, {"[::FFFF:1.2.3.4]:1", "[::ffff:1.2.3.4]"},
		{"", ""}, {"/x", ""}, {"file:///x", ""}, {"http://", ""}, {"a b", ""}, {"...", ""}, {"h:x", ""},
	} {
		got, ok := AppendHost(nil, []byte(c.text))
		if string(got) != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %s, %v, want %s", c.text, got, ok, c.want)
		}
	}
}

func TestParent(t *testing.T) {
	for host, want := range map[string]string{
		"a.b.c": "b.c > c", "com": "", "1.2.3.4": "", "[::1]": "", "a..b": ".b > b", "4.com": "com", "": "",
	} {
		var all []string
		for h := Parent([]byte(host)); len(h) > 0; h = Parent(h) {
			all = append(all, string(h))
		}
		if got := strings.Join(all, " > "); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

// TestPaths compares resolved paths with what the steps of RFC 3986, section 5.2.4, give.
func TestPaths(t *testing.T) {
	segments := []string{"", ".", "..", "a", "...", "b."}
	for n := range 6 * 6 * 6 * 6 * 6 {
		path := ""
		for range 5 {
			path, n = path+"/"+segments[n%6], n/6
		}
		in, want := path, ""
		for in != "" {
			switch { // 2A and 2D concern paths without a slash at the start
			case strings.HasPrefix(in, "/./") || in == "/.": // 2B
				in = "/" + strings.TrimPrefix(in[2:], "/")
			case strings.HasPrefix(in, "/../") || in == "/..": // 2C
				in = "/" + strings.TrimPrefix(in[3:], "/")
				want = want[:max(strings.LastIndex(want, "/"), 0)]
			default: // 2E
				end := len(in)
				if i := strings.Index(in[1:], "/"); i >= 0 {
					end = i + 1
				}
				want, in = want+in[:end], in[end:]
			}
		}
		if got := string(withoutDots([]byte(path))); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestStable checks that the library's tables, of whatever version, convert the characters
// of stable.txt as Unicode 15.0 and 17.0 do: the digest is of what these give.
func TestStable(t *testing.T) {
	n, last := 0, rune(0)
	sum := uint64(14695981039346656037)
	for _, r := range stable() {
		if r[0] <= last || r[1] < r[0] {
			t.Fatalf("range %X-%X after %X", r[0], r[1], last)
		}
		last = r[1]
		for c := r[0]; c <= r[1]; c++ {
			n++
			for _, label := range []string{string(c), "a" + string(c), string(c) + "b", "א" + string(c), "\u0915\u094d" + string(c)} {
				out, err := converter.ToASCII(label)
				if err != nil {
					out = "-"
				}
				for _, b := range []byte(out + " ") {
					sum = (sum ^ uint64(b)) * 1099511628211
				}
			}
		}
	}
	if n != 148814 || sum != 0x27d4a476c2b63a01 {
		t.Errorf("%d characters with the digest %#x under Unicode %s", n, sum, idna.UnicodeVersion)
	}
	if !isStable('ü') || isStable('ẞ') || isStable(0x2EBF0) || isStable(unicode.MaxRune) {
		t.Error("characters are not found")
	}
}

func FuzzAppend(f *testing.F) {
	for _, s := range []string{"HTTP://u@H:80/a/../%7e?q#f", "http://Bücher.de./", "http://[::1]:1", "a.b:1/x", "http://ｘn--/", "h://%41.%2e/%%341", "http://xn--a。é"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		once := Append(nil, text)
		if twice := Append(nil, once); !bytes.Equal(once, twice) {
			t.Errorf("%q: %q, then %q", text, once, twice)
		}
		host, ok := AppendHost(nil, text)
		if again, same := AppendHost(nil, host); ok && (!same || !bytes.Equal(host, again)) {
			t.Errorf("%q: host %q, then %q", text, host, again)
		}
		if of, _ := AppendHost(nil, once); ok && !bytes.Equal(of, host) {
			t.Errorf("%q: host %q, of its form %q", text, host, of)
		}
		if !bytes.Equal(text, before) {
			t.Error("the text has changed")
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	text := []byte("https://www.example-site.org/00000000000000002c829abe1f4532e1/x/")
	var dst []byte
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		dst = Append(dst[:0], text)
	}
}
