package sessiontest_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// shop is the program under test.
func shop(sessions *middleware.Sessions) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		s.Set("cart", append(cart, r.FormValue("item")))
	})
	return sessions.Handler(mux)
}

// testCart is a test of the program. There it is func TestCart(t *testing.T).
func testCart(t testing.TB) {
	site := sessiontest.New(t, middleware.Options{})
	site.Serve(shop(site.Sessions))
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })

	res, err := ann.Post(site.URL+"/cart?item=milk", "", nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer res.Body.Close()
	cart, _ := session.Get[[]string](site.Session(ann), "cart")
	if res.StatusCode != http.StatusOK || len(cart) != 2 {
		t.Errorf("status %d, cart %q", res.StatusCode, cart)
	}
	fmt.Println(cart)
}

// A test fills the session of a client, sends a request, and reads what the handler has stored.
func ExampleNew() {
	t := newT()
	defer t.end()
	testCart(t)
	// Output:
	// [tea milk]
}

// A printer stands for a *testing.T, which only go test can make. It prints failures.
type printer struct {
	testing.TB
	cleanups []func()
}

func newT() *printer { return new(printer) }

func (p *printer) Helper()           {}
func (p *printer) Output() io.Writer { return io.Discard }
func (p *printer) Cleanup(f func())  { p.cleanups = append(p.cleanups, f) }

func (p *printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (p *printer) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (p *printer) end() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}
