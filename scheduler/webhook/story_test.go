package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// TestStories plays testdata/stories.txt. A story begins with "## TEXT", and the endpoints of its hook in brackets. Each
// other line is an event, see the switch in play. Below a wait stand the messages that the receiver got, what the log says,
// and the state of the delivery, each where it changed. The flag -update writes them anew.
func TestStories(t *testing.T) {
	const file = "testdata/stories.txt"
	about, stories, _ := strings.Cut(string(must.Get(os.ReadFile(file))(t)), "\n## ")
	var text strings.Builder
	text.WriteString(about)
	for told := range strings.SplitSeq(stories, "\n## ") {
		title, events, _ := strings.Cut(told, "\n")
		if testing.Short() && strings.Contains(title, "schedule") { // four days of looks at the store
			text.WriteString("\n## " + told)
			continue
		}
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { text.WriteString("\n## " + title + "\n" + newStory(t, title, events).play(events)) })
		})
	}
	golden.File(t, file, text.String())
}

// story is a desk whose store and receiver can fail.
type story struct {
	*desk
	master  *webhook.Sender
	down    atomic.Bool // the store does not answer
	dying   atomic.Bool // the process dies after the next answer
	dead    atomic.Bool // the process has died: nothing is recorded
	asked   string      // Retry-After of the receiver
	stop    func()
	last    time.Time // of the last event or message
	before  time.Time // of the message before
	failing bool      // the message before was not accepted
	shown   int       // messages
	ids     []string
	state   string
	logged  int
	started bool
}

func newStory(t *testing.T, title, events string) *story {
	var options []memblob.Option
	if !strings.Contains(events, "lose the version") {
		options = append(options, memblob.Strict(t, snapshots.Immutable))
	}
	s := &story{}
	store := faultblob.Wrap(memblob.New(options...), func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if s.down.Load() || s.dead.Load() && c.Op.Writes() && strings.HasPrefix(c.Key, "webhooks/") {
			return faultblob.Fate{Err: errors.New("no answer")}
		}
		return faultblob.Fate{}
	})
	var endpoints []string
	if _, in, ok := strings.Cut(strings.TrimSuffix(title, "]"), " ["); ok {
		endpoints = strings.Fields(in)
	}
	s.desk = newDesk(t, store, endpoints...)
	s.sender = newSender(t, webhook.SenderOptions{Transport: s})
	s.master = s.sender
	return s
}

// RoundTrip adds the wishes of the receiver, and the death of the process.
func (s *story) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := s.line.RoundTrip(q)
	if err == nil && s.asked != "" {
		wish := s.asked
		if wait, err := time.ParseDuration(wish); err == nil {
			wish = time.Now().Add(wait).UTC().Format(http.TimeFormat)
		}
		r.Header.Set("Retry-After", wish)
	}
	if s.dying.Load() {
		s.dead.Store(true)
	}
	return r, err
}

// play makes the events, and returns them with what follows from each.
func (s *story) play(events string) string {
	var text strings.Builder
	for event := range strings.Lines(events) {
		if event = strings.TrimSuffix(event, "\n"); event == "" || strings.HasPrefix(event, "\t") {
			continue
		}
		if !s.started && event != "before the start" {
			s.stop, s.started = s.run(), true
		}
		fmt.Fprintln(&text, event)
		verb, rest, _ := strings.Cut(event, " ")
		switch verb {
		case "publish":
			content := season.with(slices.Collect(func(yield func(string) bool) {
				for word := range strings.FieldsSeq(rest) {
					path, body, _ := strings.Cut(word, "=")
					_ = yield(path) && yield(body)
				}
			})...)
			publish(s.t, s.store, content)
		case "publish-many":
			many := season.with()
			for i := range must.Get(strconv.Atoi(rest))(s.t) {
				many[fmt.Sprintf("results/session/20240%02d", i+10)] = "x"
			}
			publish(s.t, s.store, many)
		case "wait":
			must.Advance(must.Get(time.ParseDuration(rest))(s.t))
			for _, line := range s.news() {
				fmt.Fprintf(&text, "\t%s\n", line)
			}
		case "until":
			for i := 0; i < 24*3600 && len(s.line.sent()) < must.Get(strconv.Atoi(rest))(s.t); i++ {
				must.Advance(time.Second)
			}
		case "answer":
			s.answer(rest)
		case "stop":
			s.stop()
		case "start":
			s.stop = s.run()
		case "resume":
			s.failing = false
			s.edit(func(hooks *[]webhook.Hook) { (*hooks)[0].Resume() })
		case "remove":
			s.edit(func(hooks *[]webhook.Hook) { *hooks = nil })
		case "master":
			if s.sender = s.master; rest == "none" {
				s.sender = mustSender(s.t)
			}
		case "store":
			s.down.Store(rest == "down")
		case "die":
			s.dying.Store(true)
		case "live":
			s.stop()
			s.dying.Store(false)
			s.dead.Store(false)
			s.stop = s.run()
		case "lose":
			must.Do(s.t, s.store.Delete(s.t.Context(), snapshots.ManifestKey(must.Get(strconv.ParseInt(rest[len("the version "):], 10, 64))(s.t))))
		case "before":
			s.started, s.stop = true, func() {}
		default:
			s.t.Fatalf("unknown event %q", event)
		}
		s.last = time.Now()
	}
	s.stop()
	must.Hide(s.t, "the log", s.log.String(), "token-in-the-path", strings.TrimPrefix(s.line.secret, "whsec_"), string(master))
	return text.String()
}

// answer sets the receiver's answer: a status, with Retry-After in seconds or in a duration until a date, or hang.
func (s *story) answer(rest string) {
	code, wish, _ := strings.Cut(rest, " ")
	s.asked = wish
	if code == "hang" {
		s.line.answers(hang)
		return
	}
	s.line.answers(status(must.Get(strconv.Atoi(code))(s.t)))
}

// news returns the messages, the warnings and the state since the last call.
func (s *story) news() (lines []string) {
	sent := s.line.sent()
	for _, m := range sent[s.shown:] {
		n := slices.Index(s.ids, m.ID)
		if n < 0 {
			n, s.ids = len(s.ids), append(s.ids, m.ID)
		}
		must.Hold(s.t, strings.HasPrefix(m.ID, "msg_") && m.Header.Get("Content-Type") == "application/json", "got %+v", m)
		must.Equal(s.t, "timestamp", strconv.FormatInt(m.At.Unix(), 10), m.Header.Get("Webhook-Timestamp"))
		changes := make([]string, 0, len(m.Data.Changes))
		for _, c := range m.Data.Changes {
			changes = append(changes, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", c.Change, c.Path, c.Query, c.ETag[:min(9, len(c.ETag))])), " "))
		}
		if !m.Data.Complete {
			changes = append(changes, "perhaps everything")
		}
		lines = append(lines, fmt.Sprintf("%s, message %d of %s, versions %d to %d: %s", s.wait(m), n+1, m.Type, m.Data.Previous, m.Data.Version, strings.Join(changes, ", ")))
		s.failing = m.refused
	}
	s.shown = len(sent)
	for line := range strings.Lines(s.log.String()[s.logged:]) {
		if _, warning, ok := strings.Cut(line, "level="+slog.LevelWarn.String()+" msg="); ok {
			lines = append(lines, "log: "+strings.ReplaceAll(strings.TrimSpace(warning), s.hook.ID, "ID"))
		}
	}
	s.logged = s.log.Len()
	if state := s.summary(); state != s.state {
		s.state, lines = state, append(lines, state)
	}
	return lines
}

// summary describes the stored state of the delivery and the metrics.
func (s *story) summary() string {
	if s.down.Load() {
		return "the store is down"
	}
	d := s.desk.state()
	text := fmt.Sprintf("told %d, %d failures, %d attempts", d.Told, d.Failures, len(d.Attempts))
	if len(d.Attempts) > 0 {
		last := d.Attempts[len(d.Attempts)-1]
		text += fmt.Sprintf(", the last %s in %d ms", last.Outcome, last.Millis)
	}
	if d.Pending != nil {
		text += fmt.Sprintf(", message %d pending", slices.Index(s.ids, d.Pending.ID)+1)
	}
	if d.Owner != "" {
		text += ", claimed"
	}
	if hooks := must.Get(webhook.Load(s.t.Context(), s.store))(s.t); len(hooks) > 0 && hooks[0].Why != "" {
		text += ", paused: " + since.ReplaceAllString(hooks[0].Why, "since …")
	}
	conditions := []string{text}
	for _, family := range must.Get(s.reg.Gather())(s.t) {
		if family.GetName() == "gridcast_webhook_deliveries_total" {
			must.Equal(s.t, "outcomes in the metrics", 6, len(family.Metric))
		}
		for _, m := range family.Metric {
			if n := m.GetGauge().GetValue() + m.GetCounter().GetValue(); n > 0 && family.GetName() == "gridcast_webhooks" {
				conditions = append(conditions, m.Label[0].GetValue())
			}
		}
	}
	return strings.Join(conditions, ", ")
}

// since is an instant in the reason of a pause.
var since = regexp.MustCompile(`since .* UTC`)

// wait describes the time before a message: its place in the schedule after a failure, without the jitter of a tenth and the
// seconds of a look and of an attempt, or else how soon it came after an event.
func (s *story) wait(m sent) string {
	took := m.At.Sub(s.last)
	if s.failing {
		took = m.At.Sub(s.before)
	}
	s.last, s.before = m.At, m.At
	for _, wait := range append(slices.Clone(webhook.Schedule), 10*time.Minute, 7*time.Hour) {
		if s.failing && took >= wait && took <= wait+wait/10+20*time.Second {
			return "after a wait of " + wait.String()
		}
	}
	switch {
	case took <= 8*time.Second:
		return "soon"
	case took <= time.Minute:
		return "within a minute"
	}
	return "later"
}

// TestScheduleLasts is what the documentation says of the schedule.
func TestScheduleLasts(t *testing.T) {
	var total time.Duration
	for _, wait := range webhook.Schedule {
		total += wait
	}
	must.Equal(t, "the schedule", 75*time.Hour+35*time.Minute+5*time.Second, total)
}
