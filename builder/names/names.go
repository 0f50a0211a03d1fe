// Package names turns names into identifiers and suggests names for mistyped ones.
package names

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// foreign are the letters of names that have no accent to take off.
var foreign = map[rune]string{'ø': "o", 'ł': "l", 'đ': "d", 'æ': "ae", 'œ': "oe", 'ß': "ss"}

// Slug returns the identifier that F1DB gives to a name: lower case, without accents, apostrophes
// and dots, with hyphens between the words. "Jérôme d'Ambrosio" becomes jerome-dambrosio.
func Slug(name string) string {
	var b strings.Builder
	hyphen := false
	for _, c := range norm.NFD.String(strings.ToLower(name)) {
		letter := foreign[c]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			letter = string(c)
		case letter != "":
		case c == '.' || c == '\'' || c == '’' || unicode.Is(unicode.Mn, c):
			continue
		default:
			hyphen = b.Len() > 0
			continue
		}
		if hyphen {
			b.WriteByte('-')
			hyphen = false
		}
		b.WriteString(letter)
	}
	return b.String()
}

// Nearest returns the candidates that a mistyped text may mean: those with the fewest wrong letters,
// at most the given number and fewer than the text has. A candidate may have several spellings.
func Nearest[T any](text string, wrong int, candidates []T, spellings func(T) []string) []T {
	var near []T
	least := min(wrong, len(text)-1)
	text = strings.ToLower(text)
	for _, candidate := range candidates {
		d := least + 1
		for _, spelling := range spellings(candidate) {
			if spelling = strings.ToLower(spelling); max(len(text)-len(spelling), len(spelling)-len(text)) <= least { // else they differ in more letters
				d = min(d, distance(text, spelling))
			}
		}
		switch {
		case d < least:
			near, least = append(near[:0], candidate), d
		case d == least:
			near = append(near, candidate)
		}
	}
	return near
}

// DidYouMean returns the question that ends an error, such as "; did you mean VER or HAM?". It is
// empty without a suggestion and with more than four.
func DidYouMean(suggestions []string) string {
	if len(suggestions) == 0 || len(suggestions) > 4 {
		return ""
	}
	return "; did you mean " + strings.Join(suggestions, " or ") + "?"
}

// distance counts the letters to insert, to delete, to replace or to swap with their neighbour until
// two words are equal.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
