// Command gridcast is the whole service in one binary: a command for each server and for each action of
// operators. A command only reads flags, calls the packages below it, and prints.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/deploy/doctor"
	"gridcast/deploy/servers"
	"gridcast/deploy/terminal"
	"gridcast/deploy/usage"
	"gridcast/edge/keys"
	"gridcast/snapshots"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// cli is the command line. A flag that configures is also an environment variable with the prefix
// GRIDCAST_; the flag wins. The flags of a single action, such as --yes, --reason or --file, have no
// variable, so that nobody confirms an action by accident.
type cli struct {
	common

	Service  serviceCmds  `embed:""`
	Facts    allFacts     `embed:""`
	People   peopleCmds   `embed:""`
	Season   seasonCmds   `embed:""`
	Versions versionsCmds `embed:""`
	Machine  machineCmds  `embed:""`
}

// common are the flags of every command.
type common struct {
	LogFormat   string           `help:"How servers log: text or json." enum:"text,json" default:"text"`
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version and quit." env:"-"`
	JSON        bool             `help:"Print machine-readable JSON instead of tables." name:"json"`
}

// grammarPart is the whole command line or the part with one group.
type grammarPart interface {
	streams(command *kong.Context, name string, stdout, stderr io.Writer) *terminal.Streams
}

// only is the command line with the commands of one group.
type only[G any] struct {
	common

	Group G `embed:""`
}

// grammar returns the part of cli that parses a command line: one group if the first word is a command of it. kong takes
// 17 ms of CPU time to build the whole, which is half of a short command.
func grammar(args []string) grammarPart {
	parts := []grammarPart{
		&only[serviceCmds]{}, &only[allFacts]{}, &only[peopleCmds]{}, &only[seasonCmds]{}, &only[versionsCmds]{}, &only[machineCmds]{},
	}
	if len(args) > 0 && args[0] != "completion" && os.Getenv("COMP_LINE") == "" { // completion names any command
		for _, part := range parts {
			named := func(field string) bool { return strings.ToLower(field) == args[0] }
			if _, ok := reflect.TypeOf(part).Elem().Field(1).Type.FieldByNameFunc(named); ok {
				return part
			}
		}
	}
	return &cli{}
}

// serviceCmds run the service, and show its state.
type serviceCmds struct {
	Serve     servers.Serve     `cmd:"" help:"Builder, scheduler and edge in one process."`
	Edge      servers.Edge      `cmd:"" help:"Serve the published version from memory."`
	Scheduler servers.Scheduler `cmd:"" help:"Build versions when they fall due, and serve the console."`
	Build     buildCmd          `cmd:"" help:"Build and publish once."`
	Rebuild   rebuildCmd        `cmd:"" help:"Ask the running scheduler to build now; build here where none runs."`
	Status    doctor.Status     `cmd:"" help:"Show the state of the service, from the store and the edges."`
	Replay    replayCmd         `cmd:"" help:"Fill a simulated ledger with the picks and results of past seasons."`
}

// allFacts show and change the facts that versions are built from.
type allFacts struct {
	Source     sourceCmds     `cmd:"" help:"The sources of facts."`
	Archive    archiveCmds    `cmd:"" help:"The facts that every version is built from."`
	Facts      factsCmds      `cmd:"" help:"Facts that people entered by hand."`
	Calendar   calendarCmds   `cmd:"" help:"The calendar of a season, entered by hand."`
	Entries    entriesCmds    `cmd:"" help:"The drivers of a round, entered by hand."`
	Qualifying qualifyingCmds `cmd:"" help:"The outcome of qualifying, entered by hand."`
	Grid       gridCmds       `cmd:"" help:"The starting grid, entered by hand."`
}

// peopleCmds are about clients, operators and receivers.
type peopleCmds struct {
	Keys      keysCmds      `cmd:"" help:"API keys of clients."`
	Signing   signingCmds   `cmd:"" help:"Keys that sign versions and the list of API keys."`
	Operators operatorsCmds `cmd:"" help:"People who have a token of their own for the console."`
	Webhooks  webhooksCmds  `cmd:"" help:"Servers that are notified of the changes in every published version."`
}

// seasonCmds decide about rounds, results and championships.
type seasonCmds struct {
	Results      resultsCmds      `cmd:"" help:"Results that an operator verifies."`
	Championship championshipCmds `cmd:"" help:"Decisions about a championship that no race shows: points added or taken, exclusions."`
	Rounds       roundsCmds       `cmd:"" help:"Rounds that are postponed, cancelled, moved or reinstated."`
	Live         liveCmds         `cmd:"" help:"The running race: orders by hand, observations, recordings."`
}

// versionsCmds are about the store, its versions and its ledger.
type versionsCmds struct {
	Snapshots snapshotCmds `cmd:"" help:"Published versions."`
	Settings  settingsCmds `cmd:"" help:"The rules that every scheduler of a store goes by."`
	Store     storeCmds    `cmd:"" help:"Copies of everything."`
	Ledger    ledgerCmds   `cmd:"" help:"The append-only record of picks and results."`
	Verify    verifyCmd    `cmd:"" help:"Check an answer of the API against the signature of the publisher."`
}

// machineCmds set up and check an installation.
type machineCmds struct {
	Doctor     doctor.Doctor `cmd:"" help:"Check everything that a server depends on; show a command that helps for each problem."`
	Init       initCmd       `cmd:"" help:"Set up a new installation: environment file, store, first key, token of the operator."`
	Completion completionCmd `cmd:"" help:"Print the setup of shell completion: source <(gridcast completion bash)."`
	Version    versionCmd    `cmd:"" help:"Print the version; with --json also commit, Go, platform and the formats of the store."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal stops the command in order. AfterFunc then removes the handler, so that a
	// second signal kills the process.
	context.AfterFunc(ctx, stop)
	// In an environment file an empty line such as GRIDCAST_REDIS= means that the variable is not set.
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "GRIDCAST_") {
			_ = os.Unsetenv(name)
		}
	}
	time.Local = time.UTC // so that logs of several hosts compare, and no time is printed in another zone
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exited := -1
	c := grammar(args)
	parser, err := kong.New(c,
		kong.Name("gridcast"),
		kong.Description("A read-only JSON API over a motor-racing season."),
		kong.DefaultEnvars("GRIDCAST"),
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readInstant)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(readDuration)),
		kong.KindMapper(reflect.Int, kong.MapperFunc(readWhole)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(readWhole)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: true}),
		kong.Writers(stdout, stderr),
		kong.Vars{"version": "gridcast " + version},
		kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		panic(fmt.Sprintf("BUG: command line: %v", err))
	}
	kongcompletion.Register(parser) // answers a shell that completes a command line, and calls Exit
	if exited >= 0 {
		return exited
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // help was printed
		return exited
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "gridcast: %v%s; try %s --help\n", err, hintFor(err, args), helpFor(err))
		return exitUsage
	}
	s := c.streams(command, args[0], stdout, stderr)
	err = command.Run(s)
	s.EndProgress()
	if lost := s.OutputError(); err == nil && lost != nil {
		err = fmt.Errorf("print the output: %w; the command itself succeeded", lost)
	}
	var usage terminal.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		complain(s, err)
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		_, _ = fmt.Fprintln(s.Err, "gridcast: a signal stopped the command; its writes so far stay, and running it again continues from there")
	default:
		complain(s, err)
	}
	return exitFailed
}

// streams returns the outputs of a command. Servers log their start.
func (c *common) streams(command *kong.Context, name string, stdout, stderr io.Writer) *terminal.Streams {
	s := terminal.New(stdout, stderr)
	s.JSON, s.Log, s.Given, s.Version, s.Commit = c.JSON, newLogger(s.Err, c.LogFormat), map[string]bool{}, version, commit
	for _, part := range command.Path {
		if part.Flag != nil && !part.Resolved {
			s.Given[part.Flag.Name] = true
		}
	}
	switch name {
	case "doctor":
		s.Unread = unreadVariables(os.Environ())
	case "serve", "edge", "scheduler":
		s.Log.Info("server starts", "release", version, "commit", commit, "go", runtime.Version(), "command", name)
		if s.Unread = unreadVariables(os.Environ()); len(s.Unread) > 0 {
			s.Log.Warn("the environment has variables that no command reads; gridcast serve --help lists the known ones", "names", s.Unread)
		}
	}
	return s
}

// hintFor explains an error of the flag --tiers in a command, which people take for --tier.
func hintFor(err error, args []string) string {
	switch {
	case !strings.HasPrefix(err.Error(), "--tiers: "):
		return ""
	case args[0] == "init":
		return "; --key-tier TIER chooses the tier of the first key"
	case args[0] == "keys":
		return "; --tiers NAME=N sets the requests a minute of a tier, --tier TIER chooses the tier of the key"
	}
	return "; --tiers NAME=N sets the requests a minute of a tier"
}

func readInstant(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("instant", &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q: must be an instant with its offset, such as 2026-11-22T04:00:00Z or 2026-11-22T05:00:00+01:00", text)
	}
	target.Set(reflect.ValueOf(at))
	return nil
}

func readDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q: must be a duration such as 90s, 2h or 1h30m", text)
	}
	target.SetInt(int64(d))
	return nil
}

// readWhole reads a whole number in base 10. kong itself takes 010 for 8.
func readWhole(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("number", &text); err != nil {
		return err
	}
	n, err := strconv.ParseInt(text, 10, target.Type().Bits())
	if err != nil {
		return fmt.Errorf("%q: must be a whole number of at most %d", text, int64(1)<<(target.Type().Bits()-1)-1)
	}
	target.SetInt(n)
	return nil
}

// ofSamples are variables of the kit that gridcast itself does not read.
var ofSamples = []string{"GRIDCAST_KEY", "GRIDCAST_URL", "GRIDCAST_VERSION", "GRIDCAST_WEBHOOK_SECRET"}

// unreadVariables returns the names of the variables that begin with GRIDCAST_ although no command reads them, for
// example misspelt ones.
func unreadVariables(environment []string) []string {
	known := slices.Clone(ofSamples)
	parser, err := kong.New(new(cli), kong.DefaultEnvars("GRIDCAST"), kong.Vars{"version": version})
	if err != nil {
		panic(fmt.Sprintf("BUG: command line: %v", err))
	}
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
		}
		return next(nil)
	})
	var unread []string
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "GRIDCAST_") && !slices.Contains(known, name) {
			unread = append(unread, name)
		}
	}
	slices.Sort(unread)
	return unread
}

// helpFor is the command to ask for help after a faulty command line.
func helpFor(err error) string {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return "gridcast"
	}
	command := []string{"gridcast"}
	for _, part := range parse.Context.Path {
		if part.Command != nil {
			command = append(command, part.Command.Name)
		}
	}
	return strings.Join(command, " ")
}

// complain prints an error. It indents all lines but the first, because a storage may have sent them.
func complain(s *terminal.Streams, err error) {
	_, _ = fmt.Fprintf(s.Err, "gridcast: %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

func newLogger(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

type versionCmd struct{}

// build describes this program: the answer of version --json. Formats has the format that the program writes of each
// document of the store.
type build struct {
	Version  string         `json:"version"`
	Commit   string         `json:"commit"`
	Go       string         `json:"go"`
	Platform string         `json:"platform"`
	Formats  map[string]int `json:"formats"`
}

func (versionCmd) Run(s *terminal.Streams) error { //nolint:unparam // kong wants an error
	formats := map[string]int{
		"manifest": snapshots.Format, "ledger": ledger.Format, "archive": archive.Version, "observations": live.Format, "keys": keys.Format, "usage": usage.Format,
	}
	s.Print(build{version, commit, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, formats}, "gridcast %s\n", version)
	return nil
}

// completionCmd prints the lines by which a shell asks this program to complete a command line.
type completionCmd struct {
	Shell string `arg:"" help:"${enum}." enum:"bash,zsh,fish"`
}

func (c *completionCmd) Run(k *kong.Context, s *terminal.Streams) error {
	if err := (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(k); err != nil || c.Shell != "fish" {
		return err
	}
	// bash and zsh complete file names by themselves where the program offers nothing; fish does not.
	paths := map[string]bool{}
	err := kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Type == "path" && !paths[flag.Name] {
			paths[flag.Name] = true
			s.Printf("complete -c gridcast -l %s -r -F\n", flag.Name)
		}
		return next(nil)
	})
	if err != nil {
		return fmt.Errorf("list the flags that name files: %w", err)
	}
	return nil
}
