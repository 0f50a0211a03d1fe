// Package schemas is the public contract in machine-readable form: the OpenAPI document, the
// JSON Schema of every body, and the check that a body keeps to them.
//
// The sources are openapi.yaml, paths.yaml, endpoints.yaml and v1/*.schema.json, which this package embeds. It parses and
// compiles each of them on first use. All functions are safe for concurrent use.
// An embedded file that does not parse is a bug that the tests find; the program panics.
//
// Package generate makes paths.yaml and the schema files of the additive endpoints. All other sources are written by hand:
// openapi.yaml with its six first endpoints, their schemas, and those of the service, of errors and of webhooks. The texts and
// examples of the additive endpoints stand in endpoints.yaml.
package schemas

import (
	"embed"
	"regexp"
)

//go:generate go run ./generate
//go:embed openapi.yaml paths.yaml endpoints.yaml v1/*.schema.json
var sources embed.FS

func source(name string) []byte {
	b, err := sources.ReadFile(name)
	if err != nil {
		panic("BUG: schemas: " + err.Error())
	}
	return b
}

// closing forbids members that a schema does not list. Only the checks of our own bodies have it.
var closing = regexp.MustCompile(`"additionalProperties": false,\s*`)

// published returns an embedded file as callers get it. Its objects are open, because a minor version may
// add members, and a client that checks an answer must not refuse them.
func published(name string) []byte { return closing.ReplaceAll(source(name), nil) }
