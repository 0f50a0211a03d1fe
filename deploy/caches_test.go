package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridcast/deploy/must"
)

var (
	// cacheComment is the beginning of the comment beside a cache, and cacheRule its form: the key, and the reason with a
	// figure, or with the work that is not done.
	cacheComment = regexp.MustCompile(`(?i)\bcache, by\b`)
	cacheRule    = regexp.MustCompile(`(?i)^cache, by [^:]+: .*(\d|milliseconds|four times|allocates nothing|reads every)`)
	// address is a comparison of the addresses of rows, or their use as a key.
	address = regexp.MustCompile(`&[\w.()*\[\]]+\] [!=]= &|[!=]= &[\w.()*]+\[0\]|\bunsafe\.|&[\w.()*]+\[0\], len\(`)
)

// TestCachesRestOnDigests checks that each cache has its key and its measured reason in the comment beside it. No code of
// the product compares the addresses of rows, which say nothing about their content.
func TestCachesRestOnDigests(t *testing.T) {
	caches := 0
	for _, root := range []string{"builder", "edge", "scheduler", "schemas", "snapshots", "deploy"} {
		must.Do(t, filepath.WalkDir("../"+root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path == "../deploy/lab" {
				return filepath.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text := string(must.Get(os.ReadFile(path))(t))
			for i, line := range strings.Split(text, "\n") {
				if address.MatchString(line) {
					t.Errorf("%s:%d compares addresses: %s", path, i+1, strings.TrimSpace(line))
				}
			}
			for _, at := range cacheComment.FindAllStringIndex(text, -1) {
				caches++
				comment := strings.NewReplacer("\n\t", " ", "\n", " ", "// ", "").Replace(text[at[0]:min(len(text), at[0]+400)])
				if !cacheRule.MatchString(comment) {
					t.Errorf("%s: a cache without key or figure: %.120s", path, comment)
				}
			}
			return nil
		}))
	}
	must.Hold(t, caches >= 15, "found the comments of %d caches, which are not all", caches)
}
