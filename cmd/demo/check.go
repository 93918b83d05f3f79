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

// errLost is the result of a check whose lock did not keep everything.
var errLost = errors.New("writes were lost")

// check fires c.check concurrent writes at a session, without a lock and with
// the one that -lock names, over real HTTP, and prints what was kept.
func check(ctx context.Context, c config, r *server, log *slog.Logger, stdout io.Writer) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "lock\tkept\trefused\ttime")
	ways := []string{lockNone}
	if c.lock != lockNone {
		ways = append(ways, c.lock)
	}
	var last outcome
	for _, way := range ways {
		c.lock = way
		handler, err := newApp(c, r, log)
		if err != nil {
			return err
		}
		if last, err = fire(ctx, handler, c.check); err != nil {
			return fmt.Errorf("checking %s: %w", way, err)
		}
		fmt.Fprintf(table, "%s\t%d of %d\t%d\t%v\n", way, last.kept, c.check, last.refused, last.took.Round(time.Millisecond/10))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch lost := c.check - last.kept - last.refused; {
	case lost > 0:
		return fmt.Errorf("-lock %s: %w: %d of %d", c.lock, errLost, lost, c.check)
	case last.refused > 0:
		return fmt.Errorf("-lock %s: nothing was lost, but %d of %d were refused: is -lock-wait long enough?", c.lock, last.refused, c.check)
	}
	return nil
}

type outcome struct {
	kept, refused int
	took          time.Duration
}

// fire makes a session and sends n writes to it at once.
func fire(ctx context.Context, handler http.Handler, n int) (outcome, error) {
	srv := httptest.NewServer(handler)
	defer srv.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return outcome{}, err
	}
	client := &http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	defer client.CloseIdleConnections()
	post := func(path string, form url.Values) error {
		_, err := call(ctx, client, http.MethodPost, srv.URL+path, form)
		return err
	}
	if err := post("/reset", nil); err != nil { // the cookie must be there before the crowd
		return outcome{}, err
	}

	var refused atomic.Int64
	var crowd sync.WaitGroup
	began := time.Now()
	for i := range n {
		crowd.Go(func() {
			if post("/set", url.Values{"name": {strconv.Itoa(i)}}) != nil {
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

// call makes one request and returns the body of its answer.
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
