// Openapi prints the OpenAPI document for the tools that deploy/openapi/check.sh runs.
package main

import (
	"log"
	"os"

	"gridcast/schemas"
)

func main() {
	if _, err := os.Stdout.Write(schemas.OpenAPIYAML()); err != nil {
		log.Fatal(err)
	}
}
