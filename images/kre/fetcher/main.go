// Brings the archive of a version's files from the Runtime's object store to a node's pod, before the node starts.
//
// What it is to fetch is in the environment, as moorage gives it to the image of systems.kre.versions.images.fetcher. It
// ends with an error, which the version's status tells, where the archive is not the one that is meant, or is none.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	within = 10 * time.Minute // for all of it
	again  = 2 * time.Second  // after which a store that does not answer is asked once more

	mostPacked = 512 << 20 // bytes, as of `moorage krt check`

	part = ".archive.part" // below the folder, as nothing else can be written to
)

// order is what is to be fetched, and where to.
type order struct{ endpoint, bucket, object, digest, access, secret, folder string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fetcher:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	it, err := fromEnvironment()
	if err != nil {
		return err
	}
	if err := empty(it.folder); err != nil {
		return err
	}
	packed := filepath.Join(it.folder, part)
	if err := it.fetch(ctx, packed); err != nil {
		return err
	}
	count, err := unpack(packed, it.folder)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", it.bucket, it.object, err)
	}
	fmt.Printf("%d files of %s/%s\n", count, it.bucket, it.object)
	return nil
}

func fromEnvironment() (order, error) {
	var it order
	for name, field := range map[string]*string{
		"KRT_FILES_ENDPOINT": &it.endpoint, "KRT_FILES_BUCKET": &it.bucket, "KRT_FILES_OBJECT": &it.object,
		"KRT_FILES_DIGEST": &it.digest, "KRT_FILES_ACCESS_KEY": &it.access, "KRT_FILES_SECRET_KEY": &it.secret,
		"KRT_BASE_PATH": &it.folder,
	} {
		if *field = os.Getenv(name); *field == "" {
			return it, fmt.Errorf("%s is not set", name)
		}
	}
	return it, nil
}

// empty removes what an earlier try has left, which may have been of another archive.
func empty(folder string) error {
	left, err := os.ReadDir(folder)
	for _, each := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, each.Name())))
	}
	return err
}

// fetch brings the archive into that file, and proves that it is the one that is meant.
func (it order) fetch(ctx context.Context, file string) error {
	for {
		err := it.tried(ctx, file)
		var later *laterError
		if !errors.As(err, &later) {
			return err
		}
		fmt.Fprintln(os.Stderr, "fetcher:", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again):
		}
	}
}

// laterError is what may be otherwise when it is tried again.
type laterError struct{ error }

func (it order) tried(ctx context.Context, file string) error {
	request, err := it.signed(ctx, time.Now())
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return &laterError{fmt.Errorf("the store does not answer: %w", err)}
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode >= 500:
		return &laterError{fmt.Errorf("the store answers %s", answer.Status)}
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("the store has no object %s in bucket %s: upload the archive, or correct spec.files.object.key", it.object, it.bucket)
	case answer.StatusCode != http.StatusOK:
		words, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
		return fmt.Errorf("the store refuses %s/%s: %s %s", it.bucket, it.object, answer.Status, strings.TrimSpace(string(words)))
	}
	return it.kept(answer.Body, file)
}

func (it order) kept(body io.Reader, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(body, mostPacked+1))
	if err != nil {
		return &laterError{fmt.Errorf("the archive broke off after %d bytes: %w", size, err)}
	}
	if size > mostPacked {
		return fmt.Errorf("%s/%s has more than %d bytes, which is no version's archive", it.bucket, it.object, mostPacked)
	}
	if found := "sha256:" + hex.EncodeToString(sum.Sum(nil)); found != it.digest {
		return fmt.Errorf("%s/%s is another archive: its digest is %s, and spec.files.object.digest is %s", it.bucket, it.object, found, it.digest)
	}
	return file.Close()
}
