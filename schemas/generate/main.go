// Command generate makes the parts of the contract that follow from the code: the JSON Schemas, the OpenAPI paths and
// the contracts of the additive endpoints, and the table of endpoints in the README. Run it after a change with "go generate ./schemas".
// A test fails while a committed file differs.
//
// Its sources are the structs of schemas/wire with their comments, and the table of schemas/catalog with the comments behind
// its names. The texts and examples of schemas/endpoints.yaml come into the OpenAPI document as they are.
//
//   - The comment above a field is its description for clients. A field without one has the comment behind the name of
//     its type, if there is one.
//   - A field with omitzero is optional. A number that is optional, and no pointer, is at least 1; other numbers are at
//     least 0. An optional list has a row. A string is not empty. An optional bool is true.
//   - A tag that is named for a keyword of JSON Schema says otherwise: enum, format, pattern, minimum ("none" for no
//     limit), maximum, minItems, maxItems, type.
//   - A named type is a reference to the definition of its name, in common.schema.json if it is there. A named string
//     has its constants as values. An alias may have tags for all its fields, as directives such as //schema:enum.
//   - //schema:name gives a struct's schema another name. Structs of one name share a schema, and a field that only some
//     of them have is optional there. //schema:when FIELD=VALUE,VALUE: +NAME -NAME says which fields are there and which
//     are not; the //schema:else after it is about all other values, and so is the next //schema:when.
//   - A body is the alias with the name of its endpoint: ResultsBody of /results. The first paragraph of its comment
//     describes the body, the second one its data. StandingsProgressConstructorsBody is the body for a value of the
//     parameter type.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes the files of Files that differ. Root is the directory of package schemas.
func run(root string) error {
	files, err := Files(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if old, err := os.ReadFile(filepath.Join(root, name)); err == nil && string(old) == string(files[name]) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, name), files[name], 0o644); err != nil { //nolint:gosec // a file of the source tree
			return err
		}
		fmt.Println(name)
	}
	return nil
}

// Files returns the generated files by their names below root, the directory of package schemas.
func Files(root string) (map[string][]byte, error) {
	structs, err := readTypes(filepath.Join(root, "wire"), filepath.Join(root, "v1/common.schema.json"))
	if err != nil {
		return nil, err
	}
	names, err := readNames(filepath.Join(root, "catalog/catalog.go"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if err := schemaFiles(files, structs); err != nil {
		return nil, err
	}
	if files["paths.yaml"], err = paths(structs, names, filepath.Join(root, "endpoints.yaml")); err != nil {
		return nil, err
	}
	if files["contracts.go"], err = contracts(structs, names); err != nil {
		return nil, err
	}
	const readme = "../README.md"
	if files[readme], err = readmeTable(filepath.Join(root, readme), names); err != nil {
		return nil, err
	}
	return files, nil
}
