package dirblob_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// If a folder cannot be made, the error names the reason, for example a missing disk.
func TestOpenWhereNothingCanBeMade(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link")
	must.Do(t, os.Symlink(filepath.Join(folder, "not-mounted"), link))
	must.Show(t, "the error of a system call", fmt.Sprint(must.Err(dirblob.Open("/proc/no-such-folder/a"))), "mkdir /proc/no-such-folder:")
	loop := filepath.Join(folder, "loop")
	must.Do(t, errors.Join(os.Mkdir(loop, 0o755), os.Symlink("@new", filepath.Join(loop, "@new"))))
	must.Fail(t, "a link to itself", must.Err(dirblob.Open(loop)), syscall.ELOOP)
	taken := filepath.Join(folder, "taken")
	must.Do(t, errors.Join(os.Mkdir(taken, 0o755), os.WriteFile(filepath.Join(taken, "@new"), nil, 0o600)))
	for _, path := range []string{link, filepath.Join(link, "a/b"), taken} {
		golden.Sentence(t, "open "+strings.ReplaceAll(path, folder, "FOLDER"), must.Err(dirblob.Open(path)), folder, "FOLDER")
	}
}

func TestReadOnly(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	golden.Sentence(t, "read a directory that is not there", must.Err(dirblob.OpenReadOnly(root)), root, "ROOT")
	must.Fail(t, "the directory after that", must.Err(os.Stat(root)), os.ErrNotExist)
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	golden.Sentence(t, "read a file as a directory", must.Err(dirblob.OpenReadOnly(file)), file, "FILE")
	golden.Sentence(t, "read below a file", must.Err(dirblob.OpenReadOnly(filepath.Join(file, "store"))), file, "FILE")
	must.Fail(t, "an empty directory", must.Err(must.Get(dirblob.OpenReadOnly(filepath.Dir(file)))(t).Get(t.Context(), "a", 1)), blob.ErrNotFound)
	writer := open(t, root)
	must.Get(writer.Create(t.Context(), "a", []byte("x")))(t)
	must.Fail(t, "a name below a folder that is gone", writer.Sync(t.Context(), "gone/b"), os.ErrNotExist)
	must.Do(t, os.Symlink("/proc/self/mem", filepath.Join(root, "broken")))
	must.Fail(t, "a file that cannot be read", must.Err(writer.Swap(t.Context(), "broken", "tag", nil)), syscall.EIO)
	must.Do(t, os.Remove(filepath.Join(root, "broken")))
	must.Fail(t, "read below an object", must.Err(writer.Get(t.Context(), "a/b", 1)), syscall.ENOTDIR)
	must.Fail(t, "write below an object", must.Err(writer.Create(t.Context(), "a/b", nil)), syscall.ENOTDIR)
	must.Do(t, os.Symlink("/proc", filepath.Join(root, "proc")))
	err := must.Err(writer.Create(t.Context(), "proc/none/a", nil))
	must.Hold(t, errors.Is(err, os.ErrNotExist) && !errors.Is(err, blob.ErrUnknown), "where no folder can be made: got %v, want no doubt", err)
	must.Do(t, errors.Join(os.Remove(filepath.Join(root, "proc")), os.Remove(filepath.Join(root, "@lock")), os.Mkdir(filepath.Join(root, "@lock"), 0o700)))
	for range 2 {
		must.Fail(t, "a folder in the place of the lock", writer.Delete(t.Context(), "a"), syscall.EISDIR)
	}
	must.Do(t, errors.Join(os.Remove(filepath.Join(root, "@lock")), os.Rename(filepath.Join(root, "@new"), filepath.Join(root, "@old"))))
	must.Fail(t, "no folder for new files", must.Err(writer.Create(t.Context(), "b", nil)), os.ErrNotExist)
	must.Do(t, os.Rename(filepath.Join(root, "@old"), filepath.Join(root, "@new")))
	proc := must.Get(os.Open("/proc/self/stat"))(t)
	must.Fail(t, "a file system whose sync may leave something behind", errors.Join(dirblob.SyncAll(proc), proc.Close()), errors.ErrUnsupported)
	abandoned := filepath.Join(root, "@new", "object-1")
	must.Do(t, os.WriteFile(abandoned, nil, 0o600))
	must.Do(t, os.Chtimes(abandoned, time.Time{}, time.Now().Add(-48*time.Hour)))
	reader := must.Get(dirblob.OpenReadOnly(root))(t)
	o, err := reader.Get(t.Context(), "a", blob.MaxDocument)
	must.Hold(t, err == nil && string(o.Data) == "x", "get: got %q, %v", o.Data, err)
	_, createErr := reader.Create(t.Context(), "b", nil)
	_, swapErr := reader.Swap(t.Context(), "a", o.Tag, []byte("y"))
	for write, err := range map[string]error{"create": createErr, "swap": swapErr, "delete": reader.Delete(t.Context(), "a")} {
		golden.Sentence(t, "read only: "+write, err, root, "ROOT")
	}
	must.Succeed(t, "a reader cleaned up", must.Err(os.Stat(abandoned)))
}

// A file outside of a store is written whole, by one of two ways to give it its name, and nothing stays beside it.
func TestWriteFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, step := range []struct {
		data  string
		mode  os.FileMode
		place func(from, to string) error
		want  string
		err   error
	}{
		{"one", 0o640, os.Link, "one", nil}, {"two", 0o600, os.Link, "one", os.ErrExist}, {"three", 0o600, os.Rename, "three", nil},
	} {
		err := dirblob.WriteFile(file, []byte(step.data), step.mode, step.place)
		got, info := must.Get(os.ReadFile(file))(t), must.Get(os.Stat(file))(t)
		must.Hold(t, errors.Is(err, step.err) && string(got) == step.want, "%s: got %q, %v", step.data, got, err)
		must.Hold(t, err != nil || info.Mode() == step.mode, "%s: got the mode %v, want %v", step.data, info.Mode(), step.mode)
		must.Equal(t, "files", 1, len(must.Get(os.ReadDir(filepath.Dir(file)))(t)))
	}
	must.Fail(t, "below a file", dirblob.WriteFile(filepath.Join(file, "x"), nil, 0o600, os.Link), syscall.ENOTDIR)
}

// TestFullDisk: a file that has no room is not written at all.
func TestFullDisk(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	var room syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &room))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 3, Max: room.Max}))
	_, createErr := s.Create(t.Context(), "a", []byte("long"))
	fileErr := dirblob.WriteFile(filepath.Join(root, "b"), []byte("long"), 0o600, os.Link)
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room))
	must.Fail(t, "an object", createErr, syscall.EFBIG)
	must.Fail(t, "a file", fileErr, syscall.EFBIG)
	must.Equal(t, "names at the root", 1, len(must.Get(os.ReadDir(root))(t)))
}

// A store without its disk does not answer; it must not look empty.
func TestStoreGoesAway(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	writer := open(t, root)
	must.Fail(t, "get from a new store", must.Err(writer.Get(t.Context(), "a", blob.MaxDocument)), blob.ErrNotFound)
	must.Get(writer.Create(t.Context(), "a", []byte("x")))(t)
	reader, watcher := must.Get(dirblob.OpenReadOnly(root))(t), must.Get(dirblob.OpenReadOnly(root))(t)
	o := must.Get(reader.Get(t.Context(), "a", blob.MaxDocument))(t)
	must.Get(watcher.Watch(t.Context(), "a", "", blob.MaxDocument))(t)
	unmount := func(t *testing.T) {
		must.Do(t, os.Rename(root, root+"-elsewhere"))
	}
	mount := func(t *testing.T) {
		_ = os.Remove(root) // the mount point
		must.Do(t, os.Rename(root+"-elsewhere", root))
	}
	for name, leave := range map[string]func() error{
		"no directory":    func() error { return nil },
		"the mount point": func() error { return os.Mkdir(root, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			unmount(t)
			must.Do(t, leave())
			_, getErr := reader.Get(t.Context(), "a", blob.MaxDocument)
			_, watchErr := watcher.Watch(t.Context(), "a", o.Tag, blob.MaxDocument)
			var listErr error
			for _, listErr = range reader.List(t.Context(), "") {
			}
			_, firstErr := reader.Watch(t.Context(), "b", "", blob.MaxDocument)
			for what, err := range map[string]error{"get": getErr, "watch": watchErr, "watch for a first object": firstErr, "list": listErr} {
				must.Hold(t, err != nil && !errors.Is(err, blob.ErrNotFound), "%s: the store looks empty: %v", what, err)
				golden.Sentence(t, name+": "+what, err, root, "ROOT")
			}
			mount(t)
			again, err := reader.Get(t.Context(), "a", blob.MaxDocument)
			must.Hold(t, err == nil && again.Tag == o.Tag, "once it is back: got %v, %v", again.Tag, err)
		})
	}
}

// Files of killed writers that cannot be removed do not prevent the opening of the store.
func TestOpenGoesOnIfItCannotCleanUp(t *testing.T) {
	root := t.TempDir()
	stuck := filepath.Join(root, "@new", "object-1") // a folder with a file in it stands for a file that cannot be removed
	must.Do(t, os.MkdirAll(filepath.Join(stuck, "file"), 0o700))
	must.Do(t, os.Chtimes(stuck, time.Time{}, time.Now().Add(-48*time.Hour)))
	open(t, root)
}

// A pipe in place of a file has no end: reading it must not wait for a writer.
func TestOnlyFilesAreObjects(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	path := filepath.Join(root, "current.json")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	done := make(chan []error, 1)
	go func() {
		_, getErr := s.Get(t.Context(), "current.json", blob.MaxDocument)
		_, watchErr := s.Watch(t.Context(), "current.json", "", blob.MaxDocument)
		_, swapErr := s.Swap(t.Context(), "current.json", "tag", nil)
		done <- []error{getErr, watchErr, swapErr}
	}()
	select {
	case errs := <-done:
		for i, operation := range []string{"get", "watch", "swap"} {
			golden.Sentence(t, "a pipe: "+operation, errs[i], root, "ROOT")
		}
	case <-time.After(time.Minute):
		t.Fatal("a pipe in place of a file is read for ever")
	}
	must.Do(t, os.Remove(path))
	must.Succeed(t, "create when the pipe is gone", must.Err(s.Create(t.Context(), "current.json", []byte("x"))))
}

// The stated size of a file must not decide about the memory.
func TestHugeFile(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	must.Do(t, os.WriteFile(filepath.Join(root, "huge"), nil, 0o600))
	if err := os.Truncate(filepath.Join(root, "huge"), 1<<42); err != nil {
		t.Skipf("the file system has no files of 4 TiB: %v", err)
	}
	must.Fail(t, "get", must.Err(s.Get(t.Context(), "huge", 1<<20)), blob.ErrTooLarge)
}

// heldLock takes the lock of a store as another writer does. Closing the file releases it.
func heldLock(t *testing.T, root string) *os.File {
	t.Helper()
	lock := must.Get(os.OpenFile(filepath.Join(root, "@lock"), os.O_CREATE|os.O_RDWR, 0o600))(t)
	t.Cleanup(func() { lock.Close() })
	must.Do(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	return lock
}

// TestLockHeldByAnother: a writer that is stopped while it holds the lock makes others wait, but neither beyond the end of
// their context nor for ever.
func TestLockHeldByAnother(t *testing.T) {
	stopped := errors.New("told to stop")
	for name, test := range map[string]struct {
		patience, deadline time.Duration
		want               error // nil: any that leaves no doubt
	}{
		"told to stop": {time.Minute, 50 * time.Millisecond, stopped},
		"for ever":     {50 * time.Millisecond, time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root)
			s.SetPatience(test.patience)
			tag := must.Get(s.Create(t.Context(), "a", []byte("one")))(t)
			lock := heldLock(t, root)
			for what, write := range map[string]func(context.Context) error{
				"swap":   func(ctx context.Context) error { return must.Err(s.Swap(ctx, "a", tag, []byte("two"))) },
				"delete": func(ctx context.Context) error { return s.Delete(ctx, "a") },
			} {
				ctx, cancel := context.WithTimeoutCause(t.Context(), test.deadline, stopped)
				done := make(chan error, 1)
				go func() { done <- write(ctx) }()
				select {
				case err := <-done:
					must.Hold(t, !errors.Is(err, blob.ErrUnknown) && (test.want == nil || errors.Is(err, test.want)), "%s: got %v, want %v", what, err, test.want)
					golden.Sentence(t, name+": "+what, err, root, "ROOT")
				case <-time.After(time.Minute):
					t.Fatalf("%s waits for the lock for ever", what)
				}
				cancel()
			}
			s.SetPatience(time.Hour)
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() { done <- s.Delete(ctx, "a") }()
			must.Until(t, "a writer waits", s.Writing)
			ended, end := context.WithTimeoutCause(t.Context(), time.Millisecond, stopped)
			golden.Sentence(t, name+": beside another writer", s.Delete(ended, "a"), root, "ROOT")
			end()
			cancel(stopped)
			<-done
			left, err := os.ReadDir(filepath.Join(root, "@new"))
			must.Hold(t, err == nil && len(left) == 0, "files left over: %v, %v", left, err)
			must.Do(t, lock.Close())
			must.Succeed(t, "swap when the lock is free", must.Err(s.Swap(t.Context(), "a", tag, []byte("two"))))
		})
	}
}
