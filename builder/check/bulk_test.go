package check_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gridcast/builder/check"
	"gridcast/deploy/golden"
)

// file is a file of a download.
type file struct{ name, text string }

// TestBulkFaults breaks a small download in one way after the other. The golden file has the faults.
func TestBulkFaults(t *testing.T) {
	documents := map[string][]byte{
		"calendar": []byte(`{"ok":true,"data":[{"session_key":2025001,"gp_name":"A"},{"session_key":2025002,"gp_name":"B"}]}`),
		"accuracy": []byte(`{"ok":true,"data":{"races_evaluated":1}}`),
	}
	whole := func() []file {
		return []file{
			{"2025/README.txt", "A season."},
			{"2025/calendar.ndjson", `{"session_key":2025001,"gp_name":"A"}` + "\n"},
			{"2025/calendar.csv", "session_key,gp_name\r\n2025001,A\r\n"},
			{"2025/accuracy.ndjson", `{"races_evaluated":1}` + "\n"},
			{"2025/accuracy.csv", "races_evaluated\r\n1\r\n"},
			{"2025/calendar_sessions.csv", "session_key,session\r\n"},
		}
	}
	var got strings.Builder
	for _, row := range []struct {
		name      string
		edit      func(files []file) []file
		documents map[string][]byte            // nil: all
		damage    func(download []byte) []byte // of the zip
	}{
		{name: "nothing is wrong"},
		{name: "no zip", damage: func(download []byte) []byte { return download[:len(download)-30] }},
		{name: "another checksum", damage: func(download []byte) []byte {
			return bytes.Replace(download, []byte("A season."), []byte("A reason."), 1)
		}},
		{name: "a compression that nobody knows", damage: func(download []byte) []byte {
			download[bytes.Index(download, []byte("PK\x01\x02"))+10] = 99 // the method, in the directory
			return download
		}},
		{name: "a file twice", edit: func(files []file) []file { return append(files, files[0]) }},
		{name: "an empty file", edit: func(files []file) []file { files[0].text = ""; return files }},
		{name: "lines without a document", edit: func(files []file) []file { return append(files, file{"2025/weekends.ndjson", "{}\n"}) }},
		{name: "a document that is no list of objects", documents: map[string][]byte{"calendar": []byte(`{"data":[1]}`), "accuracy": documents["accuracy"]}},
		{name: "another record than the document", edit: func(files []file) []file { files[1].text = strings.Replace(files[1].text, "A", "C", 1); return files }},
		{name: "a record of a round that is left out", edit: func(files []file) []file {
			files[1].text += `{"session_key":2025002,"gp_name":"B"}` + "\n"
			return files
		}},
		{name: "a document without lines", edit: func(files []file) []file { return append(files[:3:3], files[4:]...) }},
		{name: "rows of another length", edit: func(files []file) []file { files[2].text += "2025001\r\n"; return files }},
		{name: "a table without columns", edit: func(files []file) []file { files[2].text = "\r\n"; return files }},
		{name: "a column without a name", edit: func(files []file) []file { files[5].text = "session_key,\r\n"; return files }},
		{name: "a column twice", edit: func(files []file) []file { files[5].text = "session_key,session_key\r\n"; return files }},
		{name: "a row too many", edit: func(files []file) []file { files[2].text += "2025003,C\r\n"; return files }},
		{name: "a row of a round that is left out", edit: func(files []file) []file { files[5].text += "2025002,race\r\n"; return files }},
		{name: "a row without a session key", edit: func(files []file) []file { files[5].text += "none,race\r\n"; return files }},
	} {
		files := whole()
		if row.edit != nil {
			files = row.edit(files)
		}
		if row.documents == nil {
			row.documents = documents
		}
		download := zipped(t, files)
		if row.damage != nil {
			download = row.damage(download)
		}
		fmt.Fprintf(&got, "%s\n", row.name)
		if err := check.Bulk(download, row.documents, []int64{2025002}); err != nil {
			fmt.Fprintf(&got, "\t%v\n", err)
		}
	}
	golden.File(t, "testdata/bulk-faults.txt", got.String())
}

// zipped makes a download of files that are not compressed.
func zipped(t *testing.T, files []file) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, f := range files {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Store})
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
