package middleware_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P12: "never" may be written as the largest number there is, and no sum with it
// overflows. A visitor who is taken for a new one each time would always read 1.
func TestTheLargestOptionsMeanNever(t *testing.T) {
	t.Parallel()
	const never time.Duration = math.MaxInt64
	r := redistest.Real(t)
	for name, o := range map[string]middleware.Options{
		"Lifetime":         {Lifetime: never},
		"TTL and Lifetime": {TTL: never, Lifetime: never},
		"a second less":    {Lifetime: never - time.Second},
		"all of them": {TTL: never, Lifetime: never, LockWait: never, MaxHold: never,
			MaxWaiters: math.MaxInt, MaxBytes: math.MaxInt, Buffer: math.MaxInt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Mode = byPath(map[string]middleware.Mode{"/get": middleware.ReadOnly})
			mux := app()
			mux.HandleFunc("/copy", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.Copy(w, io.LimitReader(strings.NewReader("copied"), 9))
			})
			s := newSite(t, r.Pool(t, 4), o, mux)
			v := newVisitor(t)
			for n := 1; n <= 4; n++ {
				v.get(s.URL+"/add").want(t, 200, fmt.Sprint(n))
			}
			v.get(s.URL+"/get").want(t, 200, "4")
			v.get(s.URL+"/login").want(t, 200, "")
			v.get(s.URL+"/add").want(t, 200, "5")
			v.get(s.URL+"/copy").want(t, 200, "copied")
		})
	}
}
