package snapshots_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/faultblob"
)

// victimStore makes the test binary a builder that publishes to this directory until it is killed. It prints a line
// before each of its writes.
const victimStore = "GRIDCAST_TEST_VICTIM"

func TestMain(m *testing.M) {
	if root := os.Getenv(victimStore); root != "" {
		fmt.Fprintln(os.Stderr, publishForever(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func publishForever(root string) error {
	s, err := dirblob.Open(root)
	if err != nil {
		return err
	}
	loud := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op.Writes() {
			fmt.Println(call.Op, call.Key)
		}
		return faultblob.Fate{}
	})
	p := snapshots.Publisher{Store: loud, Workers: 4}
	for ctx := context.Background(); ; {
		base, err := snapshots.LoadBase(ctx, s, nil)
		if err != nil {
			return err
		}
		content := bodies{"calendar/2024": "the same"}
		for i := range 4 {
			content[fmt.Sprintf("standings/%d", i)] = fmt.Sprintf("standings %d after version %d", i, base.Pointer.Version)
		}
		if _, err := p.Publish(ctx, draftOf(base, content)); err != nil {
			return err
		}
	}
}

// TestKilledBuilders kills builders with SIGKILL, each after a random number of writes. The current version must be
// whole after each kill and never go back. In the end the prune must find the leftovers.
func TestKilledBuilders(t *testing.T) {
	const kills = 12
	root := t.TempDir()
	s := openDirectory(t, root)
	random := rand.New(rand.NewPCG(1, 2))
	current := int64(0)
	for range kills {
		killAfter(t, root, 1+random.IntN(40))
		base := loadBase(t, s)
		if base.Pointer.Version < current {
			t.Fatalf("version went from %d to %d", current, base.Pointer.Version)
		}
		if current = base.Pointer.Version; current == 0 {
			continue
		}
		v, err := snapshots.Open(t.Context(), s, nil)
		if err != nil {
			t.Fatalf("version %d after a kill: %v", current, err)
		}
		checkWhole(t, v)
	}
	r := publish(t, s, crashAfter)
	must.Hold(t, r.Version > current, "the next run published %d over %d", r.Version, current)
	got := must.Get(snapshots.Prune(t.Context(), s, 1, time.Now().Add(2*snapshots.PruneAge), false))(t)
	checkNothingLeftOver(t, s)
	t.Logf("%d builders killed, version %d reached, %d objects pruned", kills, r.Version, len(got.Removed))
}

// killAfter starts a builder and kills it as soon as it announces its nth write.
func killAfter(t *testing.T, root string, n int) {
	t.Helper()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimStore+"="+root)
	victim.Stderr = os.Stderr
	output := must.Get(victim.StdoutPipe())(t)
	must.Do(t, victim.Start())
	lines := bufio.NewScanner(output)
	for range n {
		if !lines.Scan() {
			break
		}
	}
	must.Do(t, victim.Process.Kill())
	_, _ = io.Copy(io.Discard, output)
	if err := victim.Wait(); err == nil || victim.ProcessState.Exited() {
		t.Fatalf("the builder ended by itself: %v", err)
	}
}

func openDirectory(t testing.TB, root string) blob.Store {
	t.Helper()
	return must.Get(dirblob.Open(root))(t)
}
