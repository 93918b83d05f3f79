package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// A stranger is a visitor who leaves names of his own in his session, and looks at what
// is there: so he notices what is not his. A history cannot tell whose a number is.
type stranger struct {
	name   string
	client *http.Client
	site   func(random float64) string
	cookie string

	mu       sync.Mutex // guards what follows
	asked    map[string]bool
	answered map[string]bool
	looks    int
	silent   int // requests that were answered with a 503, or not at all
	longest  time.Duration
	wrong    []error
}

// invite lets strangers begin a session each.
func invite(t *testing.T, n int, site func(random float64) string) (all []*stranger) {
	t.Helper()
	for i := range n {
		g := &stranger{name: fmt.Sprintf("stranger%d", i), client: client(t), site: site,
			asked: make(map[string]bool), answered: make(map[string]bool)}
		res, _, err := g.request(context.Background(), http.MethodPost, site(0)+"/reset", nil)
		if err != nil || len(res.Cookies()) != 1 {
			t.Fatalf("%s gets no session: %v", g.name, err)
		}
		g.cookie = res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
		all = append(all, g)
	}
	return all
}

// mingleFor lets each stranger make requests from two clients at once for a while.
func mingleFor(ctx context.Context, all []*stranger, d time.Duration) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	var running sync.WaitGroup
	for i, g := range all {
		for half := range uint64(2) {
			running.Go(func() { g.run(ctx, chance(1000+2*uint64(i)+half), half) })
		}
	}
	running.Wait()
	for _, g := range all {
		g.client.CloseIdleConnections() // they count as the site's open files
	}
}

func (g *stranger) run(ctx context.Context, random *rand.Rand, half uint64) {
	for ctx.Err() == nil {
		if random.IntN(3) == 0 {
			g.look(g.site(random.Float64()))
		} else {
			g.set(g.site(random.Float64()), fmt.Sprintf("%s-%d-%d", g.name, half, random.Uint32()))
		}
	}
}

// set leaves a name.
func (g *stranger) set(site, name string) (status int) {
	g.mu.Lock()
	g.asked[name] = true
	g.mu.Unlock()
	res, body, err := g.request(context.Background(), http.MethodPost, site+"/set", url.Values{"name": {name}})
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		g.silent++
		return 0
	case res.StatusCode == http.StatusServiceUnavailable:
		g.silent++
	case res.StatusCode != http.StatusOK || body != "ok\n":
		g.wrong = append(g.wrong, fmt.Errorf("%s: /set was answered with %s: %q", g.name, res.Status, body))
	default:
		g.answered[name] = true
	}
	return res.StatusCode
}

// look asks what is in the session. All that was answered before must be there, and
// nothing that nobody asked for.
func (g *stranger) look(site string) (known bool) {
	g.mu.Lock()
	var before []string
	for name := range g.answered {
		before = append(before, name)
	}
	g.mu.Unlock()
	res, body, err := g.request(context.Background(), http.MethodGet, site+"/params", nil)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || res.StatusCode == http.StatusServiceUnavailable {
		g.silent++
		return false
	}
	g.looks++
	var names []string
	if err := json.Unmarshal([]byte(body), &names); err != nil || res.StatusCode != http.StatusOK {
		g.wrong = append(g.wrong, fmt.Errorf("%s: /params was answered with %s: %.200q", g.name, res.Status, body))
		return true
	}
	there := make(map[string]bool)
	for _, name := range names {
		there[name] = true
		if !g.asked[name] {
			g.wrong = append(g.wrong, fmt.Errorf("%s finds %q, and has never sent it", g.name, name))
		}
	}
	for _, name := range before {
		if !there[name] {
			g.wrong = append(g.wrong, fmt.Errorf("%s does not find %q, which was answered", g.name, name))
		}
	}
	return true
}

func (g *stranger) request(ctx context.Context, method, at string, form url.Values) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if g.cookie != "" {
		req.Header.Set("Cookie", g.cookie)
	}
	begun := time.Now()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.longest = max(g.longest, time.Since(begun))
	}()
	res, err := g.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// tally is what strangers met, together.
type tally struct {
	answered, looks, silent int
	longest                 time.Duration
}

func (c tally) String() string {
	return fmt.Sprintf("%d writes and %d looks answered, %d requests not, longest %v",
		c.answered, c.looks, c.silent, c.longest.Round(time.Millisecond))
}

// farewell lets all strangers look once more, and asserts that nobody has met anything
// wrong.
func farewell(t *testing.T, all []*stranger) (sum tally) {
	t.Helper()
	for _, g := range all {
		eventually(t, 10*time.Second, g.name+" can look at the session", func() bool { return g.look(g.site(0)) })
		g.mu.Lock()
		sum.answered += len(g.answered)
		sum.looks += g.looks
		sum.silent += g.silent
		sum.longest = max(sum.longest, g.longest)
		if n := len(g.wrong); n > 0 {
			t.Errorf("%d wrong answers, such as: %v", n, errors.Join(g.wrong[:min(n, 3)]...))
		}
		g.mu.Unlock()
	}
	if sum.answered == 0 {
		t.Error("no stranger has written anything")
	}
	return sum
}
