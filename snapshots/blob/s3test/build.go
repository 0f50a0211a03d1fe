package s3test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const (
	versityModule  = "github.com/versity/versitygw/cmd/versitygw"
	versityVersion = "v1.8.0"
)

// versityBinary returns the path of versitygw, built into the ignored folder of the checkout
// by the first test that needs it; others wait for that.
func versityBinary(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(checkout(t), ".var", "tools", "versitygw-"+versityVersion)
	binary := filepath.Join(folder, "versitygw")
	if built(binary) {
		return binary
	}
	if testing.Short() {
		t.Skipf("%s is not built and short mode does not build it", binary)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("lock %s: %v", lock.Name(), err)
	}
	if built(binary) {
		return binary
	}
	t.Logf("building versitygw %s into %s, about a minute", versityVersion, folder)
	install := exec.Command("go", "install", versityModule+"@"+versityVersion)
	install.Dir = folder
	unfinished := filepath.Join(folder, "new")
	install.Env = append(os.Environ(), "GOBIN="+unfinished, "GOFLAGS=", "CGO_ENABLED=0")
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("build versitygw %s: %v\n%s", versityVersion, err, output)
	}
	// Tests of other packages find the whole file there, or none.
	if err := os.Rename(filepath.Join(unfinished, "versitygw"), binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// minioBinary returns the path of MinIO. Its build takes minutes, so the tests use an
// existing one: in the ignored folder of the checkout, by
//
//	GOBIN=$PWD/.var/tools/minio go install github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
//
// or in the path. Without it the test is skipped.
func minioBinary(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(checkout(t), ".var", "tools", "minio", "minio")
	if built(binary) {
		return binary
	}
	binary, err := exec.LookPath("minio")
	if err != nil {
		t.Skip("MinIO is not built and not in the path: this server is not tested")
	}
	return binary
}

func built(binary string) bool {
	_, err := os.Stat(binary)
	return err == nil
}
