package main

import (
	"strings"
	"testing"
	"time"
)

// As `moorage krt push` signs, by tests/unit/operators/kre/test_push.py there.
const signature = "7e1bbd2fcf4a1b05d412dec45f18d2f805eceed5a690c3b2110e5c8eb888539c"

func TestASignatureIsThatOfThePush(t *testing.T) {
	it := order{endpoint: "http://kre-minio:9000", bucket: "krt", object: "a b+ü.krt", access: "admin", secret: "secret-key"}
	request, err := it.signed(t.Context(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if found := request.Header.Get("Authorization"); !strings.HasSuffix(found, "Signature="+signature) {
		t.Errorf("it is %s, and should be %s", found, signature)
	}
	if found := request.URL.EscapedPath(); found != "/krt/a%20b%2B%C3%BC.krt" {
		t.Errorf("it is asked by %s", found)
	}
}
