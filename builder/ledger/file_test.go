package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// The bytes of a file never change, because outsiders hold us to them.
func TestFileBytes(t *testing.T) {
	freeze := ledger.Freeze(monaco, pick, start, true)
	freeze.ID, freeze.At, freeze.Actor = "A1", opened, "builder <1>"
	got := must.Get(ledger.File{Seq: 3, Previous: "ab12", Kind: ledger.Real, Events: one(freeze)}.Encode())(t)
	want := `{"seq":3,"previous":"ab12","format":3,"kind":"real","events":[{"id":"A1","type":"pick_frozen","at":"2026-06-01T09:00:00Z",` +
		`"actor":"builder <1>","session_key":2026008,"pick":{"p1":"leclerc","p2":"norris","p3":"russell","win_probability":0.41,` +
		`"model":"r2/1"},"start":"2026-06-07T13:00:00Z","grid_known":true}],` +
		`"checksum":"6a0e59dbbc896615f0cf7eeb5a961af8eba15a5bfb151359bc669abee67a18be"}`
	must.Equal(t, "bytes", want, string(got))
}

func TestDecodeFileTakesOneFormOnly(t *testing.T) {
	good := must.Get(ledger.File{Seq: 1, Kind: ledger.Real, Events: one(ledger.Event{ID: "A1", Type: ledger.Opened, At: opened, Actor: "b", Kind: ledger.Real})}.Encode())(t)
	must.Get(ledger.DecodeFile(good))(t)
	for name, edit := range map[string]func(string) string{
		"a newline at the end": func(s string) string { return s + "\n" },
		"a space":              func(s string) string { return strings.Replace(s, ":", ": ", 1) },
		"an unknown field":     func(s string) string { return strings.Replace(s, `{`, `{"by":"me",`, 1) },
		"a field twice":        func(s string) string { return strings.Replace(s, `"seq":1`, `"seq":1,"seq":1`, 1) },
		"another order":        func(s string) string { return strings.Replace(s, `"seq":1,"previous":""`, `"previous":"","seq":1`, 1) },
		"another offset":       func(s string) string { return strings.Replace(s, "09:00:00Z", "09:00:00+00:00", 1) },
		"an escape":            func(s string) string { return strings.Replace(s, `"b"`, `"\u0062"`, 1) },
		"another format":       func(s string) string { return strings.Replace(s, `"format":3`, `"format":2`, 1) },
		"no format":            func(s string) string { return strings.Replace(s, `"format":3,`, ``, 1) },
		"another number":       func(s string) string { return strings.Replace(s, `"seq":1`, `"seq":2`, 1) },
		"no checksum":          func(s string) string { before, _, _ := strings.Cut(s, `,"checksum"`); return before + "}" },
		"nothing":              func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			edited := edit(string(good))
			if edited == string(good) {
				t.Fatal("the case changes nothing")
			}
			f, err := ledger.DecodeFile([]byte(edited))
			if err == nil {
				t.Errorf("%s was read as %+v", edited, f)
			}
			golden.Sentence(t, t.Name(), err)
		})
	}
}

// Text that would not survive being written down is refused, not mangled.
func TestAppendRefusesBrokenText(t *testing.T) {
	l := openWith(t, newStore(t))
	s := session(t, l.Fold())
	must.Fail(t, "a reason that is not UTF-8 was accepted", appendEvents(t.Context(), l, opened, s.Cancel("caf\xe9")...))
	by := pick
	by.Model = "caf\xe9"
	must.Fail(t, "a model that is not UTF-8 was accepted", appendEvents(t.Context(), l, opened, ledger.Freeze(monaco, by, start, true)))
	by.WinProbability = math.NaN()
	must.Fail(t, "a file with a number that JSON lacks", must.Err(ledger.File{Events: one(ledger.Freeze(monaco, by, start, true))}.Encode()))
	golden.Sentence(t, t.Name(), appendEvents(t.Context(), l, opened, s.Move(start, start.AddDate(8000, 0, 0), "a year of five digits")))
	must.Succeed(t, "a reason in UTF-8", appendEvents(t.Context(), l, opened, s.Cancel("Überschwemmung & <Schlamm>")...))
}

// DecodeFile accepts only the bytes that Encode makes. Readers and the audit survive every input.
func FuzzDecodeFile(f *testing.F) {
	store := memblob.New()
	must.Do(f, runScript(f.Context(), store))
	for seq := int64(1); seq <= 6; seq++ {
		object := must.Get(store.Get(f.Context(), ledger.Key(seq), blob.MaxDocument))(f)
		f.Add(object.Data)
	}
	f.Add([]byte(`{"seq":2,"events":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := ledger.DecodeFile(data); err == nil {
			again, err := file.Encode()
			if err != nil || !bytes.Equal(again, data) {
				t.Fatalf("decoded %s, encoded %s (%v)", data, again, err)
			}
		}
		// The events alone, brought by a file that is right in everything else.
		var file ledger.File
		if json.Unmarshal(data, &file) != nil {
			return
		}
		store := memblob.New()
		l := openWith(t, store)
		file.Seq, file.Previous, file.Kind = l.Head().Seq+1, l.Head().Hash, ledger.Real
		planted, err := file.Encode()
		if err != nil {
			return
		}
		must.Get(store.Create(t.Context(), ledger.Key(file.Seq), planted))(t)
		var damage *ledger.DamageError
		_, refreshErr := l.Refresh(t.Context())
		if refreshErr != nil && !errors.As(refreshErr, &damage) {
			t.Fatalf("refresh: %v", refreshErr)
		}
		if r := audit(t, store); refreshErr != nil && r.Green() {
			t.Fatalf("a reader refuses the ledger with %v, but the audit is green", refreshErr)
		}
	})
}

func calendar(year int, names ...season.GrandPrixID) season.Season {
	s := season.Season{Year: year}
	for i, name := range names {
		s.Rounds = append(s.Rounds, season.Round{Number: i + 1, GrandPrix: name})
	}
	return s
}

func TestAssignKeys(t *testing.T) {
	l := must.Get(ledger.Open(t.Context(), newStore(t), ledger.Real, opened, "builder", ""))(t)
	// Each calendar is seen after the ones before it.
	for _, c := range []struct {
		name    string
		seasons []season.Season
		want    []ledger.KeyAssignment
	}{
		{"two new seasons", []season.Season{calendar(2025, "australia"), calendar(2026, "australia", "china", "japan")}, []ledger.KeyAssignment{
			{Session: 2025001, Year: 2025, GrandPrix: "australia"},
			{Session: 2026001, Year: 2026, GrandPrix: "australia"},
			{Session: 2026002, Year: 2026, GrandPrix: "china"},
			{Session: 2026003, Year: 2026, GrandPrix: "japan"},
		}},
		{"nothing new", []season.Season{calendar(2026, "australia", "china", "japan")}, nil},
		{"renumbered", []season.Season{calendar(2026, "japan", "australia", "china")}, nil},
		{"one vanished", []season.Season{calendar(2026, "australia", "japan")}, nil},
		{"a new one in the place of another", []season.Season{calendar(2026, "australia", "bahrain", "japan")}, []ledger.KeyAssignment{
			{Session: 2026004, Year: 2026, GrandPrix: "bahrain"},
		}},
		{"one whose number is free goes first", []season.Season{calendar(2026, "portugal", "china", "japan", "bahrain", "spain")}, []ledger.KeyAssignment{
			{Session: 2026006, Year: 2026, GrandPrix: "portugal"},
			{Session: 2026005, Year: 2026, GrandPrix: "spain"},
		}},
		{"no number", []season.Season{{Year: 2027, Rounds: []season.Round{{GrandPrix: "qatar"}, {Number: 1, GrandPrix: "texas"}}}}, []ledger.KeyAssignment{
			{Session: 2027002, Year: 2027, GrandPrix: "qatar"},
			{Session: 2027001, Year: 2027, GrandPrix: "texas"},
		}},
		{"two of one taken number", []season.Season{{Year: 2026, Rounds: []season.Round{{Number: 1, GrandPrix: "qatar"}, {Number: 1, GrandPrix: "texas"}}}}, []ledger.KeyAssignment{
			{Session: 2026007, Year: 2026, GrandPrix: "qatar"},
			{Session: 2026008, Year: 2026, GrandPrix: "texas"},
		}},
	} {
		got, err := ledger.AssignKeys(l.Fold(), c.seasons)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", c.name, diff)
		}
		if len(got) > 0 {
			mustAppend(t, l, opened, ledger.Event{Type: ledger.KeysAssigned, Keys: got})
		}
	}
}

func TestAssignKeysRunsOut(t *testing.T) {
	l := openWith(t, newStore(t))
	far := season.Season{Year: 2026, Rounds: []season.Round{{Number: 1000, GrandPrix: "mars"}}}
	if got, err := ledger.AssignKeys(l.Fold(), []season.Season{far}); err == nil {
		t.Errorf("round 1000: got %v, want an error", got)
	}
	far.Rounds = []season.Round{{Number: 998, GrandPrix: "mars"}, {Number: 998, GrandPrix: "venus"}}
	mustAppend(t, l, opened, keysEvent(must.Get(ledger.AssignKeys(l.Fold(), []season.Season{far}))(t)...))
	far.Rounds[0].GrandPrix = "pluto"
	must.Fail(t, "a third round 998", must.Err(ledger.AssignKeys(l.Fold(), []season.Season{far})))
}
