package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

const (
	mostUnpacked = 2 << 30 // bytes, as of `moorage krt check`
	mostFiles    = 10_000  // folders count too
)

// unpack lays the files of the archive out below the folder, and tells how many there are. Whatever the archive says, all
// is below it, and nothing in it is a link.
func unpack(packed, folder string) (int, error) {
	file, err := os.Open(packed)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	// It is read on, and a file of that name in it can't be written over it.
	if err := os.Remove(packed); err != nil {
		return 0, err
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		return 0, fmt.Errorf("it is no .krt archive, a tar in a gzip: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	entries, count, left := tar.NewReader(plain), 0, int64(mostUnpacked)
	for seen := 0; ; seen++ {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, io.LimitReader(plain, mostUnpacked)) // it may be cut off after the tar's own end
			if err == nil {
				return count, nil
			}
		}
		if err != nil {
			return count, fmt.Errorf("it is no .krt archive, a tar in a gzip: %w", err)
		}
		if left -= header.Size; left < 0 || seen > mostFiles {
			return count, fmt.Errorf("it unpacks to more than %d bytes or %d files", mostUnpacked, mostFiles)
		}
		name := path.Clean(header.Name)
		switch {
		case header.Typeflag == tar.TypeDir:
			err = root.MkdirAll(name, 0o755)
		case header.Typeflag == tar.TypeReg:
			err, count = lay(root, name, entries), count+1
		default:
			err = errors.New("it is neither a file nor a folder: see `moorage krt check`")
		}
		if err != nil {
			return count, fmt.Errorf("%s in it: %w", header.Name, err)
		}
	}
}

func lay(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}
