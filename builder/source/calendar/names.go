package calendar

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridcast/builder/names"
	"gridcast/builder/season"
)

//go:embed names.txt
var namesText string

// otherNames returns the names of a kind in names.txt, by what they mean.
func otherNames(kind string) map[string][]string {
	meant := make(map[string][]string)
	for line := range strings.Lines(namesText) {
		if fields := strings.Split(strings.TrimSpace(line), "|"); fields[0] == kind {
			meant[fields[1]] = fields[2:]
		}
	}
	return meant
}

// grandPrixWords are the words for a Grand Prix. Words become gp when a text is read.
var grandPrixWords = strings.NewReplacer(" grand prix ", " gp ", " gran premio ", " gp ", " grande premio ", " gp ",
	" nagydij ", " gp ", " grosser preis ", " gp ", " preis von ", " gp von ", " preis der ", " gp der ", " grosse preis ", " gp ", " grote prijs ", " gp ", " grands prix ", " gp ", " grandprix ", " gp ")

// links stand between the words for a Grand Prix and its name, as in GRAN PREMIO DE LA CIUDAD DE MÉXICO.
var links = strings.Fields("of de du di do da das dos d del della dell der des von vom van the la le l")

// wordsOf returns the words of a text as names has them, in lower case, with gp for each form of Grand Prix.
func wordsOf(text string) []string {
	text = " " + strings.ReplaceAll(names.Slug(strings.NewReplacer("'", " ", "’", " ", "`", " ").Replace(text)), "-", " ") + " "
	return strings.Fields(grandPrixWords.Replace(text))
}

func phrase(text string) string { return strings.Join(wordsOf(text), " ") }

// lexicon finds the Grand Prix that a text means.
type lexicon struct {
	Known
	editions  map[season.GrandPrixID]season.Round // the latest of every Grand Prix
	names     map[string][]season.GrandPrixID     // by phrase, without gp
	places    map[string][]season.CircuitID
	countries map[string]string
	shared    map[string]bool // countries in which a season has or had two Grands Prix
	mapped    []mapping
	ids       []season.GrandPrixID          // of editions, ascending
	spelled   map[season.GrandPrixID]string // the phrase of each edition, without gp
}

// mapping is a decision of a person: events with the phrase are of a Grand Prix, or none of ours.
type mapping struct {
	phrase string
	gp     season.GrandPrixID // empty: left out
}

// NoGrandPrix is the value of a mapping that leaves events out.
const NoGrandPrix = "none"

// longest is the number of words of the longest phrase that is looked up.
const longest = 7

func newLexicon(k Known, mapped map[string]string) (*lexicon, error) {
	l := &lexicon{
		Known: k, editions: k.Editions(), names: make(map[string][]season.GrandPrixID), places: make(map[string][]season.CircuitID),
		countries: make(map[string]string), shared: make(map[string]bool), spelled: make(map[season.GrandPrixID]string),
	}
	l.ids = slices.Sorted(maps.Keys(l.editions))
	for id, r := range l.editions {
		l.name(id, r.Name, string(id))
		l.spelled[id] = strings.TrimSuffix(phrase(r.Name), " gp")
	}
	for id, list := range otherNames("grand prix") {
		l.name(season.GrandPrixID(id), list...)
	}
	for country, list := range otherNames("country") {
		for _, name := range list {
			l.countries[name] = country
		}
	}
	for id, c := range k.Circuits {
		l.countries[phrase(c.Country)] = c.Country
		l.place(id, c.Name, c.Locality, string(id))
	}
	for id, list := range otherNames("circuit") {
		if _, ok := k.Circuits[season.CircuitID(id)]; ok {
			l.place(season.CircuitID(id), list...)
		}
	}
	for i := range k.Seasons {
		held := make(map[string]season.GrandPrixID)
		for _, r := range k.Seasons[i].Rounds {
			country := k.Circuits[r.Circuit].Country
			if other, ok := held[country]; ok && other != r.GrandPrix {
				l.shared[country] = true
			}
			held[country] = r.GrandPrix
		}
	}
	for _, text := range slices.Sorted(maps.Keys(mapped)) {
		value, m := mapped[text], mapping{phrase: phrase(text)}
		if value != NoGrandPrix {
			if m.gp = season.GrandPrixID(value); l.editions[m.gp].Name == "" {
				return nil, fmt.Errorf("map %q: %q is no Grand Prix of the archive%s Write its identifier, or %s to leave such events out",
					text, value, cmp.Or(l.near(value), "."), NoGrandPrix)
			}
		}
		if m.phrase == "" {
			return nil, fmt.Errorf("map %q: it has no word", text)
		}
		if i := slices.IndexFunc(l.mapped, func(other mapping) bool { return other.phrase == m.phrase }); i >= 0 && l.mapped[i].gp != m.gp {
			return nil, fmt.Errorf("map %q: %q is %s already. Write it once", text, m.phrase, cmp.Or(string(l.mapped[i].gp), NoGrandPrix))
		}
		l.mapped = append(l.mapped, m)
	}
	slices.SortFunc(l.mapped, func(a, b mapping) int {
		return cmp.Or(cmp.Compare(len(b.phrase), len(a.phrase)), cmp.Compare(a.phrase, b.phrase))
	})
	return l, nil
}

func (l *lexicon) name(id season.GrandPrixID, texts ...string) {
	for _, text := range texts {
		p := phrase(text)
		if p = cmp.Or(strings.TrimPrefix(strings.TrimSuffix(p, " gp"), "gp "), p); !slices.Contains(l.names[p], id) {
			l.names[p] = append(l.names[p], id)
		}
	}
}

func (l *lexicon) place(id season.CircuitID, texts ...string) {
	for _, text := range texts {
		if p := phrase(text); p != "" && !slices.Contains(l.places[p], id) {
			l.places[p] = append(l.places[p], id)
		}
	}
}

// named returns the Grand Prix with a name: of several the one of the season, else the one with the latest edition. It is
// empty if the archive has none of them.
func (l *lexicon) named(p string, year int) (best season.GrandPrixID) {
	rank := func(id season.GrandPrixID) int64 {
		if s, ok := l.season(year); ok {
			if _, ok := s.Round(id); ok {
				return 1 << 62
			}
		}
		return l.editions[id].Date.Unix()
	}
	for _, id := range l.names[p] {
		if l.editions[id].Name != "" && (best == "" || rank(id) > rank(best)) {
			best = id
		}
	}
	return best
}

func (l *lexicon) season(year int) (*season.Season, bool) {
	i := slices.IndexFunc(l.Seasons, func(s season.Season) bool { return s.Year == year })
	if i < 0 {
		return nil, false
	}
	return &l.Seasons[i], true
}

// heldWhere returns the one Grand Prix of the latest season up to a year with a round that is in a place. It is empty if
// that season has two.
func (l *lexicon) heldWhere(year int, in func(season.CircuitID) bool) (found season.GrandPrixID) {
	for i := range slices.Backward(l.Seasons) {
		s := &l.Seasons[i]
		if s.Year > year {
			continue
		}
		for _, r := range s.Rounds {
			switch {
			case !in(r.Circuit):
			case found != "" && found != r.GrandPrix:
				return ""
			default:
				found = r.GrandPrix
			}
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// match is the Grand Prix that a text means, and the word that decided.
type match struct {
	gp  season.GrandPrixID
	by  string
	why string // why no Grand Prix is found, for people
}

// find returns the Grand Prix of an event. A mapping comes first, then the Grand Prix that the title names, then other
// names and places in the title, then the place of the event.
func (l *lexicon) find(title, place string, year int) match {
	words := wordsOf(title)
	whole := " " + strings.Join(words, " ") + " | " + phrase(place) + " "
	for _, m := range l.mapped {
		if strings.Contains(whole, " "+m.phrase+" ") {
			if m.gp == "" {
				return match{why: fmt.Sprintf("the mapping of %q leaves it out", m.phrase)}
			}
			return match{gp: m.gp, by: fmt.Sprintf("the mapping of %q", m.phrase)}
		}
	}
	if m, ok := l.titled(words, year); ok {
		return m
	}
	m := l.scan(words, year)
	if m.gp == "" && m.by == "" { // by: the title names two
		if at := l.scan(wordsOf(place), year); at.gp != "" || m.why == "" {
			m = at
		}
	}
	if m.gp == "" {
		m.why = cmp.Or(m.why, "it names no Grand Prix of the archive")
	}
	return m
}

// titled returns the Grand Prix that stands beside the words Grand Prix. ok is false if none does.
func (l *lexicon) titled(words []string, year int) (m match, ok bool) {
	text := " " + strings.Join(words, " ") + " "
	for _, p := range []string{"united states gp west", "usa gp west", "indianapolis 500"} {
		if strings.Contains(text, " "+p+" ") {
			return l.meant(p, p, year), true
		}
	}
	for i, word := range words {
		if word != "gp" {
			continue
		}
		p := l.before(words[:i])
		by := p + " gp"
		if p == "" {
			p, by = l.after(words[i+1:])
			by = "gp " + by
		}
		if p == "" {
			continue
		}
		next := l.meant(p, by, year)
		if ok && next.gp != m.gp {
			return match{by: by, why: fmt.Sprintf("it names two Grands Prix, %q and %q", m.by, by)}, true
		}
		m, ok = next, true
	}
	return m, ok
}

func (l *lexicon) meant(p, by string, year int) match {
	if gp := l.named(p, year); gp != "" {
		return match{gp: gp, by: by}
	}
	return match{by: by, why: fmt.Sprintf("the archive has no Grand Prix %q; enter a new one as a table, with its name and circuit", by)}
}

// before returns the longest name that ends the words.
func (l *lexicon) before(words []string) string {
	for n := min(longest, len(words)); n > 0; n-- {
		if p := strings.Join(words[len(words)-n:], " "); len(l.names[p]) > 0 {
			return p
		}
	}
	return ""
}

// after returns the name that follows the words Grand Prix, and the words up to its end. It stands at once behind them, or
// behind a link, as in GRAN PREMIO DE ESPAÑA and GRAND PRIX MOLSON DU CANADA.
func (l *lexicon) after(words []string) (p, by string) {
	for skip := range min(longest, len(words)) {
		if skip > 0 && !slices.Contains(links, words[skip-1]) {
			continue
		}
		for n := min(longest, len(words)-skip); n > 0; n-- {
			if p := strings.Join(words[skip:skip+n], " "); len(l.names[p]) > 0 {
				return p, strings.Join(words[:skip+n], " ")
			}
		}
	}
	return "", ""
}

// sponsors are names of companies that begin with a place.
var sponsors = [][]string{{"qatar", "airways"}, {"singapore", "airlines"}, {"british", "airways"}, {"emirates"}}

// scan returns the one Grand Prix that names and places among the words mean. A country alone means none if a season has
// or had two there.
func (l *lexicon) scan(words []string, year int) (m match) {
	for i := 0; i < len(words); {
		if n := sponsor(words[i:]); n > 0 {
			i += n
			continue
		}
		n := min(longest, len(words)-i)
		for ; n > 1 && !l.knows(strings.Join(words[i:i+n], " ")); n-- {
		}
		p := strings.Join(words[i:i+n], " ")
		i += n
		gp, why := l.alone(p, year)
		switch {
		case gp == "" && m.gp == "":
			m.why = cmp.Or(m.why, why)
		case gp == "" || gp == m.gp:
		case m.gp != "":
			return match{by: p, why: fmt.Sprintf("%q means %s, and %q means %s", m.by, m.gp, p, gp)}
		default:
			m = match{gp: gp, by: p}
		}
	}
	return m
}

func sponsor(words []string) int {
	for _, s := range sponsors {
		if len(words) >= len(s) && slices.Equal(words[:len(s)], s) {
			return len(s)
		}
	}
	return 0
}

func (l *lexicon) knows(p string) bool {
	return len(l.names[p]) > 0 || len(l.places[p]) > 0 || l.countries[p] != ""
}

// alone returns the Grand Prix that a phrase means without the words Grand Prix, or why it means none.
func (l *lexicon) alone(p string, year int) (gp season.GrandPrixID, why string) {
	if country := l.countries[p]; l.shared[country] {
		return "", fmt.Sprintf("%q alone names no Grand Prix, because %s has or had two in a season", p, country)
	}
	if gp := l.named(p, year); gp != "" {
		return gp, ""
	}
	if at := l.places[p]; len(at) > 0 {
		if gp = l.heldWhere(year, func(c season.CircuitID) bool { return slices.Contains(at, c) }); gp == "" {
			why = fmt.Sprintf("%q is the place of two Grands Prix, or of none", p)
		}
		return gp, why
	}
	if country := l.countries[p]; country != "" {
		return l.heldWhere(year, func(c season.CircuitID) bool { return l.Circuits[c].Country == country }), ""
	}
	return "", ""
}

// near suggests the Grand Prix that a text may mean.
func (l *lexicon) near(text string) string {
	near := names.Nearest(text, 3, l.ids, func(id season.GrandPrixID) []string { return []string{string(id), l.spelled[id]} })
	suggestions := make([]string, len(near))
	for i, id := range near {
		suggestions[i] = string(id)
	}
	return names.DidYouMean(suggestions)
}
