package middleware_test

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P4: The response, and what becomes of the client's cookies, depend on what the request does and on where its
// cookies lead.
func TestWhatAnAnswerDoesToTheCookies(t *testing.T) {
	t.Parallel()
	const (
		leaves  = ""
		begins  = "sets the guest's"
		enters  = "sets the member's, deletes the guest's"
		refused = "409"

		dropsGuest, dropsMember, dropsBoth = "deletes the guest's", "deletes the member's", "deletes the member's, deletes the guest's"
	)
	doing := map[string]func(s *session.Session){
		"nothing":          func(s *session.Session) { s.Len() },
		"set":              func(s *session.Session) { s.Set("n", 7) },
		"renew":            func(s *session.Session) { s.Renew() },
		"enter":            func(s *session.Session) { s.Renew(); s.Set("n", 7) },
		"login":            func(s *session.Session) { s.Login("ann") },
		"logout":           func(s *session.Session) { s.Destroy() },
		"set-and-logout":   func(s *session.Session) { s.Set("n", 7); s.Destroy() },
		"fail-and-logout":  func(s *session.Session) { s.Set("n", make(chan int)); s.Destroy() }, // out is out
		"login-and-logout": func(s *session.Session) { s.Login("ann"); s.Set("n", 7); s.Destroy() },
	}
	dead := map[string]string{"nothing": leaves, "set": begins, "renew": leaves, "enter": enters, "login": enters, "set?flush": begins}
	for cookies, row := range map[string]map[string]string{
		"none": {"nothing": leaves, "set": begins, "renew": leaves, "enter": enters, "login": enters, "logout": leaves,
			"set-and-logout": leaves, "login-and-logout": leaves, "nothing?flush": leaves, "set?flush": begins},
		"a guest's": {"nothing": leaves, "set": leaves, "renew": enters, "enter": enters, "login": enters, "logout": dropsGuest,
			"set-and-logout": dropsGuest, "fail-and-logout": dropsGuest, "login-and-logout": dropsGuest, "set?flush": leaves},
		"a guest's, unknown": also(dead, map[string]string{"logout": dropsGuest, "login-and-logout": dropsGuest}),
		"a guest's, ended":   also(dead, map[string]string{"logout": dropsGuest, "login-and-logout": dropsGuest}),
		"a guest's, moved": {"nothing": leaves, "set": refused, "renew": leaves, "enter": enters, "login": enters, "logout": dropsGuest,
			"set-and-logout": dropsGuest, "set?flush": refused},
		"a guest's, moved, and a page": also(dead, map[string]string{"logout": dropsGuest}),
		"a member's": {"nothing": leaves, "set": leaves, "renew": enters, "enter": enters, "login": enters, "logout": dropsMember,
			"set-and-logout": dropsMember, "login-and-logout": dropsMember, "set?flush": leaves},
		"a member's, unknown": also(dead, map[string]string{"logout": dropsMember}),
		"a member's, ended":   also(dead, map[string]string{"logout": dropsMember}),
		"a member's, moved": {"nothing": leaves, "set": refused, "renew": refused, "enter": refused, "login": enters, "logout": dropsMember,
			"set?flush": refused},
		"a member's, moved, and a page": also(dead, map[string]string{"renew": refused, "enter": refused, "logout": dropsMember}),
		"a member's, and a guest's":     {"nothing": leaves, "set": leaves, "renew": enters, "login": enters, "logout": dropsBoth, "set?flush": leaves},
		"a member's, ended, and a guest's": {"nothing": leaves, "set": leaves, "renew": enters, "login": enters, "logout": dropsBoth,
			"set?flush": leaves},
		"a member's, moved, and a guest's": {"nothing": leaves, "set": refused, "renew": refused, "enter": refused, "login": enters,
			"logout": dropsBoth, "set?flush": refused},
		"a member's, moved, a guest's, and a page": {"nothing": leaves, "set": leaves, "renew": refused, "login": enters, "logout": dropsBoth},
	} {
		inFakeTime(t, cookies, func(t *testing.T, r *redistest.Server) {
			s := siteWith(t, r, middleware.Options{}, "/do/{what}", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
				doing[req.PathValue("what")](s)
				if req.URL.RawQuery == "flush" {
					w.(http.Flusher).Flush()
				}
			})
			for what, want := range row {
				v := with(t, s.cookiesThat(t, r, cookies)...)
				records := len(r.Keys(t))
				ask := v.background
				if strings.HasSuffix(cookies, "a page") {
					ask = v.navigate
				}
				a := ask("POST", s.URL+"/do/"+what)
				got := whatItDoes(a)
				if got != want {
					t.Errorf("%s: the answer %s, want: %s", what, got, want)
				}
				for _, c := range a.Cookies() {
					if c.MaxAge >= 0 && what != "renew" && what != "login" {
						with(t, c).get(s.URL+"/get").want(t, 200, "7")
					}
				}
				if what != "login-and-logout" && (want == refused || want == leaves && !strings.HasPrefix(what, "set")) && len(r.Keys(t)) != records {
					t.Errorf("%s: there were %d keys, and now %v", what, records, r.Keys(t))
				}
			}
		})
	}
}

func also(row, more map[string]string) map[string]string {
	all := maps.Clone(row)
	maps.Copy(all, more)
	return all
}

// cookiesThat returns the cookies of a client with the sessions that lead names: "a guest's" or "a member's". Such a
// session is alive unless lead adds that it has ended, has moved, or is unknown.
func (s *site) cookiesThat(t *testing.T, r *redistest.Server, lead string) (cookies []*http.Cookie) {
	t.Helper()
	for _, one := range strings.Split(strings.ReplaceAll(lead, ", and ", ", "), ", a ") {
		path, _, _ := strings.Cut(strings.TrimPrefix(one, "a "), ",")
		if path != "guest's" && path != "member's" {
			continue
		}
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		if path == "member's" {
			v.get(s.URL+"/login").want(t, 200, "")
		}
		c := v.cookie(s)
		id := v.get(s.URL + "/id").body
		switch _, fate, _ := strings.Cut(one, ", "); strings.TrimSuffix(fate, ", a page") {
		case "ended":
			must(t, s.sessions.End(t.Context(), id))
		case "unknown":
			r.Do(t, "DEL", recordOf(id))
		case "moved":
			v.get(s.URL+"/login").want(t, 200, "")
		}
		cookies = append(cookies, c)
	}
	return cookies
}

// whatItDoes says what an answer does to the client's cookies.
func whatItDoes(a answer) string {
	if a.StatusCode != http.StatusOK {
		return strconv.Itoa(a.StatusCode)
	}
	var all []string
	for _, c := range a.Cookies() {
		verb, whose := "sets", "guest's"
		if c.MaxAge < 0 {
			verb = "deletes"
		}
		if c.Name == "sid-login" {
			whose = "member's"
		}
		all = append(all, verb+" the "+whose)
	}
	return strings.Join(all, ", ")
}
