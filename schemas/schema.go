package schemas

import (
	"bytes"
	"errors"
	"path"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compile compiles the text of a schema file, which may refer to the common file. It checks formats, and asks for no
// other file.
func compile(file string, text []byte) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(commonAlone{})
	for name, text := range map[string][]byte{commonFile: source(commonFile), file: text} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if err := c.AddResource(base+path.Base(name), document); err != nil {
			return nil, err
		}
	}
	return c.Compile(base + path.Base(file))
}

// base is the address below which the schema files refer to each other.
const base = "gridcast:///"

// commonAlone refuses a reference to a third file.
type commonAlone struct{}

func (commonAlone) Load(string) (any, error) {
	return nil, errors.New("only " + path.Base(commonFile) + " may be referred to")
}
