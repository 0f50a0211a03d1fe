package archive_test

import (
	"errors"
	"testing"

	"gridcast/builder/archive"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// TestPutRefusesWhatIsNoArchive shows that the error says so once and the store stays empty.
func TestPutRefusesWhatIsNoArchive(t *testing.T) {
	store := memblob.New()
	_, err := archive.NewStore(store).Put(t.Context(), []byte("hello"))
	if want := "decode archive: not a gridcast archive: no zstd stream"; !errors.Is(err, archive.ErrNotArchive) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := archive.NewStore(store).Load(t.Context()); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v, want an empty store", err)
	}
}
