package builder_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
)

// TestGolden compares the versions at the turning points of a weekend with a readable file. It has the
// events and the paths of all documents that differ from the version before, and the documents of the season as a whole.
func TestGolden(t *testing.T) {
	qualified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	lightsOut := time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)
	b := service(t, qualified.Add(-time.Hour), policy())
	archive := &txtar.Archive{Comment: []byte("The Austrian weekend of 2024: what each build publishes anew, of the seasons from 2024 on.\n")}
	for _, step := range []struct {
		name string
		at   time.Time
	}{
		{"1-before-qualifying", qualified.Add(-time.Hour)},
		{"2-grid-known", qualified},
		{"3-lights-out", lightsOut},
		{"4-verified", lightsOut.Add(3 * time.Hour)},
	} {
		outcome := build(t, b, step.at)
		base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
		var anew strings.Builder
		for _, e := range outcome.Events {
			fmt.Fprintln(&anew, "event", e.Type)
		}
		list := len(archive.Files)
		archive.Files = append(archive.Files, txtar.File{Name: step.name + "/anew"})
		for _, e := range base.Manifest.Entries {
			reused := !strings.HasPrefix(e.Object, snapshots.ObjectKey(outcome.Version, e.Path))
			if !reused {
				fmt.Fprintln(&anew, e.Path)
			}
			if strings.HasPrefix(e.Path, "feeds/") || strings.HasPrefix(e.Path, catalog.Portraits) {
				continue // they have tests of their own
			}
			variant := must.Get(catalog.ParsePath(e.Path))(t)
			if reused || variant.Year != 0 && variant.Year < 2024 {
				continue
			}
			if alone := variant.Endpoint == catalog.Results || variant.Endpoint == catalog.Weekends; alone && variant.SessionKey > 0 {
				continue // the season's list says the same
			}
			switch variant.Endpoint {
			case catalog.Sessions: // the season's list is the same at length
				if variant.SessionKey != 2024011 {
					continue
				}
			case catalog.StandingsProgress, catalog.HeadToHead, catalog.Careers:
				if variant.Year == 0 || step.name[0] == '1' { // the weekend changes those of the season
					continue
				}
			}
			body := must.Get(base.Body(t.Context(), e))(t)
			// A row a line, for people; the bytes themselves have no white space.
			body = bytes.ReplaceAll(body, []byte(`},{"`), []byte("},\n{\""))
			archive.Files = append(archive.Files, txtar.File{Name: step.name + "/" + e.Path, Data: append(body, '\n')})
		}
		archive.Files[list].Data = []byte(anew.String())
	}
	golden.File(t, "testdata/austria-2024.txtar", txtar.Format(archive))
}
