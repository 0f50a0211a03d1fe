package stewards_test

import (
	"encoding/json"
	"testing"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/stewards"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
)

// written is a classification as somebody writes it down: codes, places and points.
func written(t *testing.T, r *almanac.Round, edit func([]map[string]any) []map[string]any) []byte {
	t.Helper()
	var rows []map[string]any
	for _, row := range r.Source() {
		line := map[string]any{"driver": r.Code(row.Driver)}
		if row.Position > 0 {
			line["position"], line["points"] = row.Position, row.Points
		}
		rows = append(rows, line)
	}
	document, err := json.Marshal(map[string]any{"rows": edit(rows)})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func asWritten(rows []map[string]any) []map[string]any { return rows }

func TestReadClassification(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows, _, err := stewards.ReadClassification(r, written(t, r, asWritten))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range almanac.Compare(r.Source(), rows) {
		if p.Changed() {
			t.Errorf("%s: read %+v, want %+v", p.Driver, p.After, p.Before)
		}
	}
	// The printed classification can be read again.
	document, err := json.Marshal(ledger.Classification{Revision: 3, Rows: r.Source()})
	if err != nil {
		t.Fatal(err)
	}
	if again, _, err := stewards.ReadClassification(r, document); err != nil || len(again) != len(rows) {
		t.Errorf("as the ledger has it: got %d rows and error %v", len(again), err)
	}
}

// Before the source has a result, the entries name the drivers of the session.
func TestReadClassificationAheadOfTheSource(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	document := written(t, w.Round(testseason.Belgium.Over(), testseason.Belgium.Key), asWritten)
	r := w.Round(testseason.Belgium.Start.Add(1), testseason.Belgium.Key)
	if r.Source() != nil {
		t.Fatal("the source has a result at lights out")
	}
	rows, _, err := stewards.ReadClassification(r, document)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Team != "mercedes" || rows[0].Engine != "mercedes" {
		t.Errorf("the winner drove for %s with %s, want Mercedes", rows[0].Team, rows[0].Engine)
	}
}

func TestClassificationsThatAreRefused(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	sentences := make(map[string]string)
	for name, document := range map[string][]byte{
		"a driver is missing":      written(t, r, func(rows []map[string]any) []map[string]any { return rows[1:] }),
		"an unknown code":          written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["driver"] = "SEN"; return rows }),
		"a driver of another race": written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["driver"] = "BEA"; return rows }),
		"another team":             written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["team"] = "ferrari"; return rows }),
		"an unknown field":         written(t, r, func(rows []map[string]any) []map[string]any { rows[0]["place"] = 1; return rows }),
		"two documents":            append(written(t, r, asWritten), "{}"...),
		"cut off":                  []byte(`{"rows": [`),
	} {
		rows, _, err := stewards.ReadClassification(r, document)
		if err == nil {
			t.Errorf("%s: got %d rows, want an error", name, len(rows))
			continue
		}
		sentences[name] = err.Error()
	}
	golden.Inputs(t, "testdata/document.golden", sentences)
}
