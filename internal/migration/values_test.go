package migration

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/alexedwards/scs/v2"
	"github.com/gorilla/securecookie"
	"github.com/gorilla/sessions"
)

func init() {
	gob.Register(time.Time{})
	gob.Register(account{})
	gob.Register(card{})
}

// moved makes a visitor use the old library, then come again. It returns the session that was moved, and
// the status of the second request.
func moved(t *testing.T, before http.Handler, move mover) (s *session.Session, status int) {
	t.Helper()
	st := sessiontest.New(t, middleware.Options{})
	mux := http.NewServeMux()
	mux.Handle("/before", before)
	mux.Handle("/", move(st.Sessions, nil, st.Sessions.Handler(http.NotFoundHandler())))
	st.Serve(mux)
	c := st.Client(nil)
	for _, path := range []string{"/before", "/"} {
		res, err := c.Get(st.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		status = res.StatusCode
	}
	return st.Session(c), status
}

// wantValue checks that a value has come through the move with its type.
func wantValue[T any](t *testing.T, s *session.Session, key string, equal func(T) bool) {
	t.Helper()
	if v, ok := session.Get[T](s, key); !ok || !equal(v) {
		t.Errorf("%s is %v, found: %v", key, v, ok)
	}
}

func is[T comparable](want T) func(T) bool { return func(got T) bool { return got == want } }

// Values of all types for which scs has methods are moved.
func TestValuesAreMoved(t *testing.T) {
	t.Parallel()
	manager, l := newSCS(t, redistest.Embedded(t))
	now := time.Now()
	s, status := moved(t, manager.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for key, v := range map[string]any{
			"string": "ä\x00\u2028", "bool": true, "int": -5, "int64": int64(math.MaxInt64), "int32": int32(7),
			"float": 1.5, "bytes": []byte{0, 255}, "time": now, "strings": []string{"a", "b"},
		} {
			manager.Put(r.Context(), key, v)
		}
	})), l.move)
	if status != 404 {
		t.Fatalf("status %d", status)
	}
	wantValue(t, s, "string", is("ä\x00\u2028"))
	wantValue(t, s, "bool", is(true))
	wantValue(t, s, "int", is(-5))
	wantValue(t, s, "int64", is[int64](math.MaxInt64))
	wantValue(t, s, "int32", is[int32](7))
	wantValue(t, s, "float", is(1.5))
	wantValue(t, s, "bytes", func(b []byte) bool { return bytes.Equal(b, []byte{0, 255}) })
	wantValue(t, s, "time", now.Equal)
	wantValue(t, s, "strings", func(all []string) bool { return slices.Equal(all, []string{"a", "b"}) })
}

// A mark of the move never takes the place of a value of the application.
func TestMarksAreNoKeysOfTheApplication(t *testing.T) {
	t.Parallel()
	manager, l := newSCS(t, redistest.Embedded(t))
	s, _ := moved(t, manager.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		manager.Put(r.Context(), "until", "Friday")
	})), l.move)
	wantValue(t, s, "until", is("Friday"))
	if _, ok := session.Get[int64](s, endsAt); !ok {
		t.Error("the session does not know when it ends")
	}

	store := sessions.NewCookieStore(make([]byte, 32))
	s, _ = moved(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		old, _ := store.Get(r, "shop")
		old.Values["moved"] = "to Berlin"
		if err := old.Save(r, w); err != nil {
			t.Error(err)
		}
	}), fromGorilla(store, store.Options, false).move)
	wantValue(t, s, "moved", is("to Berlin"))
	if s.Len() != 1 {
		t.Errorf("the session has %d values", s.Len())
	}
}

// JSON drops unexported fields and fields tagged json:"-", and returns a map for a struct in an interface. A type
// with GobEncode needs MarshalJSON.
func TestWhatJSONDoesToValues(t *testing.T) {
	t.Parallel()
	manager, l := newSCS(t, redistest.Embedded(t))
	s, _ := moved(t, manager.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		manager.Put(r.Context(), "account", account{Name: "ann", balance: 7, Home: address{"Main Street", 5}})
		manager.Put(r.Context(), "card", card{"ann", "4711"})
	})), l.move)
	wantValue(t, s, "account", func(a account) bool {
		home, isMap := a.Home.(map[string]any)
		return a.Name == "ann" && a.balance == 0 && isMap && home["Street"] == "Main Street"
	})
	wantValue(t, s, "card", is(card{Name: "ann"}))
}

// A card has a field that gob keeps, and JSON does not.
type card struct {
	Name   string
	Number string `json:"-"`
}

// An account has data that gob keeps by GobEncode, and JSON does not.
type account struct {
	Name    string
	balance int
	Home    any
}

func (a account) GobEncode() ([]byte, error) {
	return fmt.Appendf(nil, "%s %d", a.Name, a.balance), nil
}

func (a *account) GobDecode(b []byte) error {
	a.Home = address{"Main Street", 5}
	_, err := fmt.Sscanf(string(b), "%s %d", &a.Name, &a.balance)
	return err
}

// A value that JSON cannot hold makes the request fail, and no value of the session is moved.
func TestAValueThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	manager, l := newSCS(t, redistest.Embedded(t))
	s, status := moved(t, manager.LoadAndSave(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		manager.Put(r.Context(), "ratio", math.NaN())
		manager.Put(r.Context(), "user", "ann")
	})), l.move)
	if status != 500 || !s.IsNew() {
		t.Errorf("status %d, and there are %d values", status, s.Len())
	}
}

// A program may forget to register a type that it had registered before. Its visitors are not logged out: the
// request fails, and the cookie stays until the type is registered again.
func TestATypeThatIsNotRegisteredAnyMore(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
		s := newSite(t, libraries["gorilla, sessions in the cookie"](t, old), old.Another(t))
		text, err := securecookie.GobEncoder{}.Serialize(map[any]any{"user": "ann", "address": address{"Main Street", 5}})
		if err != nil {
			t.Fatal(err)
		}
		forgotten := bytes.ReplaceAll(text, []byte("migration.address"), []byte("migration.another"))
		genuine, err := securecookie.New(make([]byte, 32), nil).SetSerializer(securecookie.NopEncoder{}).Encode(s.cookie, forgotten)
		if err != nil {
			t.Fatal(err)
		}
		v := s.visitor(&http.Cookie{Name: s.cookie, Value: genuine})
		v.want("/me", 503, "*")
		if !v.has(s.cookie) {
			t.Error("the cookie is gone")
		}
	})
}

// Flash messages of gorilla are shown after the move.
func TestFlashesAreMoved(t *testing.T) {
	t.Parallel()
	store := sessions.NewCookieStore(make([]byte, 32))
	s, _ := moved(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		old, _ := store.Get(r, "shop")
		old.AddFlash("ordered")
		old.AddFlash("no stock", "errors")
		old.Values[5] = "no text as its key"
		if err := old.Save(r, w); err != nil {
			t.Error(err)
		}
	}), fromGorilla(store, store.Options, false).move)
	wantValue(t, s, "_flash", func(all []string) bool { return slices.Equal(all, []string{"ordered"}) })
	wantValue(t, s, "errors", func(all []string) bool { return slices.Equal(all, []string{"no stock"}) })
}

// A session that only just fits into its cookie is moved.
func TestALargeCookieIsMoved(t *testing.T) {
	fromCookie(t, func(s *site, old *sessions.CookieStore) {
		for n := 2400; n > 0; n-- { // Base64 twice makes it about 4096
			value, err := securecookie.EncodeMulti(s.cookie, map[any]any{"user": "ann", "more": strings.Repeat("x", n)}, old.Codecs...)
			if err == nil {
				s.visitor(&http.Cookie{Name: s.cookie, Value: value}).want("/me", 200, "ann 0 { 0}")
				return
			}
		}
		s.Fatal("no value fits")
	})
}

// A session that only just fits into a file is moved only if the store has no limit, since the mark of the move
// needs room.
func TestALargeFileIsMoved(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, redis *redistest.Server) {
		store := sessions.NewFilesystemStore(t.TempDir(), make([]byte, 32))
		s := newSite(t, fromGorilla(store, store.Options, true), redis)
		for n := 2400; n > 0; n-- { // Base64 twice makes it about 4096
			old, save := sessions.NewSession(store, s.cookie), httptest.NewRecorder()
			old.Options, old.Values = store.Options, map[any]any{"user": "ann", "more": strings.Repeat("x", n)}
			if err := store.Save(nil, save, old); err == nil {
				v := s.visitor(save.Result().Cookies()...)
				v.want("/me", 503, "*")
				store.MaxLength(0)
				v.want("/me", 200, "ann 0 { 0}")
				return
			}
		}
		t.Fatal("no value fits")
	})
}

// A client with a token of scs can exchange the token: load the old session, log in, commit, and return the new
// token.
func TestATokenIsExchanged(t *testing.T) {
	t.Parallel()
	manager, _ := newSCS(t, redistest.Embedded(t))
	ctx, err := manager.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	manager.Put(ctx, "userID", 7)
	old, _, err := manager.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	st := sessiontest.New(t, middleware.Options{Token: middleware.Bearer})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exchange", func(w http.ResponseWriter, r *http.Request) {
		ctx, err := manager.Load(r.Context(), r.Header.Get("Old-Token"))
		if err != nil {
			t.Error(err)
			return
		}
		s := session.FromContext(r.Context())
		s.Login(strconv.Itoa(manager.GetInt(ctx, "userID")))
		if err := s.Commit(r.Context()); err != nil {
			return // the response is that error
		}
		token, err := st.Sessions.Token(r.Context())
		if err == nil {
			err = manager.Destroy(ctx)
		}
		if err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, token)
	})
	mux.HandleFunc("GET /me", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, session.FromContext(r.Context()).User())
	})
	h := st.Sessions.Handler(mux)
	send := func(method, path, header, value string) string {
		r, w := httptest.NewRequest(method, path, nil), httptest.NewRecorder()
		r.Header.Set(header, value)
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	token := send("POST", "/exchange", "Old-Token", old)
	if user := send("GET", "/me", "Authorization", "Bearer "+token); user != "7" {
		t.Errorf("%q is logged in", user)
	}
}

// The page gives the new name for every name of the old libraries, or says that there is none.
func TestThePageHasAllNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../middleware/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## Names: scs\n")
	known := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`]*`").FindAllString(page, -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(code, -1) {
			known[word] = true
		}
	}
	for _, of := range []any{&scs.SessionManager{}, &scs.SessionCookie{}, &sessions.Session{}, &sessions.Options{}, &sessions.CookieStore{}} {
		for _, name := range namesOf(reflect.TypeOf(of)) {
			if !known[name] {
				t.Errorf("nothing is said of %s of %T", name, of)
			}
		}
	}
}

// namesOf returns the exported methods and fields of a pointer to a struct.
func namesOf(t reflect.Type) (names []string) {
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	for f := range t.Elem().Fields() {
		if f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}
