package browser

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
)

// P16: an open page learns by its stream of events, and by its websocket, that another process has ended its
// session, whatever ended it. Both streams are those of the guide.

// soon is how much time is left to a session that times out. Everything that the test needs is open before that.
const soon = time.Second

// endings are the ways in which the session that the page in b has open may end. there is the other process.
var endings = map[string]struct {
	options func(*middleware.Options)                                                // of the other process
	end     func(t *testing.T, browser string, b *tab, there *shop) (ends time.Time) // ends: not after the session's end
}{
	"Destroy, in another tab": {end: func(_ *testing.T, _ string, b *tab, there *shop) time.Time {
		other := b.another()
		other.open(there.url + "/account/")
		sent := there.sent("POST /logout", func() { other.click("#logout") })
		other.showsUser("")
		return sent
	}},
	"End": {end: func(t *testing.T, _ string, b *tab, there *shop) time.Time {
		id, called := idOf(b), time.Now()
		there.end(t, id)
		return called
	}},
	"EndAll": {end: func(t *testing.T, _ string, _ *tab, there *shop) time.Time {
		called := time.Now()
		if n, err := there.sessions.EndAll(t.Context(), "ann"); n != 1 || err != nil {
			t.Fatalf("EndAll has ended %d sessions: %v", n, err)
		}
		return called
	}},
	"MaxSessions, by a login elsewhere": {
		options: func(o *middleware.Options) { o.MaxSessions = 1 },
		end: func(t *testing.T, browser string, _ *tab, there *shop) time.Time {
			elsewhere := newVisitorIn(t, browser)
			elsewhere.open(there.url + "/account/")
			sent := there.sent("POST /login", func() { elsewhere.click("#login") })
			elsewhere.showsUser("ann")
			return sent
		},
	},
	// The last use decides how much time is left to a session. So that is long until then, however slow the
	// browser is.
	"the idle timeout": {
		options: func(o *middleware.Options) { o.TTL = soon },
		end: func(_ *testing.T, _ string, b *tab, there *shop) time.Time {
			other, used := b.another(), time.Now()
			other.open(there.url + "/account/")
			return used.Add(soon)
		},
	},
	"the end that Remember has set": {end: func(_ *testing.T, _ string, b *tab, there *shop) time.Time {
		other := b.another()
		other.open(there.url + "/account/")
		remember := script(`fetch('/remember', {method: 'POST'})`)
		return there.sent("POST /remember", func() { remember(other) }).Add(soon)
	}},
}

func TestStreamsEndWithTheirSession(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		var mu sync.Mutex
		slowest := map[string]time.Duration{} // guarded by mu
		t.Cleanup(func() { t.Logf("the slowest: %v", slowest) })
		for name, ending := range endings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				here := openShop(t, opening{})
				there := openShop(t, opening{redis: here.redis, options: ending.options})
				b := newVisitorIn(t, browser)
				b.open(here.url)
				b.logIn()
				b.open(here.url + "/live")
				b.until(`document.body.dataset.events === 'open' && document.body.dataset.prices === 'open'`)
				here.forgetAnswers()
				pricesOver := here.stop("GET /prices", "after the sessions")
				pricesOver.letGo()

				ends := ending.end(t, browser, b, there)

				// An EventSource connects again: a 204 stops it.
				b.until(`document.body.dataset.events === 'closed' && document.body.dataset.prices !== 'open'`)
				if got := js[string](b, `document.body.dataset.prices`); got != "1008 logged out, clean" {
					t.Errorf("the websocket was closed with %s, want 1008 logged out", got)
				}
				pricesOver.wait()
				here.answered("GET /prices: 101", "GET /events: 200", "GET /events: 204")

				// The promise is two seconds, which tests in fake time check exactly. In a browser on a busy
				// machine any bound would fail by chance. Nothing but the end of its session ends a stream while
				// a test waits, so the times are only reported. They include the request that ends the session.
				for stream, told := range map[string]string{"events": "eventsEnded", "prices": "pricesEnded"} {
					at := js[int64](b, `Number(document.body.dataset.`+told+` ?? 0)`)
					if at == 0 {
						t.Errorf("the page was not told that its %s have ended", stream)
						continue
					}
					after := time.UnixMilli(at).Sub(ends).Round(time.Millisecond)
					if after < -soon/2 { // clocks do not differ by so much
						t.Errorf("the page was told %v before the session's end that its %s have ended", -after, stream)
					}
					t.Logf("the page was told after %v that its %s have ended", after, stream)
					mu.Lock()
					slowest[stream] = max(slowest[stream], after)
					mu.Unlock()
				}
			})
		}
	})
}

// sent takes a step that sends a request, and returns a time before the request reaches the sessions.
func (s *shop) sent(request string, step func()) (at time.Time) {
	s.t.Helper()
	before := s.stop(request, "before the sessions")
	step()
	before.wait()
	at = time.Now()
	before.letGo()
	return at
}

// streams are the guide's stream of events and websocket, and a page that has both open.
func (s *shop) streams(mux *http.ServeMux) {
	mux.Handle("GET /events", s.sessions.ReadOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := session.FromContext(r.Context()).User()
		if user == "" {
			w.WriteHeader(http.StatusNoContent) // an EventSource that has connected again stops
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		events := eventsOf(r.Context(), user)
		for http.NewResponseController(w).Flush() == nil { // first, to open the stream
			select {
			case event := <-events:
				fmt.Fprintf(w, "data: %s\n\n", event)
			case <-r.Context().Done():
				if context.Cause(r.Context()) == session.ErrEnded {
					fmt.Fprint(w, "event: logout\ndata:\n\n")
				}
				return // the end of the handler sends it
			}
		}
	})))
	mux.HandleFunc("GET /prices", func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		context.AfterFunc(r.Context(), func() {
			if context.Cause(r.Context()) == session.ErrEnded {
				_ = conn.Close(websocket.StatusPolicyViolation, "logged out") // 1008
			}
		})
		answerPrices(context.WithoutCancel(r.Context()), conn) // returns when the connection is closed
	})
	mux.HandleFunc("POST /remember", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Remember(soon)
	})
	mux.Handle("GET /live", s.sessions.ReadOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := live.Execute(w, session.FromContext(r.Context()).ID()); err != nil {
			panic(err)
		}
	})))
}

// eventsOf returns the events for a user. There is one. It also tells the EventSource to connect again soon,
// instead of after seconds.
func eventsOf(_ context.Context, user string) <-chan string {
	events := make(chan string, 1)
	events <- "Hello " + user + "\nretry: 100"
	return events
}

// answerPrices replies to each message.
func answerPrices(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, product, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if conn.Write(ctx, kind, []byte(string(product)+" costs 1 €")) != nil {
			return
		}
	}
}

// live is a page that shows the state of both streams. Each is open when a message has arrived.
var live = template.Must(template.New("live").Parse(`<!DOCTYPE html>
<html lang="en"><title>Live</title><link rel="icon" href="data:,">
<body data-session="{{.}}">
<script>
	const knows = document.body.dataset;

	const events = new EventSource('/events');
	events.onmessage = () => { knows.events = 'open' };
	events.addEventListener('logout', () => { knows.eventsEnded = Date.now() });
	events.onerror = () => { if (events.readyState === EventSource.CLOSED) knows.events = 'closed' };

	const prices = new WebSocket('ws://' + location.host + '/prices');
	prices.onopen = () => prices.send('Tea');
	prices.onmessage = () => { knows.prices = 'open' };
	prices.onclose = e => {
		knows.pricesEnded = Date.now();
		knows.prices = e.code + ' ' + e.reason + (e.wasClean ? ', clean' : '');
	};
</script>
`))
