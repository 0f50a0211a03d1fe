package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"gridcast/builder/archive"
	"gridcast/builder/source/f1db"
	"gridcast/deploy/operator"
)

// maxUpload is the most bytes that an uploaded release may have: several times what one has.
const maxUpload = 128 << 20

// upload is the archive that was sent last. Between its preview and the answer to its question a
// browser without scripts cannot send the file again.
type upload struct {
	mu   sync.Mutex
	name string
	file []byte // an archive file
}

func (u *upload) keep(name string, file []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.name, u.file = name, file
}

// find returns the upload of the sum; false if another one came since.
func (u *upload) find(sum string) (operator.ImportArchive, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return operator.ImportArchive{File: u.file, Origin: u.name}, u.file != nil && archive.Sum(u.file) == sum
}

// parseImport reads a release or an archive file: one that is sent, or one at a path of the
// scheduler's machine.
func (c *Console) parseImport(r *http.Request) (operator.Action, error) {
	if sum := field(r, "upload"); sum != "" {
		d, ok := c.upload.find(sum)
		if !ok {
			return nil, errors.New("the file that you sent is no longer here: send it again")
		}
		return d, nil
	}
	path, name := field(r, "path"), field(r, "path")
	if file, header, err := r.FormFile("file"); err == nil {
		defer func() { _ = file.Close() }() // it was only read
		folder, err := os.MkdirTemp("", "gridcast-import-")
		if err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
		defer func() { _ = os.RemoveAll(folder) }() // what is left is of no use to anybody
		name = filepath.Base(header.Filename)
		if path, err = saved(folder, name, file); err != nil {
			return nil, err
		}
	}
	if path == "" {
		return nil, errors.New("choose a file, or enter the path of one on the scheduler's machine")
	}
	file, err := readRelease(path)
	if err != nil {
		return nil, fmt.Errorf("%s is neither an F1DB release nor an archive file: %w", name, err)
	}
	c.upload.keep(name, file)
	r.PostForm.Set("upload", archive.Sum(file))
	return operator.ImportArchive{File: file, Origin: name}, nil
}

func saved(folder, name string, from multipart.File) (path string, err error) {
	path = filepath.Join(folder, name)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	_, err = io.Copy(to, from)
	return path, errors.Join(err, to.Close())
}

// readRelease returns the archive file that is at the path, or that is made of the release there.
func readRelease(path string) ([]byte, error) {
	if file, err := os.ReadFile(path); err == nil { //nolint:gosec // an operator says where on this machine it lies
		if _, err := archive.Decode(bytes.NewReader(file)); err == nil {
			return file, nil
		}
	}
	a, _, err := f1db.Import(path, f1db.Options{})
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := archive.Encode(&file, a); err != nil {
		return nil, err
	}
	return file.Bytes(), nil
}
