package service_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/terminal"
)

// TestGrowth runs through the weeks from the first race of 2026 on a store of all seasons.
func TestGrowth(t *testing.T) {
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		t.Skip("runs some weeks on all seasons, some minutes; make season does")
	}
	host, clock := newsFrom(t, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2026, 1950, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, true)
		before := u.sizes(t)
		for u.step(t, lastWord) {
		}
		u.wantGrowth(t, before)
		if size := u.sizes(t)[""].bytes; size > 22<<20 {
			t.Errorf("the store has %d bytes, want at most 22 MB", size)
		}
	})
}

// folderSize is the content of a folder of a store.
type folderSize struct {
	bytes   int64
	objects int
}

// sizes returns the sizes of the folders, and of the whole store under the empty name.
func (u *unattended) sizes(t *testing.T) map[string]folderSize {
	t.Helper()
	sizes := map[string]folderSize{}
	for info, err := range u.store.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		folder, _, _ := strings.Cut(info.Key, "/")
		for _, name := range []string{folder, ""} {
			size := sizes[name]
			sizes[name] = folderSize{size.bytes + info.Size, size.objects + 1}
		}
	}
	return sizes
}

// wantGrowth checks that a revision of the source adds at most 60 KB of archive and documents to the store, and
// prints the growth by folder. The documents of a source are the last two, beside its state.
func (u *unattended) wantGrowth(t *testing.T, before map[string]folderSize) {
	t.Helper()
	after := u.sizes(t)
	_, revisions := u.host.Served()
	rows := make([][]any, 0, len(after))
	for _, folder := range slices.Sorted(maps.Keys(after)) {
		was, is := before[folder], after[folder]
		rows = append(rows, []any{folder, is.objects, was.bytes >> 10, is.bytes >> 10, fmt.Sprintf("%.1f", float64(is.bytes-was.bytes)/float64(revisions)/(1<<10))})
	}
	t.Logf("%d revisions\n%s", revisions, terminal.Table([]any{"folder", "objects", "KB before", "KB after", "KB a revision"}, rows, 0))
	if kept := after["archives"].bytes - before["archives"].bytes + after["sources"].bytes; kept > int64(revisions)*60<<10 {
		t.Errorf("%d revisions added %d bytes of archives and documents, want at most 60 KB each", revisions, kept)
	}
	if n := after["sources"].objects; n != 3 {
		t.Errorf("the source has %d objects in the store, want its state and its last two documents", n)
	}
}
