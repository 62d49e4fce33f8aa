package cloud

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/bloomjoin/bloomjoin/fault"
	"github.com/bloomjoin/bloomjoin/internal/address"
	"github.com/bloomjoin/bloomjoin/internal/faults"
)

// Schemes, each in one spelling.
const (
	schemeS3    = "s3"
	schemeGS    = "gs"
	schemeAzure = "azblob"
	schemeMem   = "mem"
	schemeHTTP  = "http" // and https: the key is the whole URL
)

// schemes maps all spellings of schemes to one.
var schemes = map[string]string{
	"s3": schemeS3, "s3a": schemeS3, "s3n": schemeS3, "gs": schemeGS, "mem": schemeMem,
	"azblob": schemeAzure, "az": schemeAzure, "abfs": schemeAzure, "abfss": schemeAzure, "wasb": schemeAzure, "wasbs": schemeAzure,
	"http": schemeHTTP, "https": schemeHTTP,
}

// place is where keys live: a bucket or container.
type place struct {
	scheme  string // one of the constants
	account string // Azure: the account and its domain, as "account.core.windows.net"; empty: the environment's
	bucket  string
}

// String returns a URL that ends in a slash, without credentials.
func (p place) String() string {
	if p.account == "" {
		return p.scheme + "://" + p.bucket + "/"
	}
	account, domain, _ := strings.Cut(p.account, ".")
	return "abfss://" + p.bucket + "@" + account + ".dfs." + domain + "/"
}

// name is a parsed name.
type name struct {
	place
	given string // the text that was parsed
	key   string // without a slash at the beginning; of local names: the path
	local bool
}

// parse takes a name apart.
func parse(given string) (name, error) {
	n := name{given: given}
	if !address.IsURL(given) {
		n.key, n.local = given, true
		return n, nil
	}
	if path, isFile, err := address.FilePath(given); err != nil {
		return n, n.invalid(err.Error())
	} else if isFile {
		n.key, n.local = path, true
		return n, nil
	}
	scheme, rest, _ := strings.Cut(given, "://")
	scheme = strings.ToLower(scheme)
	n.scheme = schemes[scheme]
	switch n.scheme {
	case "":
		e := faults.Unsupported(fault.At{File: address.Redact(given)}, "%s:// addresses", scheme)
		if scheme == "hdfs" || scheme == "webhdfs" || scheme == "viewfs" {
			return n, e.WithHint("copy the data to an object store or a local disk, e.g. with hadoop distcp, or mount it")
		}
		return n, e.WithHint("use s3://, gs://, azblob://, abfss://, https:// or a local path")
	case schemeHTTP:
		if strings.ContainsAny(given, address.NotInURL) {
			return n, n.invalid("it has spaces or quotes (write them as %20, %22, %27)")
		}
		u, err := url.Parse(given)
		if err != nil || u.Host == "" {
			return n, n.invalid("want " + scheme + "://HOST/PATH")
		}
		n.bucket, n.key = u.Host, given
		return n, nil
	}
	n.bucket, n.key, _ = strings.Cut(rest, "/")
	if n.scheme == schemeAzure {
		if container, host, ok := strings.Cut(n.bucket, "@"); ok {
			account, domain, _ := strings.Cut(host, ".")
			for _, service := range []string{"dfs.", "blob."} {
				domain = strings.TrimPrefix(domain, service)
			}
			if account == "" || domain == "" {
				return n, n.invalid("want " + scheme + "://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY")
			}
			n.bucket, n.account = container, account+"."+domain
		}
	}
	if n.bucket == "" || strings.ContainsAny(n.bucket, "@:?*[]#\\ ") {
		return n, n.invalid("want " + scheme + "://BUCKET/KEY")
	}
	return n, nil
}

func (n name) invalid(what string) error {
	shown := address.Redact(n.given)
	if n.scheme == schemeHTTP { // the text may be invalid as a URL, so Redact may miss secrets
		base, query, _ := strings.Cut(n.given, "?")
		if i := strings.LastIndexByte(base, '@'); i >= 0 {
			base = "http://" + address.Redacted + base[i:]
		}
		if shown = base; query != "" {
			shown += "?" + address.Redacted
		}
	}
	return fmt.Errorf("%s: not a valid address: %s", shown, what)
}

// isFile reports whether a name is a file URL.
func isFile(given string) bool {
	_, is, _ := address.FilePath(given)
	return is
}
