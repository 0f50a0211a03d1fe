package dirblob_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/dirblob"
)

// nobody is a user without rights of every Debian machine.
const nobody = 65534

// TestNames shows a user without a name, and the room on the disk of a folder that is not there yet.
func TestNames(t *testing.T) {
	root := t.TempDir()
	must.Equal(t, "names of users", "root 4000000000", (&dirblob.Owner{}).String()+" "+(&dirblob.Owner{UID: 4_000_000_000}).String())
	must.Succeed(t, "room in a folder that is not there yet", must.Err(dirblob.Free(filepath.Join(root, "not/there/yet"))))
	must.Fail(t, "room below a name too long", must.Err(dirblob.Free(filepath.Join(root, strings.Repeat("x", 300)))), syscall.ENAMETOOLONG)
	must.Hold(t, dirblob.OwnerOf(filepath.Join(root, "not/there/yet")) != nil, "a folder that is not there yet will have no owner")
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err := dirblob.Foreign(ended, root)
	must.Fail(t, "a search that is told to end", err, context.Canceled)
	count, _, err := dirblob.Foreign(t.Context(), filepath.Join(root, "gone"))
	must.Hold(t, err == nil && count == 0, "a folder that vanished: got %d files, %v", count, err)
	for _, err := range must.Get(dirblob.Open(root))(t).List(ended, "") {
		must.Fail(t, "a listing that is told to end", err, context.Canceled)
	}
	t.Chdir(root)
	must.Do(t, os.RemoveAll(root))
	must.Equal(t, "a store below a folder that is gone", "dir:store", dirblob.OpenUnmounted("store").String())
}

// TestOwner writes as root to a store of another user: every file and folder must belong to that user, also in a store that
// root begins in that user's folder. What root has made by other means is found.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can write to the store of another user")
	}
	home := t.TempDir()
	must.Do(t, os.Chown(home, nobody, nobody-1))
	root := filepath.Join(home, "new/store")
	store := must.Get(dirblob.Open(root))(t)
	tag, err := store.Create(t.Context(), "a/b/c", []byte("one"))
	if err == nil {
		_, err = store.Swap(t.Context(), "a/b/c", tag, []byte("two"))
	}
	must.Do(t, err)
	owner := dirblob.OwnerOf(filepath.Join(root, "a/b/c"))
	must.Hold(t, owner != nil && owner.UID == nobody && owner.GID == nobody-1,
		"a new object belongs to %v, want the user of the store", owner)
	count, first, err := dirblob.Foreign(t.Context(), root)
	must.Hold(t, err == nil && count == 0, "got %d files of other users, such as %s, %v; want none", count, first, err)
	must.Do(t, errors.Join(os.Chown(filepath.Join(root, "a/b"), 0, 0), os.Chown(filepath.Join(root, "a/b/c"), 0, 0)))
	count, first, err = dirblob.Foreign(t.Context(), root)
	must.Hold(t, err == nil && count == 2 && first == filepath.Join(root, "a/b"),
		"got %d files of other users, first %s, %v; want the folder a/b and its file", count, first, err)
}
