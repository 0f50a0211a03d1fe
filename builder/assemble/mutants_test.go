package assemble_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/klauspost/compress/gzip"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
)

// mutantCommits are the commits of three weekends of 2026 by subject: the first of a season, one with a sprint, and one
// without.
var mutantCommits = []string{
	"2026 Australian Grand Prix FP1 + FP2", "2026 Australian Grand Prix FP3 + Qualifying", "2026 Australian Grand Prix update",
	"2026 Chinese Grand Prix FP1 + SQ", "2026 Chinese Grand Prix Sprint Race + Qualifying", "2026 Chinese Grand Prix update",
	"2026 Japanese Grand Prix FP1 + FP2", "2026 Japanese Grand Prix FP3 + Qualifying", "2026 Japanese Grand Prix update",
}

// cell is a key and its value, as a file writes them.
type cell struct{ key, value string }

// yamlTable is a file of the source: rows of cells, or one mapping.
type yamlTable struct {
	mapping bool
	rows    [][]cell
}

func parseTable(content []byte) yamlTable {
	var t yamlTable
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\r\n")
		if rest, ok := strings.CutPrefix(line, "- "); ok {
			t.rows, line = append(t.rows, nil), rest
		} else if len(t.rows) == 0 {
			t.mapping, t.rows = true, append(t.rows, nil)
		}
		key, value, _ := strings.Cut(strings.TrimLeft(line, " "), ":")
		last := len(t.rows) - 1
		t.rows[last] = append(t.rows[last], cell{key, strings.TrimPrefix(value, " ")})
	}
	return t
}

func (t yamlTable) bytes() []byte {
	var b bytes.Buffer
	for _, row := range t.rows {
		for i, c := range row {
			switch {
			case t.mapping:
			case i == 0:
				b.WriteString("- ")
			default:
				b.WriteString("  ")
			}
			b.WriteString(c.key + ":")
			if c.value != "" {
				b.WriteString(" " + c.value)
			}
			b.WriteString("\n")
		}
	}
	return b.Bytes()
}

// clone copies the table, so that a cell of a row or of the next one can be set.
func (t yamlTable) clone(row int) yamlTable {
	t.rows = slices.Clone(t.rows)
	for i := row; i < min(row+2, len(t.rows)); i++ {
		t.rows[i] = slices.Clone(t.rows[i])
	}
	return t
}

// operator changes one cell of a table. It returns false where it does not apply.
type operator struct {
	name  string
	apply func(t *yamlTable, row, col int) bool
}

// set replaces the text of a cell and keeps its quotes.
func (t *yamlTable) set(row, col int, text string) bool {
	was := t.rows[row][col].value
	if strings.HasPrefix(was, `"`) && text != "" {
		text = `"` + text + `"`
	}
	t.rows[row][col].value = text
	return text != was
}

func (t *yamlTable) text(row, col int) string { return strings.Trim(t.rows[row][col].value, `"`) }

// column returns the index of a key in a row, -1 if the row lacks it.
func (t *yamlTable) column(row int, key string) int {
	return slices.IndexFunc(t.rows[row], func(c cell) bool { return c.key == key })
}

// numeric changes a cell that is a number or a time.
func numeric(change func(x float64) float64) func(*yamlTable, int, int) bool {
	return func(t *yamlTable, row, col int) bool {
		text := t.text(row, col)
		if d, ok := season.ParseLapTime(text); ok && strings.ContainsAny(text, ".:") {
			return t.set(row, col, lapText(time.Duration(change(d.Seconds())*float64(time.Second)+.5).Round(time.Millisecond)))
		}
		x, err := strconv.ParseFloat(text, 64)
		return err == nil && t.set(row, col, strconv.FormatFloat(change(x), 'f', -1, 64))
	}
}

// lapText writes a time as the source does.
func lapText(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	s := d.Seconds() - float64(d/time.Minute)*60
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%s%d:%02d:%06.3f", sign, d/time.Hour, d/time.Minute%60, s)
	case d >= time.Minute:
		return fmt.Sprintf("%s%d:%06.3f", sign, d/time.Minute, s)
	}
	return fmt.Sprintf("%s%.3f", sign, s)
}

// dated changes a cell that is a day, or the year of one.
func dated(years, days int) func(*yamlTable, int, int) bool {
	return func(t *yamlTable, row, col int) bool {
		day, err := time.Parse(time.DateOnly, t.text(row, col))
		return err == nil && t.set(row, col, day.AddDate(years, 0, days).Format(time.DateOnly))
	}
}

var (
	identifierColumn = regexp.MustCompile(`Id$|^id$`)
	clockText        = regexp.MustCompile(`^\d\d:\d\d$`)
)

// strangers are identifiers that exist in the source, and that these weekends do not have.
var strangers = map[string]string{
	"driverId": "daniel-ricciardo", "constructorId": "sauber", "engineManufacturerId": "renault", "circuitId": "imola", "grandPrixId": "emilia-romagna",
}

// operators are the kinds of mistakes. The last two change whole rows.
var operators = []operator{
	{"empty", func(t *yamlTable, row, col int) bool { return t.set(row, col, "") }},
	{"exchanged with the next row", func(t *yamlTable, row, col int) bool {
		if row+1 == len(t.rows) {
			return false
		}
		other := t.column(row+1, t.rows[row][col].key)
		if other < 0 || t.rows[row][col] == t.rows[row+1][other] {
			return false
		}
		t.rows[row][col], t.rows[row+1][other] = t.rows[row+1][other], t.rows[row][col]
		return true
	}},
	{"exchanged with the next column", func(t *yamlTable, row, col int) bool {
		if col+1 == len(t.rows[row]) || t.rows[row][col].value == t.rows[row][col+1].value {
			return false
		}
		t.rows[row][col].value, t.rows[row][col+1].value = t.rows[row][col+1].value, t.rows[row][col].value
		return true
	}},
	{"times ten", numeric(func(x float64) float64 { return x * 10 })},
	{"a tenth", numeric(func(x float64) float64 { return x / 10 })},
	{"one more", numeric(func(x float64) float64 { return x + 1 })},
	{"one less", numeric(func(x float64) float64 { return x - 1 })},
	{"sign", numeric(func(x float64) float64 { return -x })},
	{"a thousandth more", func(t *yamlTable, row, col int) bool {
		return strings.Contains(t.text(row, col), ".") && numeric(func(x float64) float64 { return x + .001 })(t, row, col)
	}},
	{"the neighbour's", func(t *yamlTable, row, col int) bool {
		if row+1 == len(t.rows) {
			return false
		}
		other := t.column(row+1, t.rows[row][col].key)
		return other >= 0 && t.set(row, col, t.text(row+1, other))
	}},
	{"another known identifier", func(t *yamlTable, row, col int) bool {
		stranger := strangers[t.rows[row][col].key]
		return stranger != "" && t.set(row, col, stranger)
	}},
	{"an unknown identifier", func(t *yamlTable, row, col int) bool {
		return identifierColumn.MatchString(t.rows[row][col].key) && t.set(row, col, "nobody-knows")
	}},
	{"a day later", dated(0, 1)},
	{"a day earlier", dated(0, -1)},
	{"a year later", dated(1, 0)},
	{"a year earlier", dated(-1, 0)},
	{"twelve hours off", func(t *yamlTable, row, col int) bool {
		text := t.text(row, col)
		if !clockText.MatchString(text) {
			return false
		}
		hour, _ := strconv.Atoi(text[:2])
		return t.set(row, col, fmt.Sprintf("%02d%s", (hour+12)%24, text[2:]))
	}},
	{"an hour off", func(t *yamlTable, row, col int) bool {
		text := t.text(row, col)
		if !clockText.MatchString(text) {
			return false
		}
		hour, _ := strconv.Atoi(text[:2])
		return t.set(row, col, fmt.Sprintf("%02d%s", (hour+1)%24, text[2:]))
	}},
	{"minutes for seconds", func(t *yamlTable, row, col int) bool {
		d, ok := season.ParseLapTime(t.text(row, col))
		return ok && strings.ContainsAny(t.text(row, col), ".") && t.set(row, col, lapText(d*60))
	}},
	{"a comma", func(t *yamlTable, row, col int) bool {
		text := t.text(row, col)
		_, err := strconv.ParseFloat(text, 64)
		return err == nil && t.set(row, col, text+",5")
	}},
	{"doubled", func(t *yamlTable, row, col int) bool {
		if col != 0 || t.mapping {
			return false
		}
		t.rows = slices.Insert(t.rows, row, t.rows[row])
		return true
	}},
	{"gone", func(t *yamlTable, row, col int) bool {
		if col != 0 || t.mapping {
			return false
		}
		t.rows = slices.Delete(t.rows, row, row+1)
		return true
	}},
}

// revision is a recorded commit, and the archive before it.
type revision struct {
	subject string
	at      time.Time
	files   map[string][]byte // reduced to the season's rounds so far and some later ones
	changed []string
	current season.Facts
	whole   assemble.Document // of the true files
	truth   assemble.Output
}

// mutant is one mistake in one file of a revision.
type mutant struct {
	*revision
	file     string
	row, col int
	key      string
	operator string
	content  func() []byte
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s: %s, row %d, %s %s", m.subject, m.file, m.row+1, m.key, m.operator)
}

// table is the name of the table that the mutant is in, without its place in the season.
func (m *mutant) table() string {
	return strings.TrimSuffix(path.Base(m.file), ".yml")
}

// unpack returns the files of a branch below src/data.
func unpack(t *testing.T, packed []byte) map[string][]byte {
	t.Helper()
	r := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	files := make(map[string][]byte)
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.Do(t, err)
		content := must.Get(io.ReadAll(archive))(t)
		if _, name, ok := strings.Cut(header.Name, "/src/data/"); ok {
			files[name] = content
		}
	}
}

var identifierInFile = regexp.MustCompile(`(?m)^[- ]*\w*[iI]d: (\S+)$`)

// reduced keeps the rounds 1 to 7 of a season, and the things to which their rows refer. All mutants are judged in it,
// because a whole branch takes ten times as long.
func reduced(files map[string][]byte, year int) map[string][]byte {
	kept := make(map[string][]byte)
	wanted := make(map[string]bool)
	for _, id := range strangers {
		wanted[id] = true
	}
	prefix := fmt.Sprintf("seasons/%d/", year)
	for name, content := range files {
		rest, ok := strings.CutPrefix(name, prefix+"races/")
		if !ok || rest[:2] > "07" {
			continue
		}
		kept[name] = content
		for _, match := range identifierInFile.FindAllSubmatch(content, -1) {
			wanted[string(match[1])] = true
		}
	}
	for range 2 { // the things, then the countries of the things
		for name, content := range files {
			if strings.HasPrefix(name, "seasons/") || !wanted[strings.TrimSuffix(path.Base(name), ".yml")] || kept[name] != nil {
				continue
			}
			kept[name] = content
			for _, match := range identifierInFile.FindAllSubmatch(content, -1) {
				if strings.HasPrefix(name, "countries/") || files["countries/"+string(match[1])+".yml"] != nil {
					wanted[string(match[1])] = true
				}
			}
		}
	}
	return kept
}

// settled leaves out practice, qualifying, grids, stops and fastest laps of rounds that a commit does not touch. They are most of
// the rows, and no gate of another round reads them.
func settled(files [2]map[string][]byte) {
	touched := make(map[string]bool)
	for name, content := range files[1] {
		touched[path.Dir(name)] = touched[path.Dir(name)] || !bytes.Equal(files[0][name], content)
	}
	for _, files := range files {
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return !touched[path.Dir(name)] && besideResults.MatchString(name) })
	}
}

// besideResults are the tables that no other round depends on.
var besideResults = regexp.MustCompile(`/(free-practice-.-results|(sprint-)?qualifying-results|(sprint-)?starting-grid-positions|pit-stops|fastest-laps)\.yml$`)

// documentOf reads files as the source's document at an instant.
func documentOf(files map[string][]byte, at time.Time, year int) (assemble.Document, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
	if err != nil {
		return assemble.Document{}, err
	}
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		header := tar.Header{Typeflag: tar.TypeReg, Name: "f1db-main/src/data/" + name, Mode: 0o644, Size: int64(len(content)), ModTime: at}
		if err := archive.WriteHeader(&header); err != nil {
			return assemble.Document{}, err
		}
		if _, err := archive.Write(content); err != nil {
			return assemble.Document{}, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return assemble.Document{}, err
	}
	tree, err := f1db.ReadTree(&packed, year, year)
	if err != nil {
		return assemble.Document{}, err
	}
	d, err := tree.Document(media.Media{})
	return assemble.Document{
		Source: "f1db", Revision: "mutant", From: year, To: year, Kind: assemble.Full, Facts: d.Facts, Sheets: d.Sheets, Unread: d.Unread, Born: d.Born, Earlier: map[int]bool{year: true},
	}, err
}

func (r *revision) assemble(documents ...assemble.Document) (assemble.Output, error) {
	return assemble.Assemble(assemble.Input{
		Current: r.current, Documents: documents, Now: r.at,
		Decided: func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
	})
}

// revisions reads the commits of the three weekends. The archive before each has the season before, and the commit before.
func revisions(t *testing.T) []*revision {
	t.Helper()
	host := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), time.Now)
	base := archiveUpTo(t, sourcetest.F1DB2026, 2025)
	base.Seasons = slices.DeleteFunc(base.Seasons, func(s season.Season) bool { return s.Year < 2024 })
	subjects := mutantCommits
	if only := os.Getenv("GRIDCAST_MUTANTS_COMMITS"); only != "" {
		subjects = strings.Split(only, ";")
	}
	var all []*revision
	for i, commit := range host.Commits {
		if !slices.ContainsFunc(subjects, func(s string) bool { return strings.HasPrefix(commit.Subject, s) }) {
			continue
		}
		year, _ := strconv.Atoi(strings.TrimPrefix(commit.Subject, "data: ")[:4])
		var whole, files [2]map[string][]byte
		for n, c := range []codehosttest.Commit{host.Commits[i-1], commit} {
			packed, _ := must.Get2(host.Archive(c.At))(t)
			whole[n] = unpack(t, packed)
			files[n] = reduced(whole[n], year)
		}
		settled(files)
		for name, content := range files[0] { // things that the commit does not refer to
			if files[1][name] == nil && !strings.HasPrefix(name, "seasons/") {
				files[1][name] = content
			}
		}
		r := &revision{subject: commit.Subject, at: commit.At, files: files[1], current: base}
		before := must.Get(documentOf(files[0], commit.At, year))(t)
		before.Earlier = nil
		for range 2 { // the first run takes the season, the second the things that follow from it
			out := must.Get(r.assemble(before))(t)
			r.current = out.Facts
		}
		for _, name := range slices.Sorted(maps.Keys(files[1])) {
			if !bytes.Equal(files[0][name], files[1][name]) && (strings.HasPrefix(name, "seasons/") || whole[0][name] == nil) {
				r.changed = append(r.changed, name)
			}
		}
		after := must.Get(documentOf(r.files, r.at, year))(t)
		r.whole, r.truth = after, must.Get(r.assemble(after))(t)
		if len(r.truth.Held)+len(r.truth.Missing) > 0 {
			t.Errorf("%s: the true revision is held: %+v, %+v", r.subject, r.truth.Held, r.truth.Missing)
		}
		all = append(all, r)
	}
	return all
}

// mutants returns all mutants of a revision. The calendar entry of the round counts as a table of each commit.
func (r *revision) mutants() []*mutant {
	var all []*mutant
	files := slices.Clone(r.changed)
	for _, name := range r.changed {
		if calendar := path.Dir(name) + "/race.yml"; strings.Contains(name, "/races/") && !slices.Contains(files, calendar) {
			files = append(files, calendar)
		}
	}
	for _, file := range files {
		table := parseTable(r.files[file])
		for row := range table.rows {
			for col, c := range table.rows[row] {
				for _, op := range operators {
					mutated := table.clone(row)
					if op.apply(&mutated, row, col) {
						all = append(all, &mutant{r, file, row, col, c.key, op.name, func() []byte {
							mutated := table.clone(row)
							op.apply(&mutated, row, col)
							return mutated.bytes()
						}})
					}
				}
			}
		}
	}
	return all
}

// The outcomes of a mutant.
const (
	refusedMutant  = "refused"
	heldMutant     = "held"
	waitingMutant  = "waiting"
	harmlessMutant = "harmless"
	ignoredMutant  = "not taken" // the block stays as it was, and nothing is said about it
	wrongMutant    = "WRONG"

	unknowableMutant = "unknowable"
	disputedMutant   = "disputed" // unknowable, unless a second source has the fact: the result waits for a person
)

// doubts counts the sentences for which a block waits.
func doubts(out *assemble.Output, id assemble.BlockID) (n int) {
	for _, d := range out.Doubted {
		if d.BlockID == id {
			n += len(d.Lines)
		}
	}
	return n
}

// numbered returns the rows with the number on each car, which stands in them only where it differs from the entry's.
func numbered(r *season.Round, rows []season.Result) []season.Result {
	rows = slices.Clone(rows)
	for i := range rows {
		if e := r.Entry(rows[i].Driver); e != nil && rows[i].Number == 0 {
			rows[i].Number = e.Number
		}
	}
	return rows
}

// document is the document with the mistake. Of one in a table of a round, only the files of that round are read again, and
// put into the true document: YAML would cost most of the time.
func (m *mutant) document() (assemble.Document, error) {
	files, folder := maps.Clone(m.files), path.Dir(m.file)
	files[m.file] = m.content()
	if path.Base(folder) == strconv.Itoa(m.at.Year()) || path.Base(m.file) == "race.yml" {
		return documentOf(files, m.at, m.at.Year())
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "seasons/") && path.Dir(name) != folder
	})
	round, err := documentOf(files, m.at, m.at.Year())
	if err != nil {
		return round, err
	}
	d, r := m.whole, round.Facts.Seasons[0].Rounds[0]
	of := func(gp season.GrandPrixID) bool { return gp == r.GrandPrix }
	d.Sheets = append(slices.DeleteFunc(slices.Clone(d.Sheets), func(s season.Sheet) bool { return of(s.GrandPrix) }), round.Sheets...)
	d.Unread = round.Unread
	d.Facts.Seasons = slices.Clone(d.Facts.Seasons)
	rounds := slices.Clone(d.Facts.Seasons[0].Rounds)
	rounds[slices.IndexFunc(rounds, func(r season.Round) bool { return of(r.GrandPrix) })] = r
	d.Facts.Seasons[0].Rounds = rounds
	d.Facts.Drivers, d.Facts.Teams, d.Facts.Engines = maps.Clone(d.Facts.Drivers), maps.Clone(d.Facts.Teams), maps.Clone(d.Facts.Engines)
	maps.Copy(d.Facts.Drivers, round.Facts.Drivers)
	maps.Copy(d.Facts.Teams, round.Facts.Teams)
	maps.Copy(d.Facts.Engines, round.Facts.Engines)
	return d, nil
}

// disputed reports whether a second source, from which nothing may be published, contradicts a mutant.
func (m *mutant) disputed() bool {
	d, err := m.document()
	if err != nil {
		return false
	}
	second := assemble.Document{Source: "jolpica", Revision: "true", From: d.From, To: d.To, Kind: assemble.CheckOnly, Facts: m.truth.Facts}
	out, err := m.assemble(d, second)
	return err == nil && len(out.Disputed) > 0
}

// judge judges a mutant. detail names the blocks that are wrong, and lost the number of other blocks that were not applied.
func (m *mutant) judge() (outcome, detail string, lost int) {
	year := m.at.Year()
	d, err := m.document()
	if err != nil {
		return refusedMutant, err.Error(), len(m.truth.Applied)
	}
	out, err := m.assemble(d)
	if err != nil {
		return refusedMutant, err.Error(), len(m.truth.Applied)
	}
	theirs, _ := out.Facts.Season(year)
	ours, _ := m.current.Season(year)
	truth, _ := m.truth.Facts.Season(year)
	var wrong []string
	missing := 0
	waiting := true
	for i := range theirs.Rounds {
		r := &theirs.Rounds[i]
		want, ok := truth.Round(r.GrandPrix)
		if !ok {
			wrong, waiting = append(wrong, "round "+string(r.GrandPrix)), false
			continue
		}
		was, _ := ours.Round(r.GrandPrix)
		for _, r := range []**season.Round{&r, &want, &was} {
			clone := **r
			clone.Results, clone.SprintResults = numbered(*r, clone.Results), numbered(*r, clone.SprintResults)
			*r = &clone
		}
		// Until its entry is applied, the number of a car is unknown.
		for _, rows := range [][2][]season.Result{{r.Results, want.Results}, {r.SprintResults, want.SprintResults}} {
			for i := range rows[0] {
				if rows[0][i].Number == 0 && len(rows[0]) == len(rows[1]) {
					rows[0][i].Number = rows[1][i].Number
				}
			}
		}
		for _, block := range assemble.Blocks() {
			got, want, was := assemble.Only(block, r), assemble.Only(block, want), assemble.Only(block, was)
			fields := assemble.ChangedFields(&got, &want)
			switch {
			case len(fields) == 0:
			case len(assemble.ChangedFields(&got, &was)) == 0:
				missing++
			default:
				wrong = append(wrong, fmt.Sprintf("%s %s", r.GrandPrix, strings.Join(fields, ", ")))
				id := assemble.BlockID{Year: year, GrandPrix: r.GrandPrix, Block: assemble.Result}
				waiting = waiting && (block == assemble.Result || block == assemble.Sprint) && doubts(&out, id) > doubts(&m.truth, id)
			}
		}
	}
	if len(out.Facts.Seasons) != len(m.truth.Facts.Seasons) {
		wrong, waiting = append(wrong, "seasons"), false
	}
	for id, driver := range out.Facts.Drivers {
		if driver != m.truth.Facts.Drivers[id] && driver != m.current.Drivers[id] {
			wrong, waiting = append(wrong, "driver "+string(id)), false
		}
	}
	if len(out.Renames) > 0 {
		wrong, waiting = append(wrong, "renames"), false
	}
	said := len(out.Held) > 0
	detail = strings.Join(wrong, "; ")
	switch {
	case len(wrong) > 0 && waiting:
		outcome = waitingMutant
	case len(wrong) > 0:
		outcome = wrongMutant
	case said:
		outcome = heldMutant
	case missing > 0:
		outcome = ignoredMutant
	default:
		outcome = harmlessMutant
	}
	if outcome == heldMutant {
		detail = out.Held[0].Refused[0].Reason
	}
	return outcome, detail, max(0, missing-1)
}

// TestMutants judges mistakes in the tables of three recorded weekends: each cell, with each operator. It draws 2,000 of
// them by a seed, among them one of each operator and column. GRIDCAST_MUTANTS=N:SEED draws others, GRIDCAST_MUTANTS=all
// judges all, and GRIDCAST_MUTANTS=I/N the Ith of N parts, so that several runs together judge all. With GRIDCAST_MUTANTS
// it prints its progress.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("short: judges 2,000 documents")
	}
	var all []*mutant
	for _, r := range revisions(t) {
		all = append(all, r.mutants()...)
	}
	total := len(all)
	if only := os.Getenv("GRIDCAST_MUTANTS_ONLY"); only != "" {
		match := regexp.MustCompile(only)
		all = slices.DeleteFunc(all, func(m *mutant) bool { return !match.MatchString(m.String()) })
	}
	asked := os.Getenv("GRIDCAST_MUTANTS")
	all, repeat, err := choose(all, asked)
	if err != nil {
		t.Fatalf("GRIDCAST_MUTANTS=%s: want all, COUNT:SEED or PART/PARTS", asked)
	}
	t.Logf("%d of %d mutants; repeat with GRIDCAST_MUTANTS=%s", len(all), total, repeat)
	type verdict struct {
		outcome, detail string
		lost            int
	}
	verdicts := make([]verdict, len(all))
	var next, judged atomic.Int64
	var group sync.WaitGroup
	verbose := os.Getenv("GRIDCAST_MUTANTS_VERBOSE") != ""
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				v, m := &verdicts[i], all[i]
				v.outcome, v.detail, v.lost = m.judge()
				if v.outcome == wrongMutant && unknowable(m) {
					v.outcome = unknowableMutant
					if m.disputed() {
						v.outcome = disputedMutant
					}
				}
				bad := v.outcome == wrongMutant || v.outcome == refusedMutant // a cell never costs a whole document
				if bad || v.outcome == ignoredMutant || verbose {
					t.Logf("%s: %s: %s (%d lost)", v.outcome, m, v.detail, v.lost)
				}
				if bad {
					t.Fail()
				}
				if done := judged.Add(1); asked != "" && done%1000 == 0 {
					t.Logf("%d of %d mutants judged", done, len(all))
				}
			}
		})
	}
	group.Wait()
	// by column, then by operator and outcome
	counts := make(map[string]map[string]int)
	totals := make(map[string]int)
	for i, m := range all {
		v := verdicts[i]
		column, operator := m.kind()
		if counts[column] == nil {
			counts[column] = make(map[string]int)
		}
		counts[column][operator+"\t"+v.outcome]++
		totals[v.outcome]++
		totals["other blocks lost"] += v.lost
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 1, 2, ' ', 0)
	for _, column := range slices.Sorted(maps.Keys(counts)) {
		for _, key := range slices.Sorted(maps.Keys(counts[column])) {
			fmt.Fprintf(w, "%s\t%s\t%d\n", column, key, counts[column][key])
		}
	}
	_ = w.Flush()
	if asked != "" {
		t.Logf("\n%s", &text)
	}
	t.Logf("%v", totals)
}

// kind is the column and the mistake of a mutant. Mistakes in whole rows have no column.
func (m *mutant) kind() (column, operator string) {
	if m.operator == "doubled" || m.operator == "gone" {
		return m.table() + " row", m.operator
	}
	return m.table() + " " + m.key, m.operator
}

// choose returns the mutants of a run and the words that choose the same again. Without words it draws the same 2,000 in each
// run: one of each kind, and others.
func choose(all []*mutant, asked string) (chosen []*mutant, repeat string, err error) {
	if asked == "all" {
		return all, asked, nil
	}
	var part, parts int
	if n, _ := fmt.Sscanf(asked, "%d/%d", &part, &parts); n == 2 && part >= 1 && part <= parts {
		for i := part - 1; i < len(all); i += parts {
			chosen = append(chosen, all[i])
		}
		return chosen, asked, nil
	}
	count, seed := 2000, uint64(1)
	if asked != "" {
		if n, err := fmt.Sscanf(asked, "%d:%d", &count, &seed); n != 2 || count < 1 {
			return nil, "", errors.Join(errors.New("no choice of mutants"), err)
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	drawn := make(map[[2]string]bool)
	var others []*mutant
	for _, m := range all {
		column, operator := m.kind()
		if kind := [2]string{column, operator}; !drawn[kind] {
			drawn[kind] = true
			chosen = append(chosen, m)
		} else {
			others = append(others, m)
		}
	}
	chosen = append(chosen, others...)
	return chosen[:min(count, len(chosen))], fmt.Sprintf("%d:%d", count, seed), nil
}

// unknowables are mistakes that nothing else in a document contradicts, each with the reason. Places, drivers, teams,
// numbers, points, grid places and the laps of classified cars are not among them.
var unknowables = []struct {
	table, column string // regular expressions
	operators     []string
	reason        string
}{
	{"^pit-stops$", "^lap$", append([]string{"a tenth", "times ten"}, within...), "the lap of a stop stands nowhere else; it only rises from stop to stop and is none that the driver did not complete"},
	{"^pit-stops$", "^time$", append([]string{"empty", "times ten", "minutes for seconds"}, within...), "the time in the pit lane stands nowhere else, and a repair or a red flag makes it long"},
	{"^pit-stops$", "^stop$", within, "the source leaves stops out, so that the numbers of a driver's stops only rise"},
	{"^fastest-laps$", "^lap$", append([]string{"a tenth", "empty"}, within...), "the number of the lap stands nowhere else; it is none that the driver did not complete"},
	{"^free-practice-", "^laps$", append([]string{"empty", "a tenth", "times ten", "exchanged with the next column"}, within...), "the number of laps in practice stands nowhere else"},
	{"qualifying-results$", "^q[12]$", append([]string{"empty", "exchanged with the next column"}, within...), "only the last time of a driver decides the place; an earlier one is between those of others"},
	{"race-results$", "^laps$", []string{"one more", "one less", "the neighbour's"}, "of a retired car, in the first revision with it; a second source disputes it, see retiredLap"},
	{"-results$", "^reasonRetired$", []string{"empty", "exchanged with the next row", "the neighbour's"}, "the words for a retirement stand nowhere else, and a first revision often lacks them"},
	{"^starting-grid-positions$|^sprint-starting-grid-positions$", "^gridPenalty$", nil, "the size of a penalty is the word of the stewards and stands nowhere else"},
	{"^race$", "^(freePractice.|qualifying|sprintQualifying|sprintRace)Time$", []string{"an hour off"}, "organisers move sessions by an hour"},
	{"^race$", "^courseLength$", []string{"a thousandth more"}, "sources correct a length by some metres"},
	{"^race$", "^date$", []string{"a day later"}, "rain postpones a race by a day"},
	{"^race$", "^time$", []string{"an hour off"}, "organisers move a start to come by an hour; a past one waits"},
	{"^driver-standings$", "^row$", []string{"last gone"}, "early in a season the source leaves out drivers without points"},
	{"^(pit-stops|fastest-laps|free-practice-.-results|qualifying-results|sprint-qualifying-results)$", "^row$", []string{"last gone"}, "a car may be absent from these tables, and nothing follows the last row"},
}

// within are the operators that leave a number plausible.
var within = []string{"one more", "one less", "a thousandth more", "the neighbour's", "exchanged with the next row"}

// retiredLap reports whether a mutant takes a lap from a retired car, or gives it one, where all other cells stay true. Had
// the car gone a lap further or less, only this cell would be another: the car has neither a time nor a gap, its fastest
// lap and its stops lie before it, and the retirements above and below it stay above and below. A second source has the
// cell too: F1DB and Ergast have the same laps in each of the 4,226 rows of 2015 to 2024.
func retiredLap(m *mutant) bool {
	laps := func(content []byte) (n int, status string) {
		t := parseTable(content)
		n, _ = strconv.Atoi(t.text(m.row, t.column(m.row, "laps")))
		return n, t.text(m.row, t.column(m.row, "position"))
	}
	was, status := laps(m.files[m.file])
	is, _ := laps(m.content())
	return status == "DNF" && (is == was+1 || is == was-1)
}

// unknowable reports whether a list of the unknowables has a mutant.
func unknowable(m *mutant) bool {
	column, op := m.key, m.operator
	switch {
	case op == "gone" && m.row == len(parseTable(m.files[m.file]).rows)-1:
		column, op = "row", "last gone"
	case op == "gone", op == "doubled":
		column = "row"
	}
	if column == "laps" && strings.HasSuffix(m.table(), "race-results") && !retiredLap(m) {
		return false
	}
	for _, u := range unknowables {
		if regexp.MustCompile(u.table).MatchString(m.table()) && regexp.MustCompile(u.column).MatchString(column) &&
			(u.operators == nil || slices.Contains(u.operators, op)) {
			return true
		}
	}
	return false
}
