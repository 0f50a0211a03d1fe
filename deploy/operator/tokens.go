package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/snapshots/blob"
)

// Role is what an operator may do.
type Role string

// The roles.
const (
	Read    Role = "read"    // look at everything
	Operate Role = "operate" // carry out every action
)

// Person is an operator with a token of their own, so that the audit log proves who. Instants are
// real time, in UTC.
type Person struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	SHA256  string    `json:"sha256"` // lower-case hex, of the token
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// PeopleKey is where the operators of a store are kept.
const PeopleKey = "operators/operators.json"

// people is the content of PeopleKey, in order of creation.
type people struct {
	Format    int      `json:"format"` // 1
	Operators []Person `json:"operators"`
}

// TokenPrefix begins every token of an operator, so that scanners can find one that leaks.
const TokenPrefix = "gc_operator_"

// NamePattern is what an operator may be called in the logs.
var NamePattern = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,39}$`)

// LoadPeople returns the operators of a store, in order of creation.
func LoadPeople(ctx context.Context, store blob.Store) ([]Person, error) {
	p, _, err := peopleOf(store).Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load operators: %w", err)
	}
	return p.Operators, nil
}

// peopleOf returns the object of the store that holds the operators.
func peopleOf(store blob.Store) blob.Document[people] {
	return blob.Document[people]{Store: store, Key: PeopleKey, Decode: func(data []byte) (people, error) {
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

func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// AddOperator gives a person a token of their own; it is in Answer.Secret, this once.
type AddOperator struct {
	Name string
	Role Role
}

func (d AddOperator) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.AddOperator, Subject: d.Name + ", " + string(d.Role)}
}

func (d AddOperator) preview(ctx context.Context, o *Operator) (Preview, error) {
	if !NamePattern.MatchString(d.Name) {
		return Preview{}, fmt.Errorf("add operator %q: a name has 1 to 40 letters, digits, blanks and . _ @ -", d.Name)
	}
	if d.Role != Read && d.Role != Operate {
		return Preview{}, fmt.Errorf("add operator %q: role %q: must be %s or %s", d.Name, d.Role, Read, Operate)
	}
	list, err := LoadPeople(ctx, o.Store)
	if err != nil {
		return Preview{}, err
	}
	if slices.ContainsFunc(list, func(p Person) bool { return p.Name == d.Name && p.Revoked.IsZero() }) {
		return Preview{}, fmt.Errorf("add operator %q: there is one of that name; revoke their token first", d.Name)
	}
	may := map[Role]string{Read: "look at everything", Operate: "carry out every action"}[d.Role]
	return Preview{
		Title:   "Add the operator " + d.Name,
		Effects: []string{fmt.Sprintf("%s gets a token, shown once, with which they may %s in the console.", d.Name, may)},
	}, nil
}

func (d AddOperator) do(ctx context.Context, o *Operator, _ Request, _ Preview) (Answer, error) {
	token := TokenPrefix + rand.Text()
	_, err := peopleOf(o.Store).Update(ctx, func(p *people) error {
		if slices.ContainsFunc(p.Operators, func(p Person) bool { return p.Name == d.Name && p.Revoked.IsZero() }) {
			return fmt.Errorf("add operator %q: %w", d.Name, ErrChanged)
		}
		p.Operators = append(p.Operators, Person{Name: d.Name, Role: d.Role, SHA256: tokenHash(token), Created: time.Now().UTC().Truncate(time.Second)})
		return nil
	})
	return Answer{Secret: token, Text: fmt.Sprintf("This is the token of %s, role %s. It is shown this once: only its hash is kept.", d.Name, d.Role)}, err
}

// RevokeOperator refuses a person's token from now on.
type RevokeOperator struct{ Name string }

func (d RevokeOperator) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.RevokeOperator, Subject: d.Name}
}

func (d RevokeOperator) preview(ctx context.Context, o *Operator) (Preview, error) {
	list, err := LoadPeople(ctx, o.Store)
	if err != nil {
		return Preview{}, err
	}
	if !slices.ContainsFunc(list, func(p Person) bool { return p.Name == d.Name && p.Revoked.IsZero() }) {
		return Preview{}, fmt.Errorf("revoke operator %q: nobody of that name has a token", d.Name)
	}
	return Preview{
		Title: "Revoke the token of " + d.Name, Question: fmt.Sprintf("Refuse the token of %s from now on?", d.Name),
		Effects: []string{fmt.Sprintf("%s is signed out everywhere within a second or two, and their token is refused for ever.", d.Name)},
	}, nil
}

func (d RevokeOperator) do(ctx context.Context, o *Operator, _ Request, _ Preview) (Answer, error) {
	_, err := peopleOf(o.Store).Update(ctx, func(p *people) error {
		for i := range p.Operators {
			if p.Operators[i].Name == d.Name && p.Operators[i].Revoked.IsZero() {
				p.Operators[i].Revoked = time.Now().UTC().Truncate(time.Second)
			}
		}
		return nil
	})
	return Answer{Text: fmt.Sprintf("The token of %s is revoked.", d.Name)}, err
}

// peopleAge is how long the operators are taken as they were read.
const peopleAge = time.Second

// Tokens knows whose token is whose, by the store, from which it reads at most once a second. It is
// safe for concurrent use.
type Tokens struct {
	Store blob.Store

	mu   sync.Mutex // held while reading
	read time.Time
	list []Person
}

// Find returns the person of a token; false if it is nobody's, or revoked. While the store cannot
// be read, those who were known go on being let in.
func (t *Tokens) Find(ctx context.Context, token string) (Person, bool) {
	return t.bySum(ctx, tokenHash(token))
}

// ByHash returns the person of a hash that Find has returned before, if they still have a token.
func (t *Tokens) ByHash(ctx context.Context, sha256 string) (Person, bool) {
	return t.bySum(ctx, sha256)
}

func (t *Tokens) bySum(ctx context.Context, sum string) (Person, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.read) >= peopleAge {
		if list, err := LoadPeople(ctx, t.Store); err == nil {
			t.list = list
		}
		t.read = now
	}
	// The hash of a token of 128 random bits tells nothing by the time that comparing takes.
	i := slices.IndexFunc(t.list, func(p Person) bool { return p.SHA256 == sum && p.Revoked.IsZero() })
	if i < 0 {
		return Person{}, false
	}
	return t.list[i], true
}
