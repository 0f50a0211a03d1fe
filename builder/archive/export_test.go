package archive

import (
	"github.com/go-json-experiment/json"

	"gridcast/builder/season"
)

// Line returns the line of a season.
func Line(s season.Season) ([]byte, error) {
	text, err := json.Marshal(&s, spelling)
	return append(text, '\n'), err
}

// ReadLine reads a line by the plan of a season, which returns false if it cannot, and by package json.
func ReadLine(text []byte) (fast season.Season, ok bool, slow season.Season, err error) {
	ok = newLineReader().fast(text, &fast)
	return fast, ok, slow, json.Unmarshal(text, &slow, spelling)
}

// Frames returns a base that has the compressed parts of an archive and none of its seasons, so that Pack writes every
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
