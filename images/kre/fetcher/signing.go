package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const region = "us-east-1" // which a MinIO takes that was told of none

// signed is the request for the object, by version 4 of the signatures that S3 asks for.
func (it order) signed(ctx context.Context, now time.Time) (*http.Request, error) {
	to, err := url.Parse(it.endpoint)
	if err != nil {
		return nil, fmt.Errorf("KRT_FILES_ENDPOINT: %w", err)
	}
	to.Path, to.RawPath = "/"+it.bucket+"/"+it.object, "/"+escaped(it.bucket)+"/"+escaped(it.object)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, err
	}
	stamp, nothing := now.UTC().Format("20060102T150405Z"), hexOf(hashed(""))
	scope := strings.Join([]string{stamp[:8], region, "s3", "aws4_request"}, "/")
	request.Header.Set("X-Amz-Date", stamp)
	request.Header.Set("X-Amz-Content-Sha256", nothing)
	names := "host;x-amz-content-sha256;x-amz-date"
	headers := fmt.Sprintf("host:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n", to.Host, nothing, stamp)
	canonical := strings.Join([]string{http.MethodGet, to.RawPath, "", headers, names, nothing}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hexOf(hashed(canonical))}, "\n")
	key := []byte("AWS4" + it.secret)
	for _, word := range strings.Split(scope, "/") {
		key = keyed(key, word)
	}
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", it.access, scope, names, hexOf(keyed(key, toSign)),
	))
	return request, nil
}

// escaped is a path as it is signed: everything but letters, digits and -._~/ as %XX.
func escaped(path string) string {
	var made strings.Builder
	for _, each := range []byte(path) {
		switch {
		case 'a' <= each && each <= 'z', 'A' <= each && each <= 'Z', '0' <= each && each <= '9', strings.IndexByte("-._~/", each) >= 0:
			made.WriteByte(each)
		default:
			fmt.Fprintf(&made, "%%%02X", each)
		}
	}
	return made.String()
}

func hashed(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func keyed(key []byte, text string) []byte {
	made := hmac.New(sha256.New, key)
	made.Write([]byte(text))
	return made.Sum(nil)
}

func hexOf(sum []byte) string { return hex.EncodeToString(sum) }
