package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// sign adds the signature of AWS, version 4, to a request without a body and query.
func sign(req *http.Request) {
	now, region := time.Now().UTC().Format("20060102T150405Z"), os.Getenv("AWS_REGION")
	hash := sum(nil)
	req.Header.Set("X-Amz-Date", now)
	req.Header.Set("X-Amz-Content-Sha256", hash)
	const signed = "host;x-amz-content-sha256;x-amz-date"
	canonical := strings.Join([]string{
		req.Method, req.URL.EscapedPath(), "",
		"host:" + req.URL.Host, "x-amz-content-sha256:" + hash, "x-amz-date:" + now, "", signed, hash,
	}, "\n")
	scope := now[:8] + "/" + region + "/s3/aws4_request"
	key := []byte("AWS4" + os.Getenv("AWS_SECRET_ACCESS_KEY"))
	for _, part := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+now+"\n"+scope+"\n"+sum([]byte(canonical))) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	req.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x",
		os.Getenv("AWS_ACCESS_KEY_ID"), scope, signed, key))
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
