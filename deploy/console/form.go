package console

import (
	"encoding"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// errNotFound means that a path names nothing.
var errNotFound = errors.New("not found")

// field returns a field of a form without blanks around it.
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
