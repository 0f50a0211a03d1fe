package console

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/source/f1db"
	"gridcast/deploy/operator"
)

// errNotFound means that a path names nothing.
var errNotFound = errors.New("not found")

func field(r *http.Request, name string) string { return strings.TrimSpace(r.PostFormValue(name)) }

// decode reads the fields of a struct from the path and the form of a request. The name of a field is the
// one on the command line, or its tag form; "-" leaves the field out. The tag unit is appended to a number,
// so that a form can ask for days. A field that is required, or has a default on the command line, must be
// in the form. A method ReadForm reads the rest.
func decode(r *http.Request, into any) error {
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("the form cannot be read: %w", err)
	}
	if err := decodeStruct(r, reflect.ValueOf(into).Elem()); err != nil {
		return err
	}
	if rest, ok := into.(interface {
		ReadForm(func(string) string) error
	}); ok {
		return rest.ReadForm(func(name string) string { return field(r, name) })
	}
	return nil
}

func decodeStruct(r *http.Request, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if err := decodeStruct(r, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		name := strings.ToLower(f.Name)
		for _, tag := range []string{"name", "form"} {
			if given := f.Tag.Get(tag); given != "" {
				name = given
			}
		}
		if name == "-" {
			continue
		}
		if text := r.PathValue(name); text != "" {
			if err := set(v.Field(i), text, ""); err != nil {
				return fmt.Errorf("%w: no %s %q", errNotFound, name, text)
			}
			continue
		}
		text := strings.TrimSpace(strings.Join(r.PostForm[name], " "))
		if text == "" {
			if _, required := f.Tag.Lookup("required"); required || f.Tag.Get("default") != "" {
				return fmt.Errorf("%s is missing: enter it", name)
			}
			continue
		}
		if err := set(v.Field(i), text, f.Tag.Get("unit")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// set parses a text into a value. unit is appended to a number.
func set(v reflect.Value, text, unit string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch into := v.Addr().Interface().(type) {
	case *time.Time: // as a browser gives it, which is UTC here, or as an instant
		for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
			if t, err := time.Parse(layout, text); err == nil {
				*into = t.UTC()
				return nil
			}
		}
		return fmt.Errorf("%q: enter a day and an hour, UTC", text)
	case *time.Duration:
		d, err := time.ParseDuration(text + unit)
		if err != nil {
			return fmt.Errorf("%q: enter a number", text)
		}
		*into = d.Round(time.Second)
		return nil
	case encoding.TextUnmarshaler:
		return into.UnmarshalText([]byte(text + unit))
	case *[]string:
		*into = strings.Fields(strings.ReplaceAll(text, ",", " "))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q: enter a number", text)
		}
		v.SetInt(n)
	default:
		panic(fmt.Sprintf("BUG: no form has a %s", v.Type()))
	}
	return nil
}

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
	return archive.Encode(a, archive.Stored{})
}
