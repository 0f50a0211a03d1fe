package sourcetest

import (
	"fmt"
	"net/http"
	"testing"
)

// Jolpica starts the recordings of Jolpica: the seasons 2023 and 2024. Other seasons have no rows, as
// in Jolpica itself.
func Jolpica(t testing.TB) *Replay {
	t.Helper()
	p := NewReplay(t, "/ergast/f1", "jolpica-generated")
	p.Missing = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"MRData":{"limit":%q,"offset":%q,"total":"0","RaceTable":{"Races":[]}}}`,
			r.URL.Query().Get("limit"), r.URL.Query().Get("offset"))
	}
	return p
}
