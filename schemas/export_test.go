package schemas

// Files lists the schema files.
func Files() []string { return schemaFiles() }

// Source returns a schema file as it is embedded, with closed objects.
func Source(file string) []byte { return source(file) }

// CompileText compiles the text of a schema file beside the common file.
func CompileText(file string, text []byte) error {
	_, err := compile(newCompiler(), file, text)
	return err
}

// Check compares a body with a schema file.
func Check(file string, body []byte) error {
	for i := range contracts {
		if contracts[i].file == file {
			return check(contracts[i].schema(), body)
		}
	}
	panic("no contract has the file " + file)
}
