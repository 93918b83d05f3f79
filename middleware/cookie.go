package middleware

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/gorilla/securecookie"
)

const (
	minKey   = 32   // bytes; a shorter HMAC-SHA256 key weakens the signature
	maxValue = 512  // bytes: no genuine cookie is longer, so a longer one is not verified
	maxPair  = 4096 // bytes: browsers keep no cookie whose name and value are larger (RFC 6265bis)
	maxTried = 8    // cookies of each role that are verified in a request, which costs an HMAC per key each
)

// # Guests and members
//
// A session is a guest's until Login or Renew, and a member's from then on. The two have cookies of their own, and
// with both the member's counts. The response to a request that neither logs in nor renews, remembers or logs out
// never touches a member's cookie. So no script, beacon or late response can take a login away.
//
// Guests and members have the same kind of token.

// A role is whose session it is: a guest's or a member's. (In the log and in errors.go, a kind is what has failed.)
type role uint8

const (
	member role = iota // comes first in each request and response
	guest
	roles
)

// roleOf returns the role of a session with a token, by its public ID.
func roleOf(id string) role {
	if isOfUser(id) {
		return member
	}
	return guest
}

// memberSuffix follows the name of the guest's cookie in that of the member's.
const memberSuffix = "-login"

// cookies writes and reads the cookies that carry a session's secret, signed.
type cookies struct {
	pattern http.Cookie                // with the name of the guest's
	names   [roles]string              // of the cookies; both the same with tokens
	token   func(*http.Request) string // not nil: there are tokens in place of cookies
	vary    string                     // the header with the cookies or tokens
	// The closures below hide the keys: code that prints the struct cannot look into a closure.
	signer   func() *securecookie.SecureCookie // with the newest key
	checkers *sync.Pool                        // of *checker
}

// newCookies checks Options.Keys, Options.Cookie and Options.Token.
func newCookies(o Options) (cookies, error) {
	c := cookies{pattern: o.Cookie, vary: "Cookie"}
	p := &c.pattern
	if o.Token != nil {
		rest := o.Cookie
		rest.Name = ""
		if !reflect.DeepEqual(rest, http.Cookie{}) {
			return c, errAttributes
		}
		// Secure, so that each name that is valid for a cookie is valid for tokens.
		c.token, c.vary, p.Secure = o.Token, "Authorization", true
	}
	if p.Name == "" {
		p.Name, p.Secure = "__Host-session", true
	}
	c.names = [roles]string{member: p.Name, guest: p.Name}
	if c.token == nil {
		c.names[member] += memberSuffix
	}
	p.Path, p.SameSite, p.HttpOnly = cmp.Or(p.Path, "/"), cmp.Or(p.SameSite, http.SameSiteLaxMode), true
	if err := checkCookie(p); err != nil {
		return c, fmt.Errorf("middleware: Options.Cookie %.100q: %w", p.Name, err)
	}

	if len(o.Keys) == 0 {
		return c, fmt.Errorf("middleware: Options.Keys is empty: give at least one key of at least %d random bytes", minKey)
	}
	var keys [][]byte // copies: the caller may wipe o.Keys
	for i, key := range o.Keys {
		if len(key) < minKey {
			return c, fmt.Errorf("middleware: Options.Keys[%d] has %d bytes: it must have at least %d random bytes", i, len(key), minKey)
		}
		if bytes.Count(key, key[:1]) == len(key) { // make([]byte, 32) that nobody has filled
			return c, fmt.Errorf("middleware: Options.Keys[%d] is %d times the same byte: it must have at least %d random bytes", i, len(key), minKey)
		}
		if slices.ContainsFunc(keys, func(other []byte) bool { return bytes.Equal(other, key) }) {
			return c, fmt.Errorf("middleware: Options.Keys[%d] is there twice", i)
		}
		keys = append(keys, slices.Clone(key))
	}
	signer := securecookie.New(keys[0], nil).SetSerializer(securecookie.NopEncoder{})
	c.signer = func() *securecookie.SecureCookie { return signer }
	// No session outlives its signature, which is made when the session begins, or later: see reissue.
	maxAge := int64((max(o.Lifetime, keep.LongestCookie)-1)/time.Second + 1) // rounded up
	c.checkers = &sync.Pool{New: func() any { return newChecker(c.names, keys, maxAge) }}
	return c, nil
}

func checkCookie(p *http.Cookie) error {
	name := strings.ToLower(p.Name)
	switch {
	case p.Value != "":
		return errors.New("its Value must be empty: the session's secret goes there")
	case len(p.Name+memberSuffix)+maxValue > maxPair:
		return fmt.Errorf("its Name has %d bytes: with more than %d browsers would not keep the cookie", len(p.Name), maxPair-maxValue-len(memberSuffix))
	case p.MaxAge < 0 || !p.Expires.IsZero():
		return errors.New("its MaxAge must not be negative, and Expires not set: a MaxAge of 0 ends with the browser")
	case strings.HasPrefix(name, "__host-") && (!p.Secure || p.Path != "/" || p.Domain != ""):
		return errors.New("a name with __Host- needs Secure, Path=/ and no Domain")
	case strings.HasPrefix(name, "__secure-") && !p.Secure, strings.HasPrefix(name, "__http-") && !p.Secure:
		return errors.New("a name with __Secure- or __Http- needs Secure")
	case !strings.HasPrefix(p.Path, "/"):
		return fmt.Errorf("its Path is %.100q: it must begin with /, or browsers use the path of each request", p.Path)
	case p.SameSite < http.SameSiteDefaultMode || p.SameSite > http.SameSiteNoneMode:
		return fmt.Errorf("its SameSite is %d, which is none of package http's", p.SameSite)
	case p.SameSite == http.SameSiteNoneMode && !p.Secure:
		return errors.New("the attribute SameSite=None needs Secure")
	case p.Partitioned && !p.Secure:
		return errors.New("the attribute Partitioned needs Secure")
	}
	return p.Valid()
}

// A cameID is the public ID that one of a request's genuine cookies stands for.
type cameID struct {
	id   string
	role role
}

// readIDs appends the public IDs of the request's genuine cookies to ids, without duplicates. Members' IDs come before
// guests'. Those of a role stay in the browser's order: longer paths first, then older cookies. unknown counts the
// well-formed cookies that none of our keys has signed, and refused the other cookies that are not genuine.
func (c *cookies) readIDs(r *http.Request, ids []cameID) (_ []cameID, unknown, refused int) {
	if c.token != nil {
		token := c.token(r)
		switch id, result := c.idOf(token); {
		case result == unknownKey:
			unknown++
		case id != "":
			ids = append(ids, cameID{id, roleOf(id)})
		case token != "":
			refused++
		}
		return ids, unknown, refused
	}
	members := 0
	c.eachVerified(r, func(of role, _, id string, result verified) {
		switch came := (cameID{id, of}); {
		case result == unknownKey:
			unknown++
		case id == "":
			refused++
		case slices.Contains(ids, came):
		case of == member:
			ids = slices.Insert(ids, members, came)
			members++
		default:
			ids = append(ids, came)
		}
	})
	return ids, unknown, refused
}

// eachVerified calls do with each of the request's cookies: its role, its value, and the public ID that it stands for.
// The ID is "" if the cookie is not genuine. Such a cookie counts as no cookie at all: a forger learns nothing from the
// response.
//
// Of each role, only the first eight cookies that may be genuine are verified, so a request with thousands of cookies
// costs little. A sibling domain that plants eight cookies hides the visitor's cookie.
//
// The cookies are found as by http.Request.CookiesNamed. A value that CookiesNamed refuses is not genuine.
func (c *cookies) eachVerified(r *http.Request, do func(of role, value, id string, result verified)) {
	check := c.checkers.Get().(*checker)
	defer c.checkers.Put(check)
	var tried [roles]int
	for _, line := range r.Header["Cookie"] {
		for part := range strings.SplitSeq(line, ";") {
			name, value, _ := strings.Cut(textproto.TrimString(part), "=")
			k := slices.Index(c.names[:], textproto.TrimString(name))
			if k < 0 || tried[k] == maxTried {
				continue
			}
			if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
				value = value[1 : n-1]
			}
			id, result := check.verify(role(k), value)
			if result != malformed {
				tried[k]++
			}
			do(role(k), value, id, result)
		}
	}
}

// issue returns the cookie of a role that signs raw, the bytes of a cookieKey. See withValue for how long the
// cookie lasts.
func (c *cookies) issue(of role, raw []byte, own *records.Times) (*http.Cookie, error) {
	value, err := c.signer().Encode(c.names[of], raw)
	if err != nil {
		return nil, fmt.Errorf("middleware: signing the cookie: %w", err)
	}
	return c.withValue(of, value, own), nil
}

// deletion returns the cookie that makes the client delete the session's cookie of a role.
func (c *cookies) deletion(of role) *http.Cookie {
	cookie := c.pattern
	cookie.Name, cookie.MaxAge = c.names[of], -1
	return &cookie
}
