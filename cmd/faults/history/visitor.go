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

// A Visitor has a session, and fires requests with it from several clients at once,
// as a web page does. When the session is over, it begins another.
type Visitor struct {
	HTTP *http.Client
	Site func(random float64) string // one of the site's processes, http://host:port
	// Logins lets some of the requests be logins, and a few logouts.
	Logins bool
	// Losing is for where Redis may lose sessions, see loss.go. It goes without Logins.
	Losing bool

	began    time.Time
	mu       sync.Mutex // guards what follows
	now      *session   // nil: none
	over     []*session
	wrongs   []error // answers that are wrong in themselves
	forgot   *[2]int64
	latest   time.Duration
	longest  time.Duration
	answered int
	silent   int
}

// A session is one history.
type session struct {
	cookies    []string // all that it ever had
	operations []porcupine.Operation
	asked      int  // requests, so far
	ended      bool // somebody has tried to log out
	base       int  // what the number was in the beginning
	empties    []porcupine.Operation
}

// enough is how many requests there are for one session.
const enough = 2000

// Run lets clients make requests until ctx ends. It draws from seed what they do.
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
	// One more, so that the history shows what is left.
	v.mu.Lock()
	s := v.now
	v.mu.Unlock()
	if s != nil {
		v.do(s, 0, Operation{What: Read, Cookie: s.cookies[len(s.cookies)-1]}, v.Site(0))
	}
}

// turn makes one request.
func (v *Visitor) turn(ctx context.Context, id int, random *rand.Rand) {
	s, op := v.choose(random)
	if s == nil {
		v.begin(ctx, id, v.Site(random.Float64()))
		return
	}
	if got := v.do(s, id, op, v.Site(random.Float64())); !got.Known {
		// As a page would: not at once again.
		pause(ctx, 10*time.Millisecond)
	}
}

// choose picks a request and one of the newest cookies, so that dead ones are
// tried, too. There is none where the session is over.
func (v *Visitor) choose(random *rand.Rand) (*session, Operation) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.now
	if s == nil || s.ended || s.asked >= enough {
		return nil, Operation{}
	}
	s.asked++
	newest := s.cookies[max(0, len(s.cookies)-2):]
	op := Operation{What: Write, Cookie: newest[random.IntN(len(newest))]}
	switch chance := random.IntN(1000); {
	case chance < 250:
		op.What = Read
	case v.Logins && chance < 270:
		op.What = Login
	case v.Logins && chance < 273:
		op.What = Logout
		s.ended = true
	}
	return s, op
}

// begin begins a session, unless another client has done so meanwhile.
func (v *Visitor) begin(ctx context.Context, id int, site string) {
	v.mu.Lock()
	old := v.now
	v.mu.Unlock()
	next := &session{}
	got := v.do(next, id, Operation{What: Begin}, site)
	v.mu.Lock()
	defer v.mu.Unlock()
	if got.Known && got.Cookie == "" {
		v.wrongs = append(v.wrongs, fmt.Errorf("a session was begun without a cookie, with status %d", got.Status))
	}
	if got.Cookie == "" || v.now != old {
		return
	}
	if old != nil {
		v.over = append(v.over, old)
	}
	v.now = next
}

// do makes a request and records it.
func (v *Visitor) do(s *session, id int, op Operation, site string) Answer {
	call := time.Since(v.began)
	got, err := ask(v.HTTP, site, op)
	back := time.Since(v.began)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.longest = max(v.longest, back-call)
	if err != nil {
		v.wrongs = append(v.wrongs, fmt.Errorf("%9.1f ms: %w", ms(int64(call)), err))
	}
	return v.record(s, id, op, got, call, back)
}

// record adds a request to a session's history. It is called with mu held.
func (v *Visitor) record(s *session, id int, op Operation, got Answer, call, back time.Duration) Answer {
	empty := v.Losing && isEmpty(op, got)
	if !got.Known {
		v.silent++
		if op.What == Read || op.What == Begin {
			return got // it did nothing that anybody will see
		}
		id = 1000 + len(s.operations) // a client makes one request at a time, and this one does not end
	} else {
		v.answered++
		if got.Status == http.StatusOK && s.base > 0 && !empty {
			got.N -= s.base
		}
		if op.What == Write && got.Status == http.StatusOK {
			v.latest = max(v.latest, call)
		}
	}
	if empty {
		v.forgotten(s, entry(id, op, got, call, back))
		return got
	}
	s.operations = append(s.operations, entry(id, op, got, call, back))
	if got.Cookie != "" {
		s.cookies = append(s.cookies, got.Cookie)
	}
	return got
}

// ask makes the request. Its error is an answer that nothing explains.
func ask(client *http.Client, site string, op Operation) (Answer, error) {
	method, path := http.MethodPost, "/"+op.What
	switch op.What {
	case Read:
		method = http.MethodGet
	case Begin:
		path = "/reset"
	}
	req, err := http.NewRequest(method, site+path, nil)
	if err != nil {
		return Answer{}, err
	}
	if op.Cookie != "" {
		req.Header.Set("Cookie", op.Cookie)
	}
	res, err := client.Do(req)
	if err != nil {
		return Answer{}, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode == http.StatusServiceUnavailable {
		return Answer{}, nil
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
