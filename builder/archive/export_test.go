package archive

// Recompress returns the file of an archive with frames of another compressor.
func Recompress(s Stored, compress func(lines []byte) ([]byte, error)) ([]byte, error) {
	var file []byte
	for _, p := range s.parts {
		lines, err := decompress(s.frames[p.SHA256])
		if err != nil {
			return nil, err
		}
		frame, err := compress(lines)
		if err != nil {
			return nil, err
		}
		file = append(file, frame...)
	}
	return file, nil
}
