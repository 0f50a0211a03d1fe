package check_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridcast/builder/check"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// A calendar and a feed of changes that are right, and the bodies that they are made from.
const (
	soundCalendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//gridcast//calendar//EN\r\n" +
		"BEGIN:VEVENT\r\nUID:2025001-race@gridcast\r\nSEQUENCE:1\r\nDTSTAMP:20250601T093000Z\r\nDTSTART:20250601T130000Z\r\nDTEND:20250601T150000Z\r\n" +
		"SUMMARY:Grand Prix A 2025: Race\r\nLOCATION:Ring\\, the old\r\n  one\\, Town\\, Italy\r\nSTATUS:CONFIRMED\r\nEND:VEVENT\r\n" +
		"BEGIN:VEVENT\r\nUID:2025002-race@gridcast\r\nSEQUENCE:0\r\nDTSTAMP:20250601T093000Z\r\nDTSTART;VALUE=DATE:20250608\r\n" +
		"SUMMARY:Cancelled: Grand Prix B 2025: Race\r\nLOCATION:Ring\\, Town\\, Italy\r\nSTATUS:CANCELLED\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	soundChanges = `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:uuid:1</id><title>Changes</title><updated>2025-06-01T09:30:00+00:00</updated><author><name>gridcast</name></author>
<entry><id>urn:uuid:2</id><title>B &amp; C cancelled</title><updated>2025-06-02T09:30:00+00:00</updated><summary>flood</summary></entry></feed>`
)

var feedBodies = map[string][]byte{
	"weekends/2025": []byte(`{"ok":true,"data":[` +
		`{"session_key":2025001,"circuit":{"name":"Ring, the old one","locality":"Town","country":"Italy"},"status":"scheduled","sessions":[{"session":"race","date":"2025-06-01","date_start":"2025-06-01T13:00:00+00:00"}]},` +
		`{"session_key":2025002,"circuit":{"name":"Ring","locality":"Town","country":"Italy"},"status":"cancelled","sessions":[{"session":"race","date":"2025-06-08"}]}]}`),
	"changes/all": []byte(`{"ok":true,"data":[{"session_key":2025002,"at":"2025-06-02T09:30:00+00:00"}]}`),
}

// TestFeeds breaks each feed in one way after the other.
func TestFeeds(t *testing.T) {
	known := catalog.Known{Seasons: []int{2024, 2025}, Current: 2025}
	for i, sound := range []string{soundCalendar, soundChanges} {
		if err := check.Feed(catalog.Feeds[i], []byte(sound), known, feedBodies); err != nil {
			t.Fatalf("%s: %v", catalog.Feeds[i].Path, err)
		}
	}
	golden.Table(t, "testdata/feeds.txt", func(input string) string {
		path, change, _ := strings.Cut(input, " ")
		was, is, _ := strings.Cut(change, " => ")
		i := slices.IndexFunc(catalog.Feeds, func(f catalog.Feed) bool { return f.Path == path })
		broken := must.Replace(t, []string{soundCalendar, soundChanges}[i], was, is)
		return fmt.Sprint(check.Feed(catalog.Feeds[i], []byte(broken), known, feedBodies))
	})
	for _, tt := range []struct {
		decision string
		feed     catalog.Feed
		body     string
		bodies   map[string][]byte
		want     bool // it passes
	}{
		{"weekends that are not at hand", catalog.Feeds[0], soundCalendar, map[string][]byte{}, true},
		{"weekends that are no JSON", catalog.Feeds[0], soundCalendar, map[string][]byte{"weekends/2025": []byte("{")}, false},
		{"changes that are not at hand", catalog.Feeds[1], soundChanges, map[string][]byte{}, true},
		{"changes that are no JSON", catalog.Feeds[1], soundChanges, map[string][]byte{"changes/all": []byte("{")}, false},
		{"a feed without a check", catalog.Feed{Path: "/news"}, "", feedBodies, false},
	} {
		err := check.Feed(tt.feed, []byte(tt.body), known, tt.bodies)
		must.Hold(t, (err == nil) == tt.want, "%s: got %v, want that it passes: %t", tt.decision, err, tt.want)
	}
}

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
		must.Do(t, err)
	}
	must.Do(t, archive.Close())
	return buffer.Bytes()
}
