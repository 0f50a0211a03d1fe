package operator

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"gridcast/deploy/auditlog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Role limits the rights of an operator.
type Role string

// The roles.
const (
	Read    Role = "read"    // sees everything, changes nothing
	Operate Role = "operate" // may take every action
)

// Person is an operator with a token of their own, which proves their name in the audit log. Instants are
// real time, in UTC.
type Person struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	SHA256  string    `json:"sha256"` // lower-case hex, of the token
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// PeopleKey is the object of the store that lists its operators.
const PeopleKey = "operators/operators.json"

// people is the content of PeopleKey. Operators are in the sequence of their creation.
type people struct {
	Format    int      `json:"format"` // 1
	Operators []Person `json:"operators"`
}

// TokenPrefix begins every token of an operator, so that scanners can find one that leaks.
const TokenPrefix = "gc_operator_"

// ValidName reports whether an operator may have a name. It appears in logs, so it has up to 40 letters, digits and,
// after the first, a few other characters.
func ValidName(name string) bool {
	for i, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && (i == 0 || !strings.ContainsRune(" ._@-", c)) {
			return false
		}
	}
	return name != "" && utf8.RuneCountInString(name) <= 40
}

// LoadPeople returns the operators of a store, the oldest first.
func LoadPeople(ctx context.Context, store blob.Store) ([]Person, error) {
	p, _, err := peopleOf(store).Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load operators: %w", err)
	}
	return p.Operators, nil
}

// HealPeople replaces a damaged or lost list of operators by its copy in the store; see [blob.Document.Heal].
func HealPeople(ctx context.Context, store blob.Store) (bool, error) {
	return peopleOf(store).Heal(ctx)
}

func peopleOf(store blob.Store) blob.Document[people] {
	return blob.Document[people]{Store: store, Key: PeopleKey, Copied: true, Decode: func(data []byte) (people, error) {
		p := people{Format: 1}
		if err := blob.DecodeJSON(data, &p); err != nil {
			return people{}, err
		}
		if p.Format != 1 {
			return people{}, fmt.Errorf("format %d, this program reads 1", p.Format)
		}
		return p, nil
	}}
}

// AddOperator gives a person a token of their own, which is Answer.Secret.
type AddOperator struct {
	Name string `arg:"" help:"The person's name. The logs show it beside each of their changes."`
	Role Role   `required:"" help:"read: look at everything; operate: carry out every action." enum:"read,operate" env:"-"`
}

func (p *people) holder(name string) *Person {
	i := slices.IndexFunc(p.Operators, func(p Person) bool { return p.Name == name && p.Revoked.IsZero() })
	if i < 0 {
		return nil
	}
	return &p.Operators[i]
}

func (d AddOperator) look(ctx context.Context, o *Operator) (*Plan, error) {
	if !ValidName(d.Name) {
		return nil, fmt.Errorf("add operator %q: a name has 1 to 40 letters, digits, blanks and . _ @ -", d.Name)
	}
	may, ok := map[Role]string{Read: "look at everything", Operate: "carry out every action"}[d.Role]
	if !ok {
		return nil, fmt.Errorf("add operator %q: role %q: must be %s or %s", d.Name, d.Role, Read, Operate)
	}
	list, _, err := peopleOf(o.Store).Load(ctx)
	if err != nil {
		return nil, err
	}
	if list.holder(d.Name) != nil {
		return nil, fmt.Errorf("add operator %q: there is one of that name; revoke their token first", d.Name)
	}
	return &Plan{
		Brief: true, entry: auditlog.Intent{Action: auditlog.AddOperator, Subject: d.Name + ", " + string(d.Role)},
		Preview: Preview{
			Title:   "Add the operator " + d.Name,
			Effects: []string{fmt.Sprintf("%s gets a token, shown once, with which they may %s in the console.", d.Name, may)},
		},
		do: func(ctx context.Context, _ Request) (Answer, error) {
			token := TokenPrefix + rand.Text()
			added := Person{Name: d.Name, Role: d.Role, SHA256: snapshots.Digest([]byte(token)), Created: time.Now().UTC().Truncate(time.Second)}
			_, err := peopleOf(o.Store).Update(ctx, func(p *people) error {
				if p.holder(d.Name) != nil {
					return fmt.Errorf("add operator %q: %w", d.Name, ErrStale)
				}
				p.Operators = append(p.Operators, added)
				return nil
			})
			return Answer{Record: added, Secret: token, Text: fmt.Sprintf("This is the token of %s, role %s. It is shown this once: only its hash is kept.", d.Name, d.Role)}, err
		},
	}, nil
}

// RevokeOperator refuses a person's token from now on.
type RevokeOperator struct {
	Name string `arg:"" help:"The operator's name, from operators list."`
}

func (d RevokeOperator) look(ctx context.Context, o *Operator) (*Plan, error) {
	return edit[people, Person]{
		load: func(ctx context.Context) (*people, error) {
			list, _, err := peopleOf(o.Store).Load(ctx)
			return &list, err
		},
		update: func(ctx context.Context, change func(*people) error) error {
			_, err := peopleOf(o.Store).Update(ctx, change)
			return err
		},
		find: func(list *people) (*Person, error) {
			if p := list.holder(d.Name); p != nil {
				return p, nil
			}
			return nil, fmt.Errorf("revoke operator %q: nobody of that name has a token; gridcast operators list shows the names", d.Name)
		},
		preview: func(_ *people, _ *Person, p *Preview) error {
			p.Title, p.Question = "Revoke the token of "+d.Name, fmt.Sprintf("Refuse the token of %s from now on?", d.Name)
			p.Effects = []string{fmt.Sprintf("%s is signed out everywhere within a second or two, and their token is refused for ever.", d.Name)}
			return nil
		},
		change: func(_ *people, p *Person, _ Request) (Answer, error) {
			p.Revoked = time.Now().UTC().Truncate(time.Second)
			return Answer{Record: *p, Text: fmt.Sprintf("The token of %s is revoked.", d.Name)}, nil
		},
	}.plan(ctx, auditlog.Intent{Action: auditlog.RevokeOperator, Subject: d.Name})
}

// peopleAge is the age at which Tokens reads the operators again.
const peopleAge = time.Second

// Tokens finds the operator of a token. It reads the operators from the store at most once a second and is
// safe for concurrent use.
type Tokens struct {
	Store blob.Store

	mu   sync.Mutex // held while reading
	read time.Time
	list []Person
}

// Find returns the operator of a token; false for an unknown or revoked token. While the store cannot be
// read, tokens that worked before go on working.
func (t *Tokens) Find(ctx context.Context, token string) (Person, bool) {
	return t.ByHash(ctx, snapshots.Digest([]byte(token)))
}

// ByHash returns the operator of a hash that Find has returned before; false if the token was revoked since.
func (t *Tokens) ByHash(ctx context.Context, sum string) (Person, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.read) >= peopleAge {
		// A browser that gives up its request must not end the read, which is for all requests of this second.
		if list, err := LoadPeople(context.WithoutCancel(ctx), t.Store); err == nil {
			t.list = list
		}
		t.read = time.Now() // after a slow read, which also counts for the requests that waited for it
	}
	// Comparing hashes leaks no timing, because a token has 128 random bits.
	i := slices.IndexFunc(t.list, func(p Person) bool { return p.SHA256 == sum && p.Revoked.IsZero() })
	if i < 0 {
		return Person{}, false
	}
	return t.list[i], true
}
