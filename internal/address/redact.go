package address

import (
	"regexp"
	"strings"
)

// urls finds addresses with a query or a user in a text.
var urls = regexp.MustCompile(`(?i)\bhttps?://[^` + NotInURL + `]+`)

// NotInURL are characters that end an address in a text.
const NotInURL = " \t\r\n\f\v\"'<>`"

// keys finds credentials in addresses of object stores, as Hadoop once had them.
var keys = regexp.MustCompile(`(?i)\b((?:s3[an]?|gs|az|azblob)://)[^\s"'<>@/:]+:[^\s"'<>@]*@`)

// buckets finds addresses of object stores with a query, which has no meaning there but
// may have credentials, as in other programs.
var buckets = regexp.MustCompile(`(?i)\b(?:s3[an]?|gs|az|azblob|abfss?|wasbs?)://[^?` + NotInURL + `]*\?[^` + NotInURL + `]+`)

// parameter is a query parameter. A question mark is also part of patterns, so that other
// text may follow it.
var parameter = regexp.MustCompile(`(?i)([?&][a-z][a-z0-9_.-]*)=([^&]+)`)

// harmless finds parameters of addresses of object stores that are no credentials.
var harmless = regexp.MustCompile(`(?i)^.(region|endpoint|profile|prefix|version|versionid|generation|anonymous|(s3)?force_?path_?style|use_path_style)$`)

// secret finds names of query parameters that are credentials, or part of a
// signature.
var secret = regexp.MustCompile(`(?i)^(x-(amz|goog|ms)-.*|.*(sig|token|secret|key|credential|password|passwd|auth|session|policy).*|expires|s[eptvr]|spr|sip|srt|ss|sk[etvs]|sk[ot]id|sks|googleaccessid)$`)

// Redact replaces credentials in a text: users and passwords in addresses, the values of
// presigned queries and, in addresses of object stores, those of all parameters that are
// not known to be harmless. Other texts stay as they are.
func Redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = keys.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = buckets.ReplaceAllStringFunc(text, redactBucket)
	return urls.ReplaceAllStringFunc(text, redactURL)
}

func redactBucket(u string) string {
	address, sentence := ended(u)
	return parameter.ReplaceAllStringFunc(address, func(p string) string {
		name, _, _ := strings.Cut(p, "=")
		if harmless.MatchString(name) {
			return p
		}
		return name + "=" + Redacted
	}) + sentence
}

// ended splits an address in a text from the punctuation that follows it.
func ended(u string) (address, sentence string) {
	address = strings.TrimRight(u, ".,;:!)]}")
	return address, u[len(address):]
}

const Redacted = "REDACTED"

func redactURL(u string) string {
	u, sentence := ended(u)
	scheme, rest, _ := strings.Cut(u, "://")
	base, query, _ := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(base, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = Redacted + host[i:]
	}
	if slash {
		host += "/"
	}
	u = scheme + "://" + host + path
	if query == "" {
		return u + rest[len(base):] + sentence
	}
	parts := strings.Split(query, "&")
	for i, p := range parts {
		if k, _, ok := strings.Cut(p, "="); ok && secret.MatchString(k) {
			parts[i] = k + "=" + Redacted
		}
	}
	return u + "?" + strings.Join(parts, "&") + sentence
}
