package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// errNoTypeScript means that the machine lacks the generator of the client for TypeScript.
var errNoTypeScript = errors.New("openapi-typescript is not in .var/node: run deploy/tools/npm.sh, which needs npm")

// needs finds the modules of the client for Go among those of its generator.
var needs = regexp.MustCompile(`(?m)^\t(github.com/oapi-codegen/runtime|go.yaml.in/yaml/v3|github.com/apapsch/go-jsonmerge/v2|github.com/google/uuid) v.*$`)

// clients generates the typed clients from the OpenAPI document: folders go and typescript below to. Without the generator
// of the second it makes the first, and returns errNoTypeScript.
func (r release) clients(to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	source, err := filepath.Abs(r.Source)
	if err != nil {
		return err
	}
	write := func(name, text string) error {
		path := filepath.Join(to, name)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)) //nolint:gosec // G703: the names are those below
	}
	run := func(folder string, words ...string) ([]byte, error) {
		cmd := exec.Command(words[0], words[1:]...) //nolint:gosec // G204: a fixed program of this checkout
		cmd.Dir, cmd.Env = filepath.Join(source, folder), append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0")
		output, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%s: %w\n%s", strings.Join(words[:3], " "), err, exit.Stderr)
		}
		return output, err
	}
	document, err := run(".", "go", "run", "./deploy/openapi")
	if err != nil {
		return err
	}
	if err := write("openapi.yaml", string(document)); err != nil {
		return err
	}
	code, err := run("deploy/openapi/oapi", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "gridcast", filepath.Join(to, "openapi.yaml"))
	if err != nil {
		return err
	}
	module, err := os.ReadFile(filepath.Join(source, "deploy/openapi/oapi/go.mod"))
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(source, "deploy/openapi/oapi/go.sum"))
	if err != nil {
		return err
	}
	needed := needs.FindAllString(string(module), -1)
	err = errors.Join(write("go/client.go", string(code)), write("go/go.sum", string(sums)),
		write("go/go.mod", "// The typed client of gridcast "+r.Version+", generated from openapi.yaml.\nmodule gridcast/client\n\ngo 1.26.0\n\nrequire (\n"+strings.Join(needed, "\n")+"\n)\n"))
	if err != nil {
		return err
	}

	generator := filepath.Join(source, ".var/node/node_modules/.bin/openapi-typescript")
	if _, err := os.Stat(generator); err != nil {
		return errNoTypeScript
	}
	if _, err := run(".", generator, filepath.Join(to, "openapi.yaml"), "-o", filepath.Join(to, "typescript/types.ts")); err != nil {
		return err
	}
	pinned, err := os.ReadFile(filepath.Join(source, "deploy/tools/package.json"))
	if err != nil {
		return err
	}
	var tools struct{ Dependencies map[string]string }
	if err := json.Unmarshal(pinned, &tools); err != nil {
		return err
	}
	return errors.Join(
		write("typescript/package.json", fmt.Sprintf("{\n  \"name\": \"gridcast-client\",\n  \"version\": %q,\n  \"dependencies\": { \"openapi-fetch\": %q }\n}\n", strings.TrimPrefix(r.Version, "v"), tools.Dependencies["openapi-fetch"])),
		write("typescript/client.ts", `import createClient from "openapi-fetch";
import type { paths } from "./types";

// gridcast returns the typed client of a service, such as https://api.example.com, with a key.
export const gridcast = (baseUrl: string, key: string) => createClient<paths>({ baseUrl, headers: { "X-API-Key": key } });
`))
}
