package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/snapshots/blob"
)

// ArchiveDiff is how one archive differs from another, round by round.
type ArchiveDiff struct {
	SeasonsAdded   []int       `json:"seasons_added,omitzero"`
	SeasonsRemoved []int       `json:"seasons_removed,omitzero"`
	Rounds         []RoundDiff `json:"rounds"`                  // by year and number
	ColoursLost    []int       `json:"colours_lost,omitzero"`   // seasons with fewer teams of known colour
	ColoursGained  []int       `json:"colours_gained,omitzero"` // seasons with more
}

// RoundDiff is how a round differs.
type RoundDiff struct {
	Year       int                `json:"year"`
	GrandPrix  season.GrandPrixID `json:"grand_prix"`
	Name       string             `json:"gp_name"`
	Kind       string             `json:"kind"`                 // added, removed or changed
	Changed    []string           `json:"changed,omitzero"`     // what of a changed round differs: "results", "grid"
	LostResult bool               `json:"lost_result,omitzero"` // it had a result, and has none
	NewResult  bool               `json:"new_result,omitzero"`  // it had a result, and has another
}

// The kinds of RoundDiff.
const (
	RoundAdded   = "added"
	RoundRemoved = "removed"
	RoundChanged = "changed"
)

// Lost returns the rounds whose result is no longer there.
func (d *ArchiveDiff) Lost() []RoundDiff {
	var lost []RoundDiff
	for _, r := range d.Rounds {
		if r.LostResult {
			lost = append(lost, r)
		}
	}
	return lost
}

// CompareArchives says how after differs from before.
func CompareArchives(before, after *season.Archive) ArchiveDiff {
	var diff ArchiveDiff
	old, now := bySeason(before), bySeason(after)
	years := map[int]bool{}
	for year := range old {
		years[year] = true
	}
	for year := range now {
		years[year] = true
	}
	for year := range years {
		x, had := old[year]
		y, has := now[year]
		switch {
		case !had:
			diff.SeasonsAdded = append(diff.SeasonsAdded, year)
			x = &season.Season{Year: year}
		case !has:
			diff.SeasonsRemoved = append(diff.SeasonsRemoved, year)
			y = &season.Season{Year: year}
		case len(y.Colours) < len(x.Colours):
			diff.ColoursLost = append(diff.ColoursLost, year)
		case len(y.Colours) > len(x.Colours):
			diff.ColoursGained = append(diff.ColoursGained, year)
		}
		diff.Rounds = append(diff.Rounds, compareRounds(x, y)...)
	}
	for _, list := range [][]int{diff.SeasonsAdded, diff.SeasonsRemoved, diff.ColoursLost, diff.ColoursGained} {
		slices.Sort(list)
	}
	slices.SortStableFunc(diff.Rounds, func(a, b RoundDiff) int { return cmp.Compare(a.Year, b.Year) })
	return diff
}

func bySeason(a *season.Archive) map[int]*season.Season {
	seasons := a.Facts().Seasons
	years := make(map[int]*season.Season, len(seasons))
	for i := range seasons {
		years[seasons[i].Year] = &seasons[i]
	}
	return years
}

// compareRounds compares the rounds of a season: those of after in its order, then those that
// only before has.
func compareRounds(before, after *season.Season) []RoundDiff {
	var diffs []RoundDiff
	find := func(rounds []season.Round, gp season.GrandPrixID) *season.Round {
		if i := slices.IndexFunc(rounds, func(r season.Round) bool { return r.GrandPrix == gp }); i >= 0 {
			return &rounds[i]
		}
		return nil
	}
	for i := range after.Rounds {
		now := &after.Rounds[i]
		d := RoundDiff{Year: after.Year, GrandPrix: now.GrandPrix, Name: now.Name, Kind: RoundAdded}
		if was := find(before.Rounds, now.GrandPrix); was != nil {
			d.Kind, d.Changed = RoundChanged, changedFields(was, now)
			d.LostResult = was.Finished() && !now.Finished()
			d.NewResult = was.Finished() && now.Finished() && slices.Contains(d.Changed, "results")
			if len(d.Changed) == 0 {
				continue
			}
		}
		diffs = append(diffs, d)
	}
	for i := range before.Rounds {
		if was := &before.Rounds[i]; find(after.Rounds, was.GrandPrix) == nil {
			diffs = append(diffs, RoundDiff{Year: before.Year, GrandPrix: was.GrandPrix, Name: was.Name, Kind: RoundRemoved, LostResult: was.Finished()})
		}
	}
	return diffs
}

// changedFields names what differs between two forms of a round, as people call it.
func changedFields(was, now *season.Round) []string {
	var changed []string
	x, y := reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()
	for i := range x.NumField() {
		a, b := x.Field(i), y.Field(i)
		if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
			continue // nil and empty say the same
		}
		if t, ok := a.Interface().(time.Time); ok && t.Equal(b.Interface().(time.Time)) {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			changed = append(changed, words(x.Type().Field(i).Name))
		}
	}
	return changed
}

// words turns the name of a field into words: "SprintGrid" is "sprint grid".
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// Sentences says the difference, the worst first.
func (d *ArchiveDiff) Sentences() []string {
	var text []string
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	counts := map[string]int{}
	for _, r := range d.Rounds {
		counts[r.Kind]++
	}
	if len(d.SeasonsRemoved) > 0 {
		add("It lacks %d seasons that the one in use has: %s.", len(d.SeasonsRemoved), numbers(d.SeasonsRemoved))
	}
	if lost := d.Lost(); len(lost) > 0 {
		add("It lacks the results of %d rounds: %s.", len(lost), names(lost))
	}
	if n := counts[RoundRemoved]; n > 0 {
		add("%d rounds are not in it.", n)
	}
	if len(d.SeasonsAdded) > 0 {
		add("It adds %d seasons: %s.", len(d.SeasonsAdded), numbers(d.SeasonsAdded))
	}
	if n := counts[RoundAdded]; n > 0 {
		add("It adds %d rounds.", n)
	}
	if n := counts[RoundChanged]; n > 0 {
		var changed []RoundDiff
		for _, r := range d.Rounds {
			if r.Kind == RoundChanged {
				changed = append(changed, r)
			}
		}
		add("%d rounds differ: %s.", n, names(changed))
	}
	if len(d.ColoursLost) > 0 {
		add("Team colours are lost in %d seasons: %s.", len(d.ColoursLost), numbers(d.ColoursLost))
	}
	if len(text) == 0 {
		add("It holds the same rounds with the same facts.")
	}
	return text
}

// mostNamed is how many names a sentence lists.
const mostNamed = 8

func names(rounds []RoundDiff) string {
	var list []string
	for _, r := range slices.Backward(rounds) { // the latest are those that people look for
		if len(list) == mostNamed {
			return strings.Join(list, ", ") + fmt.Sprintf(" and %d more", len(rounds)-mostNamed)
		}
		name := fmt.Sprintf("%s %d", r.Name, r.Year)
		if len(r.Changed) > 0 {
			name += " (" + strings.Join(r.Changed, ", ") + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

func numbers(years []int) string {
	if len(years) > mostNamed {
		return fmt.Sprintf("%d to %d", years[0], years[len(years)-1])
	}
	return strings.Trim(fmt.Sprint(years), "[]")
}

// ImportArchive makes an archive the one that builders build from.
type ImportArchive struct {
	File   []byte // an archive file
	Origin string // where it comes from, for the log: a path, the name of an upload
}

func (d ImportArchive) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.PutArchive, Subject: strings.TrimSpace(d.Origin + " " + archive.Sum(d.File))}
}

func (d ImportArchive) preview(ctx context.Context, o *Operator) (Preview, error) {
	next, err := archive.Decode(bytes.NewReader(d.File))
	if err != nil {
		return Preview{}, fmt.Errorf("import %s: %w", d.Origin, err)
	}
	return o.previewArchive(ctx, next, archive.Sum(d.File))
}

// previewArchive previews that the archive of a sum becomes the one in use. It is refused where a
// result is no longer there that is verified: what is published could not be built any more.
func (o *Operator) previewArchive(ctx context.Context, next *season.Archive, sum string) (Preview, error) {
	p := Preview{Title: "Use another archive", Question: "Build everything from this archive?"}
	inUse, err := builder.NewArchiveStore(o.Store).Load(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		p.Question, p.Effects = "", []string{"The store has no archive yet: this one is its first."}
		return p, nil
	case err != nil:
		p.Warnings = []string{fmt.Sprintf("The archive in use cannot be read, so nothing can be compared: %v.", err)}
		return p, nil
	case inUse.SHA256 == sum:
		p.Question, p.Seen, p.Effects = "", inUse.SHA256, []string{"It is the archive in use: nothing changes."}
		return p, nil
	}
	diff := CompareArchives(inUse.Archive, next)
	p.Seen, p.Effects = inUse.SHA256, diff.Sentences()
	lost := diff.Lost()
	if len(lost) > 0 {
		p.Refusal = fmt.Sprintf("this archive lacks the results of %d rounds that the one in use has: %s", len(lost), names(lost))
	}
	if len(diff.ColoursLost) > 0 {
		p.Warnings = append(p.Warnings, "Pages turn grey where team colours are lost.")
	}
	if onlyAdds(&diff) {
		p.Question = "" // nothing is replaced that anybody has relied on
	}
	return p, nil
}

// onlyAdds says that no round, result or colour is lost and no result is another one.
func onlyAdds(d *ArchiveDiff) bool {
	return len(d.SeasonsRemoved) == 0 && len(d.ColoursLost) == 0 &&
		!slices.ContainsFunc(d.Rounds, func(r RoundDiff) bool { return r.Kind == RoundRemoved || r.LostResult || r.NewResult })
}

func (d ImportArchive) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	return o.useArchive(ctx, d.File, p)
}

func (o *Operator) useArchive(ctx context.Context, file []byte, p Preview) (Answer, error) {
	facts := builder.NewArchiveStore(o.Store)
	if inUse, err := facts.Load(ctx); err == nil && p.Seen != "" && inUse.SHA256 != p.Seen {
		return Answer{}, fmt.Errorf("import: the archive in use: %w", ErrChanged)
	}
	now, err := facts.Put(ctx, file)
	if err != nil {
		return Answer{}, err
	}
	done := Answer{Facts: &now, Text: fmt.Sprintf("The archive %.12s is in use.", now.SHA256)}
	if now.SHA256 != p.Seen {
		done.Unpublished = "archive changed"
	}
	return done, nil
}

// UseArchive makes an archive the one in use that the store had before.
type UseArchive struct{ SHA256 string } // or its first digits

func (d UseArchive) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.PutArchive, Subject: d.SHA256}
}

func (d UseArchive) preview(ctx context.Context, o *Operator) (Preview, error) {
	next, _, err := LoadArchive(ctx, o.Store, d.SHA256)
	if err != nil {
		return Preview{}, err
	}
	return o.previewArchive(ctx, next.Archive, next.SHA256)
}

func (d UseArchive) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	_, file, err := LoadArchive(ctx, o.Store, d.SHA256)
	if err != nil {
		return Answer{}, err
	}
	return o.useArchive(ctx, file, p)
}

// archives is the folder of every archive that the store ever used.
const archives = "archives/"

// StoredArchive is an archive that a store has.
type StoredArchive struct {
	SHA256 string    `json:"sha256"`
	Bytes  int64     `json:"bytes"`
	Added  time.Time `json:"added"` // real time
	InUse  bool      `json:"in_use"`
}

// ListArchives returns the archives of a store, the newest first.
func ListArchives(ctx context.Context, store blob.Store) ([]StoredArchive, error) {
	var inUse struct {
		SHA256 string `json:"sha256"`
	}
	object, err := store.Get(ctx, "archive.json", blob.MaxDocument)
	if err == nil {
		err = json.Unmarshal(object.Data, &inUse)
	}
	if err != nil && !errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("list archives: which is in use: %w", err)
	}
	list := []StoredArchive{}
	for info, err := range store.List(ctx, archives) {
		if err != nil {
			return nil, fmt.Errorf("list archives: %w", err)
		}
		sum := strings.TrimPrefix(info.Key, archives)
		list = append(list, StoredArchive{SHA256: sum, Bytes: info.Size, Added: info.Modified, InUse: sum == inUse.SHA256})
	}
	slices.SortStableFunc(list, func(a, b StoredArchive) int { return b.Added.Compare(a.Added) })
	return list, nil
}

// LoadArchive reads an archive of the store, in use or not, by the sum of its file or its first
// digits, and returns its file too.
func LoadArchive(ctx context.Context, store blob.Store, sum string) (builder.StoredArchive, []byte, error) {
	var found []string
	for info, err := range store.List(ctx, archives) {
		if err != nil {
			return builder.StoredArchive{}, nil, fmt.Errorf("load archive %s: %w", sum, err)
		}
		if full := strings.TrimPrefix(info.Key, archives); sum != "" && strings.HasPrefix(full, sum) {
			found = append(found, full)
		}
	}
	if len(found) != 1 {
		return builder.StoredArchive{}, nil, fmt.Errorf("load archive %q: %d archives of %s have a sum that begins so; gridcast archive list shows them", sum, len(found), store)
	}
	object, err := store.Get(ctx, archives+found[0], builder.MaxArchive)
	if err != nil {
		return builder.StoredArchive{}, nil, fmt.Errorf("load archive %s: %w", found[0], err)
	}
	if got := archive.Sum(object.Data); got != found[0] {
		return builder.StoredArchive{}, nil, fmt.Errorf("load archive %s: its bytes have the sum %s: it is damaged", found[0], got)
	}
	a, err := archive.Decode(bytes.NewReader(object.Data))
	if err != nil {
		return builder.StoredArchive{}, nil, fmt.Errorf("load archive %s: %w", found[0], err)
	}
	return builder.StoredArchive{Archive: a, SHA256: found[0]}, object.Data, nil
}
