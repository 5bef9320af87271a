package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// packed is an archive of these entries; a name that ends in / is a folder, and one with a -> in it a link.
func packed(t *testing.T, entries ...[2]string) []byte {
	t.Helper()
	var made bytes.Buffer
	zipped := gzip.NewWriter(&made)
	to := tar.NewWriter(zipped)
	for _, each := range entries {
		header := &tar.Header{Name: each[0], Mode: 0o600, Size: int64(len(each[1])), Typeflag: tar.TypeReg}
		if name, target, link := strings.Cut(each[0], "->"); link {
			header = &tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink}
		} else if strings.HasSuffix(each[0], "/") {
			header = &tar.Header{Name: each[0], Mode: 0o700, Typeflag: tar.TypeDir}
		}
		if err := to.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write([]byte(each[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return made.Bytes()
}

// fetched runs against a store that has that content, and returns the folder with what came of it.
func fetched(t *testing.T, content []byte, digest string, answers ...int) (string, error) {
	t.Helper()
	store := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, asked *http.Request) {
		if asked.URL.Path != "/krt/a.krt" || !strings.HasPrefix(asked.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") {
			t.Errorf("asked for %s", asked.URL)
		}
		if len(answers) > 0 {
			code := answers[0]
			answers = answers[1:]
			to.WriteHeader(code)
			return
		}
		to.Write(content)
	}))
	defer store.Close()
	folder := t.TempDir()
	for name, value := range map[string]string{
		"KRT_FILES_ENDPOINT": store.URL, "KRT_FILES_BUCKET": "krt", "KRT_FILES_OBJECT": "a.krt", "KRT_FILES_DIGEST": digest,
		"KRT_FILES_ACCESS_KEY": "admin", "KRT_FILES_SECRET_KEY": "secret-key", "KRT_BASE_PATH": folder,
	} {
		t.Setenv(name, value)
	}
	return folder, run(t.Context())
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestAnArchiveIsLaidOut(t *testing.T) {
	content := packed(t, [2]string{"./krt.yml", "a"}, [2]string{"src/", ""}, [2]string{"src/deep/hello.py", "b"}, [2]string{part, "c"})
	folder, err := fetched(t, content, digestOf(content))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"krt.yml": "a", "src/deep/hello.py": "b", part: "c"} {
		if found, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(found) != text {
			t.Errorf("%s has %q: %v", name, found, err)
		}
	}
}

func TestAStoreThatIsBusyIsAskedAgain(t *testing.T) {
	content := packed(t, [2]string{"krt.yml", "a"})
	if _, err := fetched(t, content, digestOf(content), http.StatusServiceUnavailable); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotMeantIsNotLaidOut(t *testing.T) {
	good := packed(t, [2]string{"krt.yml", "a"})
	link, outside := packed(t, [2]string{"a->/etc/passwd", ""}), packed(t, [2]string{"../a", "b"})
	for _, row := range []struct {
		content []byte
		digest  string
		answers []int
		words   string
	}{
		{good, digestOf(nil), nil, "is another archive: its digest is " + digestOf(good)},
		{good, digestOf(good), []int{http.StatusNotFound}, "has no object a.krt in bucket krt"},
		{good, digestOf(good), []int{http.StatusForbidden}, "the store refuses krt/a.krt: 403"},
		{[]byte("text"), digestOf([]byte("text")), nil, "it is no .krt archive"},
		{good[:len(good)-9], digestOf(good[:len(good)-9]), nil, "it is no .krt archive"},
		{link, digestOf(link), nil, "a in it: it is neither a file nor a folder"},
		{outside, digestOf(outside), nil, "../a in it:"},
	} {
		folder, err := fetched(t, row.content, row.digest, row.answers...)
		if err == nil || !strings.Contains(err.Error(), row.words) {
			t.Errorf("%v, and not %q", err, row.words)
		}
		if found, _ := os.ReadFile(filepath.Join(folder, "a")); len(found) > 0 {
			t.Errorf("%q was laid out", found)
		}
	}
}
