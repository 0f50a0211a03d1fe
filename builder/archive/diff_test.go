package archive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive"
	"gridcast/builder/season"
)

// TestCompare: a difference names seasons, rounds, lost results and colours, and says so in sentences.
func TestCompare(t *testing.T) {
	added := func(f *season.Facts) {
		next := f.Seasons[1].Rounds[0]
		next.Number, next.GrandPrix, next.Name, next.Date = 2, "h", "H", next.Date.AddDate(0, 0, 7)
		f.Seasons[1].Rounds = append(f.Seasons[1].Rounds, next)
	}
	for name, test := range map[string]struct {
		change    func(*season.Facts)
		want      archive.Diff
		onlyAdds  bool
		sentences string
	}{
		"nothing": {func(*season.Facts) {}, archive.Diff{}, true, "It holds the same rounds with the same facts."},
		"a round more": {
			added,
			archive.Diff{Rounds: []archive.RoundDiff{{Year: 2025, GrandPrix: "h", Name: "H", Kind: archive.RoundAdded}}},
			true, "It adds 1 rounds.",
		},
		"another grid": {
			func(f *season.Facts) { f.Seasons[0].Rounds[0].Grid = nil },
			archive.Diff{Rounds: []archive.RoundDiff{{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"grid"}}}},
			true, "1 rounds differ: Monaco Grand Prix 2024 (grid).",
		},
		"another result": {
			func(f *season.Facts) {
				r := &f.Seasons[0].Rounds[0]
				r.Results = slices.Clone(r.Results)
				r.Results[0].Laps = 77
			},
			archive.Diff{Rounds: []archive.RoundDiff{
				{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"results"}, NewResult: true},
			}},
			false, "1 rounds differ: Monaco Grand Prix 2024 (results).",
		},
		"a lost result": {
			func(f *season.Facts) { f.Seasons[0].Rounds[0].Results, f.Seasons[0].Rounds[0].FastestLaps = nil, nil },
			archive.Diff{Rounds: []archive.RoundDiff{{
				Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"results", "fastest laps"}, LostResult: true,
			}}},
			false, "It lacks the results of 1 rounds: Monaco Grand Prix 2024 (results, fastest laps).\n1 rounds differ: Monaco Grand Prix 2024 (results, fastest laps).",
		},
		"a lost season": {
			func(f *season.Facts) { f.Seasons = f.Seasons[1:] },
			archive.Diff{SeasonsRemoved: []int{2024}, Rounds: []archive.RoundDiff{
				{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundRemoved, LostResult: true},
			}},
			false, "It lacks 1 seasons that the one in use has: 2024.\nIt lacks the results of 1 rounds: Monaco Grand Prix 2024.\n1 rounds are not in it.",
		},
		"lost colours": {
			func(f *season.Facts) { f.Seasons[0].Colours = nil },
			archive.Diff{ColoursLost: []int{2024}},
			false, "Team colours are lost in 1 seasons: 2024.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := smallFacts()
			before, err := season.New(smallFacts())
			if err != nil {
				t.Fatal(err)
			}
			test.change(&facts)
			after, err := season.New(facts)
			if err != nil {
				t.Fatal(err)
			}
			got := archive.Compare(before, after)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
			if got.OnlyAdds() != test.onlyAdds {
				t.Errorf("OnlyAdds: got %t, want %t", got.OnlyAdds(), test.onlyAdds)
			}
			if text := strings.Join(got.Sentences(), "\n"); text != test.sentences {
				t.Errorf("sentences: got\n%s\nwant\n%s", text, test.sentences)
			}
		})
	}
}
