package console

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"gridcast/builder/archive"
	"gridcast/builder/source/f1db"
	"gridcast/deploy/operator"
)

// maxUpload limits an uploaded release, in bytes, to several times its usual size.
const maxUpload = 128 << 20

// parseImport reads an uploaded release or archive file, or one at a path of the scheduler's machine.
func (c *Console) parseImport(r *http.Request) (operator.Action, error) {
	if sum := field(r, "upload"); sum != "" {
		if last := c.upload.Load(); last != nil && last.Archive.SHA256 == sum {
			return *last, nil
		}
		return nil, errors.New("the file that you sent is no longer here: send it again")
	}
	path, name := field(r, "path"), field(r, "path")
	if file, header, err := r.FormFile("file"); err == nil {
		defer func() { _ = file.Close() }() // read only
		copied, err := os.CreateTemp("", "gridcast-import-")
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		name, path = filepath.Base(header.Filename), copied.Name()
		defer func() { _ = os.Remove(copied.Name()) }() // a temporary file
		_, err = io.Copy(copied, file)
		if err := errors.Join(err, copied.Close()); err != nil {
			return nil, fmt.Errorf("import %s: %w", name, err)
		}
	}
	if path == "" {
		return nil, errors.New("choose a file, or enter the path of one on the scheduler's machine")
	}
	stored, err := readRelease(path)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	d := operator.ImportArchive{Archive: stored, Origin: name}
	c.upload.Store(&d)
	r.PostForm.Set("upload", stored.SHA256)
	return d, nil
}

// readRelease reads an archive file, or converts a release into one.
func readRelease(path string) (archive.Stored, error) {
	stored, notArchive := archive.ReadFile(path) // an operator may name any file of this machine
	if notArchive == nil || errors.Is(notArchive, fs.ErrNotExist) {
		return stored, notArchive
	}
	a, _, err := f1db.Import(path, f1db.Options{})
	if err != nil {
		return archive.Stored{}, fmt.Errorf("it is neither an archive file (%w) nor an F1DB release (%w)", notArchive, err)
	}
	return archive.Pack(a, archive.Stored{})
}
