package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P13: a record that cannot be used is reported, stays as it is, and does not stay
// locked; OnCorrupt may decide to replace it.
func TestARecordThatCannotBeUsed(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		o := middleware.Options{Mode: byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly}), MaxBytes: 1000}
		strict := newSite(t, r.Pool(t, 4), o, app())
		o.OnCorrupt = func(_ *http.Request, err error) error {
			if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("OnCorrupt got %v", err)
			}
			return nil
		}
		lenient := newSite(t, r.Pool(t, 4), o, app())
		o.OnCorrupt = func(_ *http.Request, err error) error { return fmt.Errorf("call us: %w", err) }
		deciding := newSite(t, r.Pool(t, 4), o, app())
		const head = `{"v":2,"s":"A","c":1,"d":`
		for name, record := range map[string]string{
			"empty":         "",
			"garbage":       "\x00\xff garbage",
			"cut off":       head + `{"n":1`,
			"not an object": head + `[1]}`,
			"bad value":     head + `{"n":}}`,
			"no data":       head + `}`,
			"other program": `{"user":"ann"}`,
			"newer version": strings.Replace(head, `"v":2`, `"v":3`, 1) + `{"n":1}}`,
			"too large":     head + `{"n":1,"x":"` + strings.Repeat("x", 2000) + `"}}`,
		} {
			v := newVisitor(t).everywhere()
			v.get(strict.URL+"/add").want(t, 200, "1")
			id := v.get(strict.URL + "/id").body
			key, lock := keysOf(id)
			// The record has the revision and the time of the stored one, so that it is not simply too old.
			stored, _ := r.Get(t, key)
			_, its, _ := strings.Cut(stored, `"s":`)
			its, _, _ = strings.Cut(its, `,"d":`)
			record := strings.Replace(record, `"A","c":1`, its, 1)
			r.Do(t, "SET", key, record, "PX", 60_000)
			stays := func() {
				t.Helper()
				if now, _ := r.Get(t, key); now != record || r.Exists(t, lock) {
					t.Errorf("%s: the record is now %q; a lock is left: %v", name, now, r.Exists(t, lock))
				}
			}
			for _, path := range []string{"/add", "/get", "/logout"} {
				v.get(strict.URL+path).want(t, 500, "*")
				v.get(deciding.URL+path).want(t, 500, "*")
			}
			if err := strict.sessions.Update(t.Context(), id, adding); !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge) {
				t.Errorf("%s: Update = %v", name, err)
			}
			if len(deciding.log.Lines("call us")) == 0 {
				t.Errorf("%s: the error of OnCorrupt is not the request's:\n%s", name, deciding.log)
			}
			stays()
			v.get(lenient.URL+"/get").want(t, 200, "0")
			stays()
			v.get(lenient.URL+"/add").want(t, 200, "1")
			v.get(strict.URL+"/add").want(t, 200, "2")
		}
	})
}

// P13: a session that is too large is refused as a whole.
func TestASessionOverMaxBytesIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := siteWith(t, r, middleware.Options{MaxBytes: 1000}, "/grow", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
			s.Set("n", 77)
			s.Set("big", strings.Repeat("x", 2000))
			fmt.Fprint(w, "grown")
		})
		v := newVisitor(t).everywhere()
		a := v.get(s.URL + "/grow")
		a.want(t, 500, "*")
		if a.sets() || len(r.Keys(t)) > 0 {
			t.Errorf("something of it was kept: %v %v", a.Header, r.Keys(t))
		}
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/grow").want(t, 500, "*")
		v.get(s.URL+"/add").want(t, 200, "2") // at once: the lock was released
		if lines := s.log.Lines("too large"); len(lines) != 2 || !strings.Contains(lines[0], "MaxBytes is 1000") {
			t.Errorf("log: %q", lines)
		}
	})
}
