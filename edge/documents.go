package edge

import (
	"fmt"

	"github.com/valyala/fasthttp"

	"gridcast/edge/resident"
	"gridcast/schemas"
	"gridcast/schemas/docs"
	"gridcast/snapshots"
)

// documents are the pages that never change, by path.
func documents() (map[string]*resident.Page, error) {
	yaml := resident.NewField("Content-Type", "application/yaml; charset=utf-8")
	pages := map[string]*resident.Page{}
	for _, d := range []struct {
		path        string
		contentType resident.Field
		body        []byte
	}{
		{"/openapi.json", resident.JSON, schemas.OpenAPIJSON()},
		{"/openapi.yaml", yaml, schemas.OpenAPIYAML()},
		{"/docs", html, docs.Page()},
	} {
		page, err := document(d.contentType, d.body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.path, err)
		}
		pages[d.path] = page
	}
	return pages, nil
}

// document makes the page of something that is the same for the life of the process. It is
// compressed here and not by the builder, since it is part of this program.
func document(contentType resident.Field, body []byte) (*resident.Page, error) {
	return resident.NewPage(&snapshots.Body{
		Entry:    snapshots.Entry{ETag: snapshots.ETag(snapshots.Digest(body))},
		Identity: body,
		Encoded: map[string][]byte{
			snapshots.GZ:  fasthttp.AppendGzipBytes(nil, body),
			snapshots.ZST: fasthttp.AppendZstdBytes(nil, body),
			snapshots.BR:  fasthttp.AppendBrotliBytes(nil, body),
		},
	}, contentType, resident.NewField("Cache-Control", "public, max-age=300"))
}
