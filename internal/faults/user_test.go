package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A user stores names that are unique to it in its session, and reads the names in the session. So it would
// notice the data of another session. In a history, by contrast, the numbers of two sessions look alike.
type user struct {
	name   string
	client *http.Client
	site   func(random float64) string
	cookie string
	random [2]*rand.Rand // for its two clients: no name comes twice, since a stored name is not stored again

	mu       sync.Mutex // guards all below
	asked    map[string]bool
	answered map[string]bool
	looks    int
	silent   int // requests with a 503, or without a response
	longest  time.Duration
	wrong    []error
}

// large is a name that makes a session so large that its records are staged.
var large = strings.Repeat("large", 600)

// newUsers returns users, each with a session. Every second session is large.
func newUsers(t *testing.T, n int, site func(random float64) string) (all []*user) {
	t.Helper()
	for i := range n {
		u := &user{name: fmt.Sprintf("user%d", i), client: client(t), site: site,
			asked: make(map[string]bool), answered: make(map[string]bool)}
		for half := range u.random {
			u.random[half] = chance(uint64(1000 + 2*i + half))
		}
		got := u.ask(context.Background(), http.MethodPost, site(0)+"/reset", nil)
		if got.cookie == "" {
			t.Fatalf("%s got no session: %+v", u.name, got)
		}
		u.cookie = got.cookie
		if i%2 == 1 {
			u.set(site(0), large)
		}
		all = append(all, u)
	}
	return all
}

// workFor makes requests from two clients of each user at once, for a while.
func workFor(ctx context.Context, all []*user, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	var running sync.WaitGroup
	for _, u := range all {
		for half, random := range u.random {
			running.Go(func() { u.run(ctx, random, half) })
		}
	}
	running.Wait()
	for _, u := range all {
		u.client.CloseIdleConnections() // they count among the site's open files
	}
}

// workUntil repeats workFor until enough has happened, which takes a while on a busy machine.
func workUntil(ctx context.Context, all []*user, d time.Duration, enough func() bool) {
	for n := 0; n == 0 || n < 60 && !enough(); n++ {
		workFor(ctx, all, d)
	}
}

func (u *user) run(ctx context.Context, random *rand.Rand, half int) {
	for ctx.Err() == nil {
		if random.IntN(3) == 0 {
			u.look(u.site(random.Float64()))
		} else {
			u.set(u.site(random.Float64()), fmt.Sprintf("%s-%d-%d", u.name, half, random.Uint32()))
		}
	}
}

func (u *user) set(site, name string) (status int) {
	u.mu.Lock()
	u.asked[name] = true
	u.mu.Unlock()
	got := u.ask(context.Background(), http.MethodPost, site+"/set", url.Values{"name": {name}})
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case got.status == 0 || got.status == http.StatusServiceUnavailable:
		u.silent++
	case got.status != http.StatusOK || got.text != "ok":
		u.wrong = append(u.wrong, fmt.Errorf("%s: /set was answered with %d: %q", u.name, got.status, got.text))
	default:
		u.answered[name] = true
	}
	return got.status
}

// look reads the names in the session. All names that were confirmed before must be there, and no name that was
// never sent. It reports whether there was a response.
func (u *user) look(site string) (known bool) {
	u.mu.Lock()
	var before []string
	for name := range u.answered {
		before = append(before, name)
	}
	u.mu.Unlock()
	got := u.ask(context.Background(), http.MethodGet, site+"/params", nil)
	u.mu.Lock()
	defer u.mu.Unlock()
	if got.status == 0 || got.status == http.StatusServiceUnavailable {
		u.silent++
		return false
	}
	u.looks++
	var names []string
	if err := json.Unmarshal([]byte(got.text), &names); err != nil || got.status != http.StatusOK {
		u.wrong = append(u.wrong, fmt.Errorf("%s: /params was answered with %d: %.200q", u.name, got.status, got.text))
		return true
	}
	there := make(map[string]bool)
	for _, name := range names {
		there[name] = true
		if !u.asked[name] {
			u.wrong = append(u.wrong, fmt.Errorf("%s found %q, which it has never sent", u.name, name))
		}
	}
	for _, name := range before {
		if !there[name] {
			u.wrong = append(u.wrong, fmt.Errorf("%s did not find %q, which was confirmed", u.name, name))
		}
	}
	return true
}

func (u *user) ask(ctx context.Context, method, at string, form url.Values) reply {
	got := ask(ctx, u.client, method, at, u.cookie, form)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.longest = max(u.longest, got.took)
	return got
}

// A tally counts the requests of several users.
type tally struct {
	answered, looks, silent int
	longest                 time.Duration
}

func (c tally) String() string {
	return fmt.Sprintf("%d writes and %d reads answered, %d requests not, longest %v",
		c.answered, c.looks, c.silent, c.longest.Round(time.Millisecond))
}

// lastLook makes all users look once more, and asserts that none has had a wrong response.
func lastLook(t *testing.T, all []*user) (sum tally) {
	t.Helper()
	for _, u := range all {
		eventually(t, 10*time.Second, u.name+" can look at the session", func() bool { return u.look(u.site(0)) })
		u.mu.Lock()
		sum.answered += len(u.answered)
		sum.looks += u.looks
		sum.silent += u.silent
		sum.longest = max(sum.longest, u.longest)
		if n := len(u.wrong); n > 0 {
			t.Errorf("%d wrong answers, such as: %v", n, errors.Join(u.wrong[:min(n, 3)]...))
		}
		u.mu.Unlock()
	}
	happened(t, "a user's write was answered", sum.answered, 1)
	return sum
}
