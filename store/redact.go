package store

import (
	"regexp"
	"strings"
)

// urls finds addresses with a query or a user in a text.
var urls = regexp.MustCompile(`(?i)\bhttps?://[^` + notInURL + `]+`)

// notInURL are characters that end an address in a text.
const notInURL = " \t\r\n\f\v\"'<>`"

// keys finds credentials in addresses of object stores, as Hadoop once had them.
var keys = regexp.MustCompile(`(?i)\b((?:s3[an]?|gs|az|azblob)://)[^\s"'<>@/:]+:[^\s"'<>@]*@`)

// secret finds names of query parameters that are credentials, or part of a
// signature.
var secret = regexp.MustCompile(`(?i)^(x-(amz|goog|ms)-.*|.*(sig|token|secret|key|credential|password|passwd|auth|session|policy).*|expires|s[eptvr]|spr|sip|srt|ss|sk[etvs]|sk[ot]id|sks|googleaccessid)$`)

// Redact replaces credentials in a text: users and passwords in addresses, and the
// values of presigned queries. Other texts stay as they are.
func Redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = keys.ReplaceAllString(text, "${1}"+redacted+"@")
	return urls.ReplaceAllStringFunc(text, redactURL)
}

const redacted = "REDACTED"

func redactURL(u string) string {
	sentence := u[len(strings.TrimRight(u, ".,;:!)]}")):] // what follows the address
	u = strings.TrimSuffix(u, sentence)
	scheme, rest, _ := strings.Cut(u, "://")
	base, query, _ := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(base, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = redacted + host[i:]
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
			parts[i] = k + "=" + redacted
		}
	}
	return u + "?" + strings.Join(parts, "&") + sentence
}
