package edge

import (
	"gridcast/edge/resident"
)

// documents are the pages that never change, by path.
func documents() (map[string]*resident.Response, error) {
	return map[string]*resident.Response{}, nil
}
