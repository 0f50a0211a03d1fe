package console

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	cookieName    = "gridcast_operator"
	sessionLength = 12 * time.Hour

	// Failed attempts to sign in, of everybody together: nobody types more, and nobody guesses
	// a token with so few.
	maxFailures   = 10
	failureWindow = time.Minute
)

// sessions tells who is signed in, from the token alone: there is nothing to store, every
// process with the token agrees, and a new token ends all sessions.
type sessions struct {
	token   [sha256.Size]byte // its hash, so that comparing takes the same time for any length
	signing [sha256.Size]byte // what cookies are signed with

	failures *failures
}

// failures counts failed attempts.
type failures struct {
	mu    sync.Mutex
	since time.Time
	count int
}

func newSessions(token string) sessions {
	return sessions{
		token:    sha256.Sum256([]byte(token)),
		signing:  sha256.Sum256([]byte("gridcast operator session\x00" + token)),
		failures: &failures{},
	}
}

// accepts reports whether the token is the operator's.
func (s *sessions) accepts(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

// cookie returns the value that says who is signed in until when.
func (s *sessions) cookie(name string, until time.Time) string {
	said := base64.RawURLEncoding.EncodeToString([]byte(name)) + "." + strconv.FormatInt(until.Unix(), 10)
	return said + "." + s.sign(said)
}

// operator returns who a cookie says is signed in; false if it is not ours or has ended.
func (s *sessions) operator(cookie string, now time.Time) (string, bool) {
	i := strings.LastIndexByte(cookie, '.')
	if i < 0 || !hmac.Equal([]byte(cookie[i+1:]), []byte(s.sign(cookie[:i]))) {
		return "", false
	}
	name, until, _ := strings.Cut(cookie[:i], ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	if err != nil || now.Unix() >= seconds {
		return "", false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(name)
	return string(decoded), err == nil
}

func (s *sessions) sign(text string) string {
	mac := hmac.New(sha256.New, s.signing[:])
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// allowed reports whether another attempt may be made.
func (f *failures) allowed(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.since) >= failureWindow {
		f.since, f.count = now, 0
	}
	return f.count < maxFailures
}

func (f *failures) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
}

// operatorName is what an operator may call himself in the logs.
var operatorName = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N} ._@-]{0,39}$`)

// operatorFunc handles a request of an operator, whose name it is given.
type operatorFunc func(w http.ResponseWriter, r *http.Request, operator string)

// signedIn lets only operators through. A browser is sent to the form; a program is told.
func (c *Console) signedIn(next operatorFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operator, status := c.authenticate(r)
		switch {
		case status == 0:
			next(w, r, operator)
		case status == http.StatusUnauthorized && r.Method == http.MethodGet && wantsPage(r):
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
		case status == http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "60")
			c.refuse(w, r, status, "too many wrong tokens; wait a minute and try again")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="gridcast operator"`)
			c.refuse(w, r, status, "sign in: the operator's token is missing, wrong or no longer valid")
		}
	})
}

// authenticate returns who makes the request, or the status to refuse it with.
func (c *Console) authenticate(r *http.Request) (operator string, status int) {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		if status := c.checkToken(token); status != 0 {
			return "", status
		}
		if name := r.Header.Get("X-Operator"); operatorName.MatchString(name) {
			return name, 0
		}
		return "unnamed", 0
	}
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return "", http.StatusUnauthorized
	}
	if name, ok := c.sessions.operator(cookie.Value, time.Now()); ok {
		return name, 0
	}
	return "", http.StatusUnauthorized
}

// checkToken returns 0 if the token is right, else the status to refuse it with.
func (c *Console) checkToken(token string) int {
	switch {
	case !c.sessions.failures.allowed(time.Now()):
		return http.StatusTooManyRequests
	case c.sessions.accepts(token):
		return 0
	}
	c.sessions.failures.note()
	c.Log.Warn("somebody tried to sign in as operator with a wrong token")
	return http.StatusUnauthorized
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	c.render(w, http.StatusOK, "sign-in", signInPage{Name: r.URL.Query().Get("name")})
}

// signInPage is what the form shows.
type signInPage struct {
	Name    string
	Problem string
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	name, token := strings.TrimSpace(r.PostFormValue("name")), strings.TrimSpace(r.PostFormValue("token"))
	if !operatorName.MatchString(name) {
		c.render(w, http.StatusUnprocessableEntity, "sign-in", signInPage{name, "Enter your name, 1 to 40 letters and digits: it stands beside every change you make."})
		return
	}
	switch status := c.checkToken(token); status {
	case 0:
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "60")
		c.render(w, status, "sign-in", signInPage{name, "Too many wrong tokens. Wait a minute and try again."})
		return
	default:
		c.render(w, status, "sign-in", signInPage{name, "That is not the token. It is in the file that the scheduler was given as --operator-token-file."})
		return
	}
	until := time.Now().Add(sessionLength)
	http.SetCookie(w, newCookie(r, c.sessions.cookie(name, until), until))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request, _ string) {
	http.SetCookie(w, newCookie(r, "", time.Unix(1, 0)))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// newCookie returns the cookie of a session. On loopback, where TLS is not worth its while, it
// can not be a secure one.
func newCookie(r *http.Request, value string, until time.Time) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure depends on how the console is reached
		Name: cookieName, Value: value, Path: "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: overTLS(r),
	}
}

// overTLS reports whether the browser speaks TLS, to us or to a proxy before us. Who lies
// about it only loses his own cookie.
func overTLS(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// wantsPage tells a browser that navigates from a program or a script.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
