package schemas

// CompileText compiles the text of a schema file beside the common file.
func CompileText(file string, text []byte) error {
	_, err := compile(file, text)
	return err
}
