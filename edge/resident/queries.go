package resident

import (
	"fmt"

	"gridcast/schemas/catalog"
)

// queries returns the raw queries that plainly spell a variant: its parameters, each given or
// left to its default, in every order. Not all of them need select it.
func queries(v catalog.Variant) []string {
	var given []string
	if v.Type != "" {
		given = append(given, "type="+v.Type)
	}
	if year := season(v); year != 0 {
		given = append(given, fmt.Sprintf("year=%d", year))
	}
	if v.SessionKey > 0 {
		given = append(given, fmt.Sprintf("session_key=%d", v.SessionKey))
	}
	return arrangements(given)
}

// arrangements returns every subset of the parameters in every order, joined by "&".
func arrangements(given []string) []string {
	all := []string{""}
	for i, first := range given {
		others := append(append([]string(nil), given[:i]...), given[i+1:]...)
		for _, rest := range arrangements(others) {
			if rest == "" {
				all = append(all, first)
			} else {
				all = append(all, first+"&"+rest)
			}
		}
	}
	return all
}
