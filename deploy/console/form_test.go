package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"gridcast/builder/assemble"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// submit sends a form and returns the action that the console reads from it.
func submit(t *testing.T, path, body string) (action operator.Action, err error) {
	t.Helper()
	mux := http.NewServeMux()
	reached := false
	for pattern, parse := range actions {
		mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) {
			reached = true
			action, err = parse(nil, r)
		})
	}
	must.Get(url.ParseQuery(body))(t)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	mux.ServeHTTP(httptest.NewRecorder(), r)
	must.Require(t, reached, "no form is sent to %s", path)
	return action, err
}

// typed returns an action as the command line reads its fields.
func typed[A operator.Action](t *testing.T, args ...string) operator.Action {
	t.Helper()
	var line struct {
		Action A `embed:""`
	}
	parser := must.Get(kong.New(&line, kong.Name("gridcast"), kong.DefaultEnvars("GRIDCAST")))(t)
	if _, err := parser.Parse(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return line.Action
}

// TestFormsAndCommands fills in each action twice: as a form, and on a command line.
func TestFormsAndCommands(t *testing.T) {
	start := time.Date(2024, 7, 28, 12, 0, 0, 0, time.UTC)
	hours := 2 * time.Hour
	model := "r2"
	race := operator.Codes{"VER", "NOR"}
	for _, tt := range []struct {
		path, form string
		command    operator.Action
		want       operator.Action
	}{
		{"/prune", "keep=12", typed[operator.Prune](t, "--keep=12"), operator.Prune{Keep: 12}},
		{
			"/settings", "model=r2&verify=2&revise=", typed[operator.ChangeSettings](t, "--model=r2", "--auto-verify-after=2h"),
			operator.ChangeSettings{Model: &model, AutoVerifyAfter: &hours},
		},
		{"/settings", "headshots=none", typed[operator.ChangeSettings](t, "--no-headshots"), operator.ChangeSettings{NoHeadshots: true}},
		{"/ledger/audit", "", typed[operator.AuditLedger](t), operator.AuditLedger{}},
		{"/versions/7/rollback", "reason=x", typed[operator.Rollback](t, "7"), operator.Rollback{Version: 7}},
		{"/versions/7/verify", "", typed[operator.CheckVersion](t, "7"), operator.CheckVersion{Version: 7}},
		{"/results/verify", "year=2024", typed[operator.VerifyResults](t, "--year=2024"), operator.VerifyResults{Year: 2024}},
		{"/results/2024014/verify", "seen=abc", typed[operator.VerifyResult](t, "2024014"), operator.VerifyResult{Key: 2024014}},
		{
			"/results/2024014/enter", "order=1.+VER%0D%0A2.+NOR+%2B5.2s", typed[operator.EnterResult](t, "2024014", "--order=VER,NOR"),
			operator.EnterResult{Key: 2024014, Order: race},
		},
		{
			"/results/2024014/correct", "order=VER+NOR&sprint=yes&disqualify=HAM,LEC", typed[operator.CorrectResult](t, "2024014", "--order=VER,NOR", "--sprint", "--disqualify=HAM", "--disqualify=LEC"),
			operator.CorrectResult{Key: 2024014, Classification: operator.Classification{Order: race, Sprint: true, Disqualify: []string{"HAM", "LEC"}}},
		},
		{
			"/results/2024014/correct", "penalised=NOR&penalty=5", typed[operator.CorrectResult](t, "2024014", "--time-penalty=NOR=5s"),
			operator.CorrectResult{Key: 2024014, Classification: operator.Classification{TimePenalty: map[string]time.Duration{"NOR": 5 * time.Second}}},
		},
		{"/rounds/2024014/postpone", "", typed[operator.PostponeRound](t, "2024014"), operator.PostponeRound{Key: 2024014}},
		{"/rounds/2024014/cancel", "", typed[operator.CancelRound](t, "2024014"), operator.CancelRound{Key: 2024014}},
		{
			"/rounds/2024014/move", "start=2024-07-28T12%3A00", typed[operator.MoveRound](t, "2024014", "--start=2024-07-28T12:00:00Z"),
			operator.MoveRound{Key: 2024014, Start: start},
		},
		{"/rounds/2024014/reinstate", "start=", typed[operator.ReinstateRound](t, "2024014"), operator.ReinstateRound{Key: 2024014}},
		{"/rounds/2024014/release", "", typed[operator.ReleaseRound](t, "2024014"), operator.ReleaseRound{Key: 2024014}},
		{"/rounds/2024014/facts", "block=grid", typed[operator.ReleaseFacts](t, "2024014", "grid"), operator.ReleaseFacts{Key: 2024014, Block: assemble.Grid}},
		{
			"/championship/2024", "decision=deduct&constructors=yes&id=mclaren&points=7.5&from=2024003", typed[operator.DeductPoints](t, "2024", "mclaren", "7.5", "--constructors", "--from=2024003"),
			operator.DeductPoints{Competitor: operator.Competitor{Year: 2024, ID: "mclaren", Constructors: true}, Points: 7.5, From: operator.From{From: 2024003}},
		},
		{
			"/championship/2024", "decision=add&constructors=&id=VER&points=3&from=", typed[operator.AddPoints](t, "2024", "VER", "3"),
			operator.AddPoints{Competitor: operator.Competitor{Year: 2024, ID: "VER"}, Points: 3},
		},
		{
			"/championship/2024", "decision=new-entry&constructors=yes&id=mclaren&points=", typed[operator.ExcludeCompetitor](t, "2024", "mclaren", "--constructors", "--new-entry"),
			operator.ExcludeCompetitor{Competitor: operator.Competitor{Year: 2024, ID: "mclaren", Constructors: true}, NewEntry: true},
		},
		{
			"/championship/2024/restore", "id=VER&decision=2", typed[operator.RestoreCompetitor](t, "2024", "VER", "--decision=2"),
			operator.RestoreCompetitor{Competitor: operator.Competitor{Year: 2024, ID: "VER"}, Decision: 2},
		},
		{
			"/championship/2024/accept", "id=mclaren&constructors=yes", typed[operator.AcceptDecision](t, "2024", "mclaren", "--constructors"),
			operator.AcceptDecision{Competitor: operator.Competitor{Year: 2024, ID: "mclaren", Constructors: true}},
		},
		{"/sources/changes/a1/accept", "", typed[operator.AcceptChange](t, "a1"), operator.AcceptChange{ID: "a1"}},
		{
			"/sources/alias", "kind=team&from=kick&to=sauber", typed[operator.MergeIdentities](t, "kick", "sauber", "--kind=team"),
			operator.MergeIdentities{Kind: assemble.TeamAlias, From: "kick", To: "sauber"},
		},
		{
			"/keys", "client=Betting+House&tier=pro&origins=https://a.example+https://b.example&expires=2027-01-30",
			typed[operator.CreateKey](t, "--name=Betting House", "--tier=pro", "--origin=https://a.example", "--origin=https://b.example", "--expires=2027-01-31T00:00:00Z"),
			operator.CreateKey{Client: "Betting House", Tier: "pro", Origins: []string{"https://a.example", "https://b.example"}, Expires: operator.Expiry{Time: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)}},
		},
		{"/keys/prune", "age=30", typed[operator.PruneKeys](t, "--older-than=30d"), operator.PruneKeys{OlderThan: operator.Span(30 * 24 * time.Hour)}},
		{"/keys/k1/revoke", "", typed[operator.RevokeKey](t, "k1"), operator.RevokeKey{ID: "k1"}},
		{"/keys/k1/rotate", "grace=7", typed[operator.RotateKey](t, "k1"), operator.RotateKey{ID: "k1", Grace: operator.Span(7 * 24 * time.Hour)}},
		{"/keys/k1/expire", "expires=", typed[operator.ExpireKey](t, "k1", "never"), operator.ExpireKey{ID: "k1"}},
		{"/keys/k1/tier", "tier=pro", typed[operator.SetTier](t, "k1", "pro"), operator.SetTier{ID: "k1", Tier: "pro"}},
		{"/keys/k1/origins", "origins=any", typed[operator.SetOrigins](t, "k1", "any"), operator.SetOrigins{ID: "k1", Origins: []string{"any"}}},
		{
			"/webhooks", "url=https://r.example/hook&endpoint=standings&endpoint=calendar.ics", typed[operator.AddWebhook](t, "https://r.example/hook", "--endpoint=standings", "--endpoint=calendar.ics"),
			operator.AddWebhook{URL: "https://r.example/hook", Endpoints: []string{"standings", "calendar.ics"}},
		},
		{"/webhooks/h1/rotate", "grace=24", typed[operator.RotateWebhook](t, "h1"), operator.RotateWebhook{ID: "h1", Grace: operator.Span(24 * time.Hour)}},
		{"/webhooks/h1/test", "", typed[operator.TestWebhook](t, "h1"), operator.TestWebhook{ID: "h1"}},
		{"/webhooks/h1/pause", "", typed[operator.PauseWebhook](t, "h1"), operator.PauseWebhook{ID: "h1"}},
		{"/webhooks/h1/resume", "", typed[operator.ResumeWebhook](t, "h1"), operator.ResumeWebhook{ID: "h1"}},
		{"/webhooks/h1/remove", "", typed[operator.RemoveWebhook](t, "h1"), operator.RemoveWebhook{ID: "h1"}},
		{"/archive/use", "sha=12ab", typed[operator.UseArchive](t, "12ab"), operator.UseArchive{SHA256: "12ab"}},
	} {
		got, err := submit(t, tt.path, tt.form)
		must.Hold(t, err == nil && reflect.DeepEqual(got, tt.want),
			"form %s %s: got %#v, %v; want %#v", tt.path, tt.form, got, err, tt.want)
		must.Hold(t, reflect.DeepEqual(tt.command, tt.want), "command for %s: got %#v, want %#v", tt.path, tt.command, tt.want)
	}
}

// TestFaultsInForms names the field of each fault.
func TestFaultsInForms(t *testing.T) {
	for _, tt := range []struct{ path, form, want string }{
		{"/prune", "", `keep is missing: enter it`},
		{"/prune", "keep=all", `keep: "all": enter a number`},
		{"/settings", "verify=soon", `verify: "soon": enter a number`},
		{"/rounds/2024014/move", "start=tomorrow", `start: "tomorrow": enter a day and an hour, UTC`},
		{"/keys", "client=A&tier=pro&expires=soon", `expires: "soon": must be an instant`},
		{"/keys/k1/rotate", "grace=-", `grace: "-d": must be a whole number of days`},
		{"/results/2024014/correct", "penalty=5", "a time penalty needs a driver and seconds"},
		{"/rounds/abc/move", "start=2024-07-28T12%3A00", `not found: no session "abc"`},
	} {
		if _, err := submit(t, tt.path, tt.form); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s %s: got %v, want %q", tt.path, tt.form, err, tt.want)
		}
	}
}
