package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Account is a user with sessions in several browsers. Several clients make requests for them at once,
// and end sessions from one another. After a hundred requests another user takes the place of this one,
// so that each history is short and quickly checked.
type Account struct {
	HTTP *http.Client
	Site func(random float64) string // one of the processes, http://host:port; see Sites.Any
	ID   func(cookie string) string  // the public ID of the session that a cookie opens

	Reads, Writes []string // their paths
	// Sound: a request is refused only because its session has ended.
	Sound bool

	began    time.Time
	mu       sync.Mutex // guards all below
	lives    []*life
	wrongs   []error // responses that are wrong in themselves
	answered map[string]int
	silent   int
}

// A life is the history of one user.
type life struct {
	user    string
	busy    int // how many of the sessions are used
	asked   int
	logins  int
	cookies []string       // the newest of each session
	old     []string       // the older ones
	labels  map[string]int // of the session that a cookie opened
	done    []record
}

// A record is a request, and when it was made.
type record struct {
	client     int
	op         deed
	got        outcome
	call, back int64 // ns; back is never if there was no response
}

// The kinds of requests, besides Write, Read, Login and Logout.
const (
	renew  = "renew"
	end    = "end"
	endAll = "end all"
	list   = "list"
	saw    = "saw" // what the handler of a refused request has seen
	claims = "claims"
)

// A deed is one request of an account.
type deed struct {
	what   string
	cookie string // that is sent; for end and endAll: of the session that is ended, or spared
	label  int    // of the session in the list
	guest  bool   // a login in a session that has a number already: 1
}

// An outcome is the result of a request, as far as the client knows.
type outcome struct {
	known  bool
	status int
	user   string // the user of the session that the handler has seen
	n      int    // the number; for endAll, how many sessions it ended
	cookie string // a new cookie
	labels []int  // for list
}

const (
	aLife  = 100 // requests
	logins = 12  // at most, among them
)

// Run makes requests from several clients until ctx ends. seed determines the choice of the requests.
func (a *Account) Run(ctx context.Context, clients int, seed uint64) {
	a.began, a.answered = time.Now(), make(map[string]int)
	var all sync.WaitGroup
	for id := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		all.Go(func() {
			for ctx.Err() == nil {
				a.turn(ctx, id, random)
			}
		})
	}
	all.Wait()
}

// turn makes one request. If it has ended sessions, another request follows at once, which checks that
// they have ended.
func (a *Account) turn(ctx context.Context, id int, random *rand.Rand) {
	l, op := a.choose(random)
	if op.guest {
		visit := deed{what: Write}
		first, err := a.ask(l, visit, a.Site(random.Float64())+a.path(visit, 0))
		if op.cookie = first.cookie; op.cookie == "" || err != nil {
			return
		}
	}
	got := a.do(l, id, op, random)
	if op.what == endAll || op.what == end {
		a.do(l, id, a.look(l, random), random)
	}
	if !got.known { // like a page, it does not retry at once
		pause(ctx, 10*time.Millisecond)
	}
}

// do makes a request and records it.
func (a *Account) do(l *life, id int, op deed, random *rand.Rand) outcome {
	r := record{client: id, op: op, call: int64(time.Since(a.began))}
	got, err := a.ask(l, op, a.Site(random.Float64())+a.path(op, random.Float64()))
	r.got, r.back = got, int64(time.Since(a.began))
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.wrongs = append(a.wrongs, fmt.Errorf("%9.1f ms: %w", ms(r.call), err))
	}
	if !got.known {
		a.silent++
		r.client, r.back = 1000+len(l.done), never // a client has one request at a time, and this one never ends
	} else {
		a.answered[op.what]++
	}
	l.done = append(l.done, r)
	moved := got.cookie != "" && (op.what == Login || got.user == l.user)
	seenDead := got.known && got.user == "" && op.what != Login && op.what != endAll && op.what != list
	if i := slices.Index(l.cookies, op.cookie); i >= 0 && (moved || seenDead) {
		l.cookies, l.old = slices.Delete(l.cookies, i, i+1), append(l.old, op.cookie)
	}
	if moved {
		l.cookies = append(l.cookies, got.cookie)
		l.labels[got.cookie] = op.label
	}
	return got
}

// look returns a read of a session, as a deed.
func (a *Account) look(l *life, random *rand.Rand) deed {
	a.mu.Lock()
	defer a.mu.Unlock()
	cookie := l.any(random)
	return deed{what: Read, cookie: cookie, label: l.labels[cookie]}
}

// choose picks a request.
func (a *Account) choose(random *rand.Rand) (*life, deed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.lives); n == 0 || a.lives[n-1].asked >= aLife || a.lives[n-1].logins >= logins {
		// Some users have many requests at once for one session, others one for each of many.
		busy := []int{1, 3, logins, logins}[n%4]
		a.lives = append(a.lives, &life{busy: busy, user: fmt.Sprintf("user%d-%d", random.Uint32(), n), labels: make(map[string]int)})
	}
	l := a.lives[len(a.lives)-1]
	l.asked++
	chance := random.IntN(100)
	if len(l.cookies) == 0 || chance < 14 {
		op := deed{what: Login, label: l.logins}
		l.logins++
		if chance < 4 {
			op.guest = true
		} else if chance < 8 { // in the session of another login, or with the cookie of an ended one
			op.cookie = l.any(random)
		}
		return l, op
	}
	op := deed{what: Write, cookie: l.any(random)}
	op.label = l.labels[op.cookie]
	switch {
	case chance < 20:
		op.what = renew
	case chance < 21:
		op.what = Logout
	case chance < 24:
		op.what = end
	case chance < 27:
		op.what = endAll
	case chance < 29:
		op.what, op.cookie = endAll, ""
	case chance < 37:
		op = deed{what: list}
	case chance < 60:
		op.what = Read
	}
	return l, op
}

// any returns a cookie, sometimes a dead one.
func (l *life) any(random *rand.Rand) string {
	some := l.cookies
	if len(some) == 0 || len(l.old) > 0 && random.IntN(5) == 0 {
		some = l.old
	}
	if len(some) == 0 {
		return ""
	}
	some = some[max(0, len(some)-l.busy):]
	return some[random.IntN(len(some))]
}

// path returns the path of a request; random is in [0, 1).
func (a *Account) path(op deed, random float64) string {
	switch op.what {
	case Read:
		return a.Reads[int(random*float64(len(a.Reads)))]
	case Write:
		return a.Writes[int(random*float64(len(a.Writes)))]
	}
	return "/" + strings.ReplaceAll(op.what, " ", "-")
}

// ask makes the request. Its error is a response that nothing explains.
func (a *Account) ask(l *life, op deed, target string) (got outcome, _ error) {
	form, cookie := url.Values{"user": {l.user}, "label": {fmt.Sprint(op.label)}}, op.cookie
	if op.what == end || op.what == endAll {
		if cookie = ""; op.cookie != "" {
			form.Set("id", a.ID(op.cookie))
		}
	}
	req, err := http.NewRequest(http.MethodPost, target+"?"+form.Encode(), nil)
	if err != nil {
		return got, err
	}
	req.Header.Set("Sec-Fetch-Mode", "cors")
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	res, err := a.HTTP.Do(req)
	if err != nil {
		return got, a.unanswered(op, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return got, a.unanswered(op, err)
	}
	if res.StatusCode == http.StatusServiceUnavailable && !a.Sound {
		return got, nil
	}
	got = outcome{known: true, status: res.StatusCode, user: res.Header.Get("X-User")}
	if cookies := res.Cookies(); len(cookies) > 0 && cookies[0].MaxAge >= 0 {
		got.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	switch res.StatusCode {
	case http.StatusOK:
		return got, got.read(op, string(body))
	case http.StatusNoContent, http.StatusConflict, http.StatusServiceUnavailable, http.StatusNotFound:
		return got, nil
	}
	return got, fmt.Errorf("%s was answered with %s: %s", op.what, res.Status, body)
}

func (a *Account) unanswered(op deed, err error) error {
	if a.Sound {
		return fmt.Errorf("%s was not answered: %w", op.what, err)
	}
	return nil
}

// read parses the body of a response: a number, or the labels in a list.
func (o *outcome) read(op deed, body string) error {
	var err error
	if op.what != list {
		_, err = fmt.Sscan(body, &o.n)
	}
	for _, field := range strings.Fields(body) {
		var label int
		if op.what == list && err == nil {
			_, err = fmt.Sscan(field, &label)
			o.labels = append(o.labels, label)
		}
	}
	if err != nil {
		return fmt.Errorf("%s was answered with %q", op.what, body)
	}
	return nil
}

// Answered returns the number of requests with a response, by kind.
func (a *Account) Answered() map[string]int { return a.answered }

// Silent returns the number of requests without a response.
func (a *Account) Silent() int { return a.silent }

// Check checks the histories of all users. Call it after Run.
func (a *Account) Check() error {
	errs := slices.Clone(a.wrongs)
	for _, l := range a.lives {
		if err := l.check(a.Sound); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.user, err))
		}
	}
	if n := len(errs) - most; n > 0 {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", n))
	}
	return errors.Join(errs...)
}
