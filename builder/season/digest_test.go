package season_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestDigestsCoverEveryFact changes each field of a season in place, one at a time, and wants other digests. A digest by
// the addresses of rows would stay.
func TestDigestsCoverEveryFact(t *testing.T) {
	v := &season.View{Facts: season.NewFacts()}
	v.Seasons = []season.Season{{Year: 1962, Rounds: make([]season.Round, 1)}, {Year: 1963}}
	round := &v.Seasons[0].Rounds[0]
	fill(t, reflect.ValueOf(round).Elem())
	digests := func() [3]season.Digest {
		all := v.Digests()
		return [3]season.Digest{all[0], all[1], round.Digest()}
	}
	for name, change := range map[string]func(){
		"driver":  func() { v.Drivers[round.Results[0].Driver] = season.Driver{Name: "Graham Hill"} },
		"team":    func() { v.Teams[round.Results[0].Team] = season.Team{Name: "BRM"} },
		"engine":  func() { v.Engines[round.Results[0].Engine] = season.Engine{Name: "BRM"} },
		"circuit": func() { v.Circuits[round.Circuit] = season.Circuit{Name: "Monza"} },
		"colours": func() { v.Seasons[0].Colours = map[season.TeamID]string{"brm": "#004225"} },
	} {
		before := digests()
		change()
		if after := digests(); after[0] == before[0] || after[1] == before[1] || after[2] != before[2] {
			t.Errorf("%s: the digests of season, next season and round were %x and are %x", name, before, after)
		}
	}
	before := digests()
	v.Drivers["of another season"] = season.Driver{Name: "Jim Clark"}
	after := digests()
	must.Hold(t, after == before, "a driver of another season: the digests were %x and are %x", before, after)
	leaves := 0
	for name, change := range leavesOf("round", reflect.ValueOf(round).Elem()) {
		before := digests()
		change()
		for i, after := range digests() {
			if after == before[i] {
				t.Errorf("%s changed, but not the digest of %s", name, [3]string{"its season", "the next season", "its round"}[i])
			}
		}
		leaves++
	}
	must.Hold(t, leaves >= 100, "compared %d fields", leaves)
}

// fill gives each slice one row, and each text a letter.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[time.Time]() {
				fill(t, v.Field(i))
			}
		}
		return
	case reflect.Array:
	case reflect.String:
		v.SetString("x")
		return
	default:
		return
	}
	for i := range v.Len() {
		fill(t, v.Index(i))
	}
}

// leavesOf yields each field below a value, with a function that changes it.
func leavesOf(name string, v reflect.Value) func(yield func(string, func()) bool) {
	return func(yield func(string, func()) bool) {
		if x, ok := v.Addr().Interface().(*time.Time); ok {
			yield(name, func() { *x = x.Add(time.Nanosecond) })
			return
		}
		switch v.Kind() {
		case reflect.String:
			yield(name, func() { v.SetString(v.String() + "x") })
		case reflect.Bool:
			yield(name, func() { v.SetBool(!v.Bool()) })
		case reflect.Float64:
			yield(name, func() { v.SetFloat(v.Float() + 1) })
		case reflect.Int, reflect.Int64:
			yield(name, func() { v.SetInt(v.Int() + 1) })
		case reflect.Struct:
			for i := range v.NumField() {
				leavesOf(name+"."+v.Type().Field(i).Name, v.Field(i))(yield)
			}
		default: // a slice or an array; another kind panics
			for i := range v.Len() {
				leavesOf(fmt.Sprintf("%s[%d]", name, i), v.Index(i))(yield)
			}
			if v.Kind() == reflect.Slice {
				yield(name+" without rows", func() { v.SetLen(0) })
			}
		}
	}
}
