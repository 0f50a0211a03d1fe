package keys_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	gocmp "github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
)

// model predicts the content of a table with a plain map.
type model struct {
	random *rand.Rand
	serial int
	d      keys.List

	hashes   map[string]keys.Hash // by ID
	requests map[string]int       // by ID
}

// record returns a record of a new key.
func (m *model) record() keys.StoredKey {
	m.serial++
	hash := keys.Hash(sha256.Sum256(fmt.Append(nil, m.serial)))
	text := hash.String()
	m.hashes[text[:12]] = hash
	r := keys.StoredKey{
		ID: text[:12], SHA256: text, Prefix: keys.Prefix + "test", Name: "some } \"name\"\n    }", Created: now,
		Tier: []string{"pro", "standard", "trial", "unknown"}[m.random.IntN(4)],
	}
	if m.random.IntN(4) == 0 {
		r.Expires = now.Truncate(time.Second).Add(time.Duration(m.random.IntN(5)-2) * time.Second)
	}
	return r
}

// change changes the list like commands and people do.
func (m *model) change() {
	n := len(m.d.Keys)
	if n == 0 {
		m.d.Keys = append(m.d.Keys, m.record())
		return
	}
	r := &m.d.Keys[m.random.IntN(n)]
	switch m.random.IntN(9) {
	case 0:
		r.Revoked = now
	case 1:
		r.Revoked = time.Time{}
	case 2:
		r.Expires = now.Truncate(time.Second).Add(time.Duration(m.random.IntN(3)-1) * time.Second)
	case 3:
		r.Tier = "trial"
	case 4:
		r.Origins = []string{"https://example.org"}
	case 5:
		i := m.random.IntN(n)
		m.d.Keys = append(m.d.Keys[:i:i], m.d.Keys[i+1:]...)
	case 6:
		i := m.random.IntN(n)
		m.d.Keys[0], m.d.Keys[i] = m.d.Keys[i], m.d.Keys[0]
	default:
		for range m.random.IntN(20) {
			m.d.Keys = append(m.d.Keys, m.record())
		}
	}
}

// check compares a table with the document, and makes one request with each key.
func (m *model) check(t *testing.T, table *keys.Table) {
	t.Helper()
	const limit = 1e6
	tiers := keys.DefaultTiers()
	accepted, skipped := 0, 0
	usage := []keys.KeyUsage{}
	for _, r := range m.d.Keys {
		perMinute, configured := tiers[r.Tier]
		revoked := !r.Revoked.IsZero()
		if !revoked && configured {
			accepted++
		}
		if !revoked && !configured {
			skipped++
		}
		hash := m.hashes[r.ID]
		entry := table.Lookup(hash, now)
		want := configured && r.Active(now)
		must.Require(t, want == (entry != nil), "%+v: found %t, want %t", r, entry != nil, want)
		hash[31]++
		must.Require(t, table.Lookup(hash, now) == nil, "%+v: found by another hash", r)
		if entry != nil {
			if entry.PerMinute != perMinute || tiers.Names()[entry.Tier] != r.Tier {
				t.Fatalf("%+v: got %d requests a minute in tier %d", r, entry.PerMinute, entry.Tier)
			}
			must.Require(t, entry.Allows([]byte("https://example.com")) == (len(r.Origins) == 0), "%+v: origins are not judged by the record", r)
			m.requests[r.ID]++
			entry.Usage.Count(200, 0)
			if got := limit - entry.Counter.Take(now, limit).Remaining; got != m.requests[r.ID] {
				t.Fatalf("%+v: got %d requests counted, want %d", r, got, m.requests[r.ID])
			}
		}
		if n := m.requests[r.ID]; n > 0 {
			usage = append(usage, keys.KeyUsage{ID: r.ID, Counts: keys.Counts{Requests: uint64(n)}})
		}
	}
	if table.Len() != accepted || len(table.Skipped()) != skipped {
		t.Fatalf("got %d keys and %q skipped, want %d and %d", table.Len(), table.Skipped(), accepted, skipped)
	}
	slices.SortFunc(usage, func(a, b keys.KeyUsage) int { return cmp.Compare(a.ID, b.ID) })
	diff := gocmp.Diff(usage, table.Usage())
	must.Require(t, diff == "", "usage (-want +got)\n%s", diff)
}

// TestTableIsWhatTheDocumentSays follows a list through many changes, one or several at a
// time. With everything that a table takes over from its predecessor, it must agree with a map.
func TestTableIsWhatTheDocumentSays(t *testing.T) {
	for seed := range uint64(8) {
		m := model{
			random: rand.New(rand.NewPCG(seed, 1)),
			hashes: map[string]keys.Hash{}, requests: map[string]int{},
		}
		var table *keys.Table
		for range 60 {
			for range m.random.IntN(3) {
				m.change()
			}
			table = tableOf(t, &m.d, keys.DefaultTiers(), table)
			m.check(t, table)
		}
	}
}

// resealed returns an encoded list that was changed with the checksum of its bytes.
func resealed(data []byte) []byte { return keys.Seal(data[:bytes.LastIndex(data, []byte("],"))]) }

// TestNewTableRefuses lists with a fault, also beside a table that has most of their lines.
func TestNewTableRefuses(t *testing.T) {
	good, _ := document(5)
	good.Serial = 7
	previous := tableOf(t, good, keys.DefaultTiers(), nil)
	encode := func(serial int64) []byte {
		t.Helper()
		changed := &keys.List{Serial: serial, Keys: slices.Clone(good.Keys)}
		changed.Keys[0].Revoked = now
		return must.Get(changed.Encode())(t)
	}
	replace := func(from, to string) []byte { return bytes.Replace(encode(8), []byte(from), []byte(to), 1) }
	first, last := good.Keys[0].SHA256, good.Keys[4].SHA256
	alike := bytes.ReplaceAll(replace(last, first[:12]+last[12:]), []byte(last[:12]), []byte(first[:12]))
	said := map[string]string{}
	for name, data := range map[string][]byte{
		"an older one":          encode(6),
		"one ID twice":          resealed(alike),
		"one line twice":        resealed(replace("},\n", "},\n"+strings.SplitAfter(string(encode(8)), "\n")[4])),
		"a damaged record":      resealed(replace(last, "x")),
		"another serial number": replace(`"serial":8`, `"serial":9`),
		"a damaged checksum":    replace(`],"sha256":"`, `],"sha256":"0`),
	} {
		alone := must.Err(keys.NewTable(data, keys.DefaultTiers(), limit.Memory{}, nil))
		beside := must.Err(keys.NewTable(data, keys.DefaultTiers(), limit.Memory{}, previous))
		said[name] = fmt.Sprintf("alone: %v\nbeside a table: %v", alone, beside)
	}
	golden.Inputs(t, "testdata/tables.txt", said)
}

// TestFewFaultsAreReported: the error of a list with a fault in every line, some of them long, stays short.
func TestFewFaultsAreReported(t *testing.T) {
	lines := []byte(`{"format":2,"serial":1,"keys":[` + "\n")
	for i := range 20_000 {
		lines = fmt.Appendf(lines, `{"id":%q,"sha256":"x"},`+"\n", strings.Repeat("x", 1+i%5*100))
	}
	_, err := keys.NewTable(keys.Seal(lines), keys.DefaultTiers(), limit.Memory{}, nil)
	must.Hold(t, err != nil && strings.Count(err.Error(), "\n") == 9 && len(err.Error()) <= 10_000, "got %.500v, want ten faults", err)
}

// FuzzNewTable: a table accepts exactly the lists that can be decoded, also when it
// takes over most records of another one. The fuzzed lines get a right checksum, so that
// NewTable reads them.
func FuzzNewTable(f *testing.F) {
	d, _ := document(3)
	d.Keys[1].Origins = []string{"https://example.org"}
	d.Keys[2].Revoked = now
	good := must.Get(d.Encode())(f)
	begin := bytes.IndexByte(good, '\n') + 1
	end := bytes.LastIndexByte(bytes.TrimSuffix(good, []byte("\n")), '\n') + 1
	f.Add(good[begin:end], true)
	f.Add(good, false)
	for _, change := range [][2]string{
		{"},\n{", "}\n{"},
		{"},\n{", "},{"},
		{"},\n{", "}]},\n{"},
		{"},\n{", "}},\n{"},
		{"},\n{", "},\n,\n{"},
		{"},\n{", "},\n\n{"},
		{"},\n{", "}, \n {"},
		{"},\n", "},\nnull,\n"},
		{`"name":"bench"`, `"name":""`},
		{`"name":"bench"`, `"day":"bench"`},
		{`"tier":"pro"`, `"tier":"checksum"`},
	} {
		f.Add(bytes.Replace(good[begin:end], []byte(change[0]), []byte(change[1]), 1), true)
		f.Add(bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = keys.Seal(append(append([]byte{}, good[:begin]...), data...))
		}
		want, wantErr := keys.Decode(data)
		previous := must.Get(keys.NewTable(good, keys.Tiers{"pro": 1}, limit.Memory{}, nil))(t)
		for _, previous := range []*keys.Table{nil, previous} {
			table, err := keys.NewTable(data, keys.Tiers{"pro": 1}, limit.Memory{}, previous)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%q: got error %v, Decode has %v", data, err, wantErr)
			}
			if err != nil {
				continue
			}
			accepted := 0
			for _, r := range want.Keys {
				if r.Revoked.IsZero() {
					accepted++
				}
			}
			if got := table.Len() + len(table.Skipped()); got != accepted || table.Serial() != want.Serial {
				t.Fatalf("%q: got %d keys, serial number %d, want %d and %d", data, got, table.Serial(), accepted, want.Serial)
			}
		}
	})
}

// A table keeps no earlier table in memory, nor the decoded lines of its list.
func TestTableLetsGoOfTheTableBefore(t *testing.T) {
	d, _ := document(2)
	first := tableOf(t, d, keys.DefaultTiers(), nil)
	before := weak.Make(first)
	d.Keys[0].Revoked = now
	second := tableOf(t, d, keys.DefaultTiers(), first)
	runtime.GC()
	must.Hold(t, before.Value() == nil, "the table of a changed list keeps the table before it")
	runtime.KeepAlive(second)
}

// TestUsage counts each outcome, and compares counts field by field.
func TestUsage(t *testing.T) {
	var u keys.Usage
	for _, status := range []int{200, 401, 403, 403, 429, 429, 429} {
		u.Count(status, 10)
	}
	u.Count(304, -1)
	u.Sent(5)
	counts := keys.Counts{Requests: 8, Bytes: 75, Unauthorized: 1, Forbidden: 2, Limited: 3}
	must.Equal(t, "counts", counts, u.Counts())
	must.Equal(t, "refused", uint64(6), counts.Refused())
	twice := counts.Plus(counts)
	must.Equal(t, "twice", keys.Counts{Requests: 16, Bytes: 150, Unauthorized: 2, Forbidden: 4, Limited: 6}, twice)
	growth, grown := twice.Since(counts)
	must.Hold(t, grown && growth == counts, "growth: got %+v, %t", growth, grown)
	for _, one := range []keys.Counts{{Requests: 1}, {Bytes: 1}, {Unauthorized: 1}, {Forbidden: 1}, {Limited: 1}} {
		_, same := counts.Since(counts)
		_, fell := counts.Since(counts.Plus(one))
		must.Hold(t, same && !fell, "a fall by %+v: got %t, and %t without", one, fell, same)
	}
	_, most := keys.Counts{Requests: 1 << 53}.Since(keys.Counts{})
	_, beyond := keys.Counts{Requests: 1<<53 + 1}.Since(keys.Counts{})
	must.Hold(t, most && !beyond, "2^53 requests: got %t, and %t for one more", most, beyond)
}

func TestExpiryFarAway(t *testing.T) {
	d, hashes := document(1)
	d.Keys[0].Expires = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	table := tableOf(t, d, keys.DefaultTiers(), nil)
	must.Hold(t, table.Lookup(hashes[0], now) != nil && table.Lookup(hashes[0], d.Keys[0].Expires) == nil, "a key that expires in 9999 does not work until then")
	d.Keys[0].Expires = d.Keys[0].Expires.Add(time.Second)
	must.Fail(t, "a year that JSON cannot express", must.Err(d.Encode()))
}
