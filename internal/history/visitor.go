package history

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Visitor has a session, and sends requests with it from several clients at once, as a web page does.
// When the session has ended, it begins another.
type Visitor struct {
	HTTP *http.Client
	Site func(random float64) string // one of the processes, http://host:port; see Sites.Any
	// Reads are the paths of reads; default: /count.
	Reads []string
	// Writes are the paths of writes that are not navigations; default: /incr.
	Writes []string
	// Logins makes some of the requests logins, many of them with a double click, and a few logouts. Some
	// of the writes are then navigations.
	Logins bool
	// Losing: Redis may lose sessions; see loss.go. It cannot be combined with Logins.
	Losing bool

	began    time.Time
	mu       sync.Mutex // guards all below
	now      *session   // nil if there is none
	over     []*session
	wrongs   []error       // responses that are wrong in themselves
	forgot   *[2]int64     // see Forgot
	latest   time.Duration // when the newest write with a response was sent
	longest  time.Duration
	answered int
	silent   int
	why      string // see Summary.Why
	writes   int
	afresh   int // sessions begun by requests with a dead cookie
}

// A session is one history.
type session struct {
	cookies    []string // all that it has had
	operations []porcupine.Operation
	asked      int                   // how many requests there were
	base       int                   // the number that it began with
	wrote      bool                  // a write had a response, so the number is not 0 any more
	next       *session              // the session with which the visitor continues, if any
	empties    []porcupine.Operation // see forgotten
	silent     []porcupine.Operation // the requests without a response, with the time at which they failed
}

const (
	enough = 2000 // requests with one session
	dying  = 20   // of them after the session is over for the visitor, so that a dead cookie is tried, too
)

// Run makes requests from several clients until ctx ends. seed determines the choice of the requests. A
// final read shows what is left.
func (v *Visitor) Run(ctx context.Context, clients int, seed uint64) {
	v.began = time.Now()
	var all sync.WaitGroup
	for id := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(id)))
		all.Go(func() {
			for ctx.Err() == nil {
				v.turn(ctx, id, random)
			}
		})
	}
	all.Wait()
	v.mu.Lock()
	s := v.now
	v.mu.Unlock()
	if s != nil {
		last := Operation{What: Read, Cookie: s.cookies[len(s.cookies)-1]}
		v.do(s, 0, last, v.Site(0)+v.path(last, 0))
	}
}

// turn makes one request.
func (v *Visitor) turn(ctx context.Context, id int, random *rand.Rand) {
	s, op := v.choose(random)
	url := v.Site(random.Float64()) + v.path(op, random.Float64())
	op.Reopens = op.What == Write && (strings.HasSuffix(url, "/reopen") || strings.HasSuffix(url, "/update"))
	var got Answer
	if s == nil {
		got = v.begin(id, op, url)
	} else {
		if op.What == Login && random.IntN(2) == 0 {
			v.click(ctx, s, op, url, time.Duration(random.IntN(3000))*time.Microsecond)
			url = v.Site(random.Float64()) + v.path(op, 0)
		}
		got = v.do(s, id, op, url)
	}
	if !got.Known { // like a page, it does not retry at once
		pause(ctx, 10*time.Millisecond)
	}
}

// choose picks a request with one of the two newest cookies, so that it also tries dead ones. If the
// session has ended, it returns nil and Begin.
func (v *Visitor) choose(random *rand.Rand) (*session, Operation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.now
	if s != nil && s.asked >= enough && s.next != nil {
		v.over = append(v.over, s)
		s = s.next
		v.now = s
	}
	if s == nil || s.asked >= enough {
		return nil, Operation{What: Begin}
	}
	s.asked++
	newest := s.cookies[max(0, len(s.cookies)-2):]
	op := Operation{What: Write, Cookie: newest[random.IntN(len(newest))]}
	switch chance := random.IntN(1000); {
	case chance < 250:
		op.What = Read
	case v.Logins && s.wrote && chance < 270:
		op.What = Login
	case v.Logins && chance < 273:
		op.What = Logout
		s.asked = max(s.asked, enough-dying)
	case v.Logins && chance < 310:
		op.Navigate = true
	}
	return s, op
}

// begin begins a session, unless another client has done so meanwhile.
func (v *Visitor) begin(id int, op Operation, url string) Answer {
	v.mu.Lock()
	old := v.now
	v.mu.Unlock()
	next := &session{}
	got := v.do(next, id, op, url)
	v.mu.Lock()
	defer v.mu.Unlock()
	if got.Known && got.Cookie == "" {
		v.wrongs = append(v.wrongs, fmt.Errorf("a session was begun without a cookie, with status %d", got.Status))
	}
	if got.Cookie == "" || v.now != old {
		return got
	}
	if old != nil {
		v.over = append(v.over, old)
		if old.next != nil { // since then
			v.over = append(v.over, old.next)
		}
	}
	v.now = next
	return got
}

// do makes a request and records it.
func (v *Visitor) do(s *session, id int, op Operation, url string) Answer {
	call := time.Since(v.began)
	got, err := ask(context.Background(), v.HTTP, url, op)
	back := time.Since(v.began)
	if v.Logins && got.Cookie != "" {
		got = v.opened(id, op, got)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.longest = max(v.longest, back-call)
	if err != nil {
		v.wrongs = append(v.wrongs, fmt.Errorf("%9.1f ms: %w", ms(int64(call)), err))
	}
	return v.record(s, id, op, got, call, back)
}

// record adds a request to a session's history. The caller holds mu.
func (v *Visitor) record(s *session, id int, op Operation, got Answer, call, back time.Duration) Answer {
	empty := v.Losing && isEmpty(op, got)
	if got.Anew {
		v.anew(s, entry(id, op, got, call, back))
		got = Answer{Known: true, Status: got.Status, Anew: true}
	}
	if !got.Known {
		if got.Why != "" { // otherwise opened does not know which session was answered
			v.silent++
			v.why = got.Why
			s.silent = append(s.silent, porcupine.Operation{Input: op, Call: int64(call), Return: int64(back)})
		}
		if op.What == Read || op.What == Begin {
			return got // it has no effect that any client can see
		}
		// A client has one request at a time, and this one never ends.
		id = 1000 + len(s.operations)
	} else {
		v.answered++
		if got.N >= s.base && !empty && !got.Anew { // 0 is the number of a dead cookie
			got.N -= s.base
		}
		if op.What == Write && got.Status == http.StatusOK {
			v.writes++
			if !got.Anew { // a request that begins a session takes no lock
				v.latest = max(v.latest, call)
				s.wrote = true
			}
		}
	}
	if empty {
		v.forgotten(s, entry(id, op, got, call, back))
		return got
	}
	s.operations = append(s.operations, entry(id, op, got, call, back))
	if op.What == Login && got.Status == http.StatusConflict { // an earlier login has moved the ID, and its response is lost
		s.asked = max(s.asked, enough-dying) // as after a logout: for a minute, no write with these cookies succeeds
	}
	if got.Cookie != "" {
		s.cookies = append(s.cookies, got.Cookie)
	}
	return got
}

// path returns the path of a request; random is in [0, 1).
func (v *Visitor) path(op Operation, random float64) string {
	switch {
	case op.What == Begin:
		return "/reset"
	case op.What == Read && len(v.Reads) > 0:
		return v.Reads[int(random*float64(len(v.Reads)))]
	case op.What == Write && !op.Navigate && len(v.Writes) > 0:
		return v.Writes[int(random*float64(len(v.Writes)))]
	default:
		return "/" + op.What
	}
}

// ask makes the request. Its error is a response that nothing explains.
func ask(ctx context.Context, c *http.Client, url string, op Operation) (Answer, error) {
	method := http.MethodPost
	if op.What == Read {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Sec-Fetch-Mode", "cors")
	if op.Navigate {
		req.Header.Set("Sec-Fetch-Mode", "navigate")
	}
	if op.Cookie != "" {
		req.Header.Set("Cookie", op.Cookie)
	}
	res, err := c.Do(req)
	if err != nil {
		return Answer{Why: err.Error()}, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode == http.StatusServiceUnavailable {
		return Answer{Why: fmt.Sprintf("%s %s: %s %q %v", op.What, url, res.Status, body, err)}, nil
	}
	got := Answer{Known: true, Status: res.StatusCode}
	if cookies := res.Cookies(); len(cookies) > 0 && cookies[0].MaxAge >= 0 {
		got.Cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	switch res.StatusCode {
	case http.StatusOK:
		if got.N, err = strconv.Atoi(strings.TrimSpace(string(body))); err != nil {
			return got, fmt.Errorf("%s was answered with %q", op.What, body)
		}
	case http.StatusNoContent, http.StatusConflict:
	default:
		return got, fmt.Errorf("%s was answered with %s: %s", op.What, res.Status, body)
	}
	return got, nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
