package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/deploy/operator"
)

const (
	cookieName    = "gridcast_operator"
	sessionLength = 12 * time.Hour

	// The limit of wrong tokens from one address: more than any person mistypes, too few to guess a token.
	maxFailures   = 10
	failureWindow = time.Minute
	// maxAddresses limits the counted addresses; above it the count begins anew.
	maxAddresses = 1024
)

// sessions signs operators in. A cookie holds the name, its expiry, the hash of its token and a signature, so that every
// process with the same shared token accepts it and none stores it. Signing out deletes the browser's cookie. A stolen
// copy stays valid until it expires; revoking the operator's token, or changing the shared one, ends it.
type sessions struct {
	token  func() string    // the shared one
	tokens *operator.Tokens // operators with a token of their own

	guesses Guesses
}

// Guesses counts wrong tokens by address. The zero value has counted none. It is safe for concurrent use.
type Guesses struct {
	mu    sync.Mutex
	since time.Time // when the window began
	count map[string]int
}

// visitor is the person who sends a request.
type visitor struct {
	name   string
	proven bool // by a token of their own; otherwise the name is only claimed
	role   operator.Role
	token  string // the hash of their own token, empty for the shared one
}

// actor is the visitor's name in ledger and audit log.
func (v visitor) actor() string {
	if v.proven {
		return operator.Proven + v.name
	}
	return operator.Claimed + v.name
}

// byToken returns the visitor of a token. With the shared token the visitor gives any name.
func (s *sessions) byToken(ctx context.Context, token, name string) (visitor, bool) {
	// Hashes, so that comparing takes the same time for any length.
	sum, shared := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.token()))
	if subtle.ConstantTimeCompare(sum[:], shared[:]) == 1 {
		return visitor{name: name, role: operator.Operate}, true
	}
	p, ok := s.tokens.Find(ctx, token)
	return visitor{name: p.Name, proven: true, role: p.Role, token: p.SHA256}, ok
}

func (s *sessions) cookie(v visitor, until time.Time) string {
	content := base64.RawURLEncoding.EncodeToString([]byte(v.name)) + "." + strconv.FormatInt(until.Unix(), 10) + "." + v.token
	return content + "." + s.sign(content)
}

// byCookie returns the visitor of a cookie; false if its signature is wrong, it has expired, or its token
// was revoked.
func (s *sessions) byCookie(ctx context.Context, cookie string, now time.Time) (visitor, bool) {
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 || !hmac.Equal([]byte(cookie[i+1:]), []byte(s.sign(cookie[:i]))) {
		return visitor{}, false
	}
	parts := strings.Split(cookie[:i], ".")
	if len(parts) != 3 {
		return visitor{}, false
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.Unix() >= seconds {
		return visitor{}, false
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return visitor{}, false
	}
	if parts[2] == "" {
		return visitor{name: string(name), role: operator.Operate}, true
	}
	p, ok := s.tokens.ByHash(ctx, parts[2])
	return visitor{name: p.Name, proven: true, role: p.Role, token: p.SHA256}, ok
}

func (s *sessions) sign(text string) string {
	key := sha256.Sum256([]byte("gridcast operator session\x00" + s.token()))
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// TooMany reports whether the address of a request has sent so many wrong tokens in this minute that none is looked at.
func (g *Guesses) TooMany(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.since) < failureWindow && g.count[addressOf(r)] >= maxFailures
}

// Wrong counts the wrong token of a request.
func (g *Guesses) Wrong(r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.since) >= failureWindow || len(g.count) >= maxAddresses {
		g.since, g.count = time.Now(), map[string]int{}
	}
	g.count[addressOf(r)]++
}

func addressOf(r *http.Request) string {
	if address, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return address
	}
	return r.RemoteAddr
}

type operatorFunc func(w http.ResponseWriter, r *http.Request, who visitor)

// signedIn admits operators only. It refuses changes by operators with the role read. It redirects a browser
// to the sign-in form, and answers a program with a status.
func (c *Console) signedIn(next operatorFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, status := c.authenticate(r)
		switch {
		case status == 0 && r.Method != http.MethodGet && who.role != operator.Operate && r.URL.Path != "/sign-out":
			c.refuse(w, r, http.StatusForbidden, "your token may look at everything, but change nothing: its role is "+string(who.role))
		case status == 0:
			next(w, r, who)
		case status == http.StatusUnauthorized && r.Method == http.MethodGet && wantsPage(r):
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
		case status == http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "60")
			c.refuse(w, r, status, "too many wrong tokens from your address; wait a minute, because until then no token is looked at")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="gridcast operator"`)
			c.refuse(w, r, status, "sign in: the operator's token is missing, wrong or no longer valid")
		}
	})
}

// authenticate returns the visitor of a request, or the status of a refusal.
func (c *Console) authenticate(r *http.Request) (who visitor, status int) {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		name := r.Header.Get("X-Operator")
		if !operator.ValidName(name) {
			name = "unnamed"
		}
		return c.checkToken(r, token, name)
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return visitor{}, http.StatusUnauthorized
	}
	if who, ok := c.sessions.byCookie(r.Context(), cookie.Value, time.Now()); ok {
		return who, 0
	}
	return visitor{}, http.StatusUnauthorized
}

// checkToken returns the visitor of a token, or the status of a refusal. After too many wrong tokens from an
// address it refuses every token from there for the rest of the minute. Signed-in operators notice nothing.
func (c *Console) checkToken(r *http.Request, token, name string) (visitor, int) {
	if c.sessions.guesses.TooMany(r) {
		return visitor{}, http.StatusTooManyRequests
	}
	if who, ok := c.sessions.byToken(r.Context(), token, name); ok {
		return who, 0
	}
	c.sessions.guesses.Wrong(r)
	c.Log.Warn("somebody tried to sign in as operator with a wrong token")
	return visitor{}, http.StatusUnauthorized
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	c.render(w, http.StatusOK, "sign-in", signInPage{Name: r.URL.Query().Get("name")})
}

type signInPage struct {
	Name    string
	Problem string
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	name, token := strings.TrimSpace(r.PostFormValue("name")), strings.TrimSpace(r.PostFormValue("token"))
	who, status := c.checkToken(r, token, name)
	switch {
	case status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "60")
		c.render(w, status, "sign-in", signInPage{name, "Too many wrong tokens from your address. Wait a minute: until then no token is looked at."})
		return
	case status != 0:
		c.render(w, status, "sign-in", signInPage{name, "That is not a token that is known here. Your own was shown when you were added with gridcast operators add; the shared one is in the file that the scheduler was given as --operator-token-file."})
		return
	case !operator.ValidName(who.name):
		c.render(w, http.StatusUnprocessableEntity, "sign-in", signInPage{name, "Enter your name, 1 to 40 letters and digits: the audit log shows it beside every change."})
		return
	}
	until := time.Now().Add(sessionLength)
	http.SetCookie(w, newCookie(r, c.sessions.cookie(who, until), until))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request, _ visitor) {
	http.SetCookie(w, newCookie(r, "", time.Unix(1, 0)))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// newCookie returns the cookie of a session. On loopback without TLS it cannot be a secure one.
func newCookie(r *http.Request, value string, until time.Time) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure depends on how the console is reached
		Name: cookieName, Value: value, Path: "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: overTLS(r),
	}
}

// overTLS reports whether the browser uses TLS, to this port or to a proxy before it. A client that forges
// the header only loses its own cookie.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// wantsPage tells a browser that navigates from a program or a script.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
