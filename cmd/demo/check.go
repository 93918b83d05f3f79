package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// errLost is the error of a check in which answered writes were lost.
var errLost = errors.New("writes were lost")

// check makes c.check concurrent writes to a session over HTTP, without a lock and with each lock that -lock
// names, and prints how many were kept.
func check(ctx context.Context, c config, r *server, log *slog.Logger, stdout io.Writer) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "lock\tkept\trefused\ttime")
	var bad []error
	ways := waysToCheck(c.lock)
	for i, way := range ways {
		c.lock = way
		got, err := checkOne(ctx, c, r, log)
		if err != nil {
			return fmt.Errorf("checking %s: %w", way, err)
		}
		fmt.Fprintf(table, "%s\t%d of %d\t%d\t%v\n", way, got.kept, c.check, got.refused, got.took.Round(time.Millisecond/10))
		if i > 0 || len(ways) == 1 { // otherwise it only shows the need for a lock
			bad = append(bad, got.verdict(c))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return errors.Join(bad...)
}

func waysToCheck(lock string) []string {
	switch lock {
	case lockNone:
		return []string{lockNone}
	case lockAll:
		return []string{lockNone, lockSpin, lockTimestamp, lockLease, lockRedlock}
	default:
		return []string{lockNone, lock}
	}
}

func checkOne(ctx context.Context, c config, r *server, log *slog.Logger) (outcome, error) {
	st, err := r.store(c)
	if err != nil {
		return outcome{}, err
	}
	defer st.Close()
	handler, err := newApp(ctx, c, r, st, log)
	if err != nil {
		return outcome{}, err
	}
	return fire(ctx, handler, c.check)
}

type outcome struct {
	kept, refused int
	took          time.Duration
}

// verdict returns what is wrong with the outcome of a check with c.
func (o outcome) verdict(c config) error {
	switch lost := c.check - o.kept - o.refused; {
	case lost > 0:
		return fmt.Errorf("-lock %s: %w: %d of %d", c.lock, errLost, lost, c.check)
	case o.refused > 0:
		return fmt.Errorf("-lock %s: no write was lost, but %d of %d were refused: is -lock-wait long enough?", c.lock, o.refused, c.check)
	}
	return nil
}

// fire begins a session, sends n writes to it at once, and ends it.
func fire(ctx context.Context, handler http.Handler, n int) (_ outcome, err error) {
	srv := httptest.NewServer(handler)
	defer srv.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return outcome{}, err
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	defer client.CloseIdleConnections()
	post := func(ctx context.Context, path string, form url.Values) error {
		_, err := call(ctx, client, http.MethodPost, srv.URL+path, form)
		return err
	}
	if err := post(ctx, "/reset", nil); err != nil { // the cookie must be there before the crowd
		return outcome{}, err
	}
	defer func() { // also after an interrupt: a user's Redis must not keep the session
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if end := post(ctx, "/logout", nil); end != nil {
			err = errors.Join(err, fmt.Errorf("the session is left in Redis until it expires: %w", end))
		}
	}()

	var refused atomic.Int64
	var crowd sync.WaitGroup
	began := time.Now()
	for i := range n {
		crowd.Go(func() {
			if post(ctx, "/set", url.Values{"name": {strconv.Itoa(i)}}) != nil {
				refused.Add(1)
			}
		})
	}
	crowd.Wait()
	took := time.Since(began)

	body, err := call(ctx, client, http.MethodGet, srv.URL+"/result", nil)
	if err != nil {
		return outcome{}, err
	}
	kept, err := strconv.Atoi(strings.TrimSpace(body))
	return outcome{kept: kept, refused: int(refused.Load()), took: took}, err
}

// call makes one request and returns the body of its response.
func call(ctx context.Context, client *http.Client, method, target string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %s: %s", method, req.URL.Path, res.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}
