package edge

import (
	"net/http"

	"gridcast/edge/resident"
	"gridcast/schemas"
	"gridcast/schemas/docs"
)

// documents are the pages that never change, by path.
func documents() map[string]*resident.Response {
	yaml := resident.NewField("Content-Type", "application/yaml; charset=utf-8")
	return map[string]*resident.Response{
		"/openapi.json": document(resident.JSON, schemas.OpenAPIJSON()),
		"/docs":         document(html, docs.Page()),
		"/openapi.yaml": document(yaml, schemas.OpenAPIYAML()),
	}
}

// document makes the response of something that is the same for the life of the process.
func document(contentType resident.Field, body []byte) *resident.Response {
	fiveMinutes := resident.NewField("Cache-Control", "public, max-age=300")
	return &resident.Response{Status: http.StatusOK, Fields: resident.Common(contentType, fiveMinutes), Body: body}
}
