package archive

// Frames returns a base that has the compressed parts of an archive and none of its seasons, so that Encode writes every
// line and compresses only those that differ.
func Frames(s Stored) Stored { return Stored{frames: s.frames} }

// Recompress returns the file of an archive with frames of another compressor.
func Recompress(s Stored, compress func(lines []byte) ([]byte, error)) ([]byte, error) {
	var file []byte
	for _, p := range s.parts {
		lines, err := decompress(newDecoder(), s.frames[p.SHA256], nil)
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
