package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/alexedwards/scs/goredisstore"
	"github.com/alexedwards/scs/v2"
	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
)

// BenchmarkScale shows that a request takes no longer, and a session no more memory, if there are a million
// sessions. It needs half a gigabyte and some minutes:
//
//	go test -run '^$' -bench Scale -benchtime 20000x -timeout 30m .
//
// One client sends requests, without HTTP. Each session has five values, 116 bytes of JSON. In "users"
// each session belongs to another user.
func BenchmarkScale(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.Run("guests", func(b *testing.B) { latchkeyAt(b, n, "") })
			b.Run("users", func(b *testing.B) { latchkeyAt(b, n, "user") })
			b.Run("scs", func(b *testing.B) { scsAt(b, n) })
		})
	}
}

func latchkeyAt(b *testing.B, n int, user string) {
	server := redistest.Real(b)
	st, err := store.Open(server.URL, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key[:32]}, Cookie: http.Cookie{Name: "id"}})
	if err != nil {
		b.Fatal(err)
	}
	begin := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		for i := range 5 {
			s.Set("value"+strconv.Itoa(i), "12345678901")
		}
		if user != "" {
			s.Login(r.URL.RawQuery)
		}
	}))
	login := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login(r.URL.RawQuery)
	}))
	request := sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		visits, _ := session.Get[int](s, "visits")
		s.Set("visits", visits+1)
	}))
	name := func(i int) string { return fmt.Sprintf("user%07d", i) }
	cookies := populate(b, server, n, func(i int) *http.Cookie { return visit(b, begin, nil, name(i)) })

	requests(b, request, cookies)
	if user == "" {
		return
	}
	b.Run("login", func(b *testing.B) { // of guests who have a session, each as another user
		b.StopTimer()
		guests := make([]*http.Cookie, b.N)
		for i := range guests {
			guests[i] = visit(b, request, nil, "")
		}
		b.StartTimer()
		for i, guest := range guests {
			visit(b, login, guest, name(n+i))
		}
	})
	b.Run("endall", func(b *testing.B) { // of those users
		for i := range b.N {
			if _, err := sessions.EndAll(b.Context(), name(n+i)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func scsAt(b *testing.B, n int) {
	server := redistest.Real(b)
	client := goredis.NewClient(&goredis.Options{Addr: server.Addr})
	defer client.Close()
	manager := scs.New()
	manager.Store = goredisstore.New(client)
	begin := manager.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			manager.Put(r.Context(), "value"+strconv.Itoa(i), "12345678901")
		}
	}))
	request := manager.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		manager.Put(r.Context(), "visits", manager.GetInt(r.Context(), "visits")+1)
	}))
	cookies := populate(b, server, n, func(int) *http.Cookie { return visit(b, begin, nil, "") })
	requests(b, request, cookies)
}

// requests measures requests with sessions from all over the keyspace.
func requests(b *testing.B, request http.Handler, cookies []*http.Cookie) {
	b.Run("request", func(b *testing.B) {
		for i := range b.N {
			visit(b, request, cookies[i*7919%len(cookies)], "")
		}
	})
}

// populate begins n sessions, and reports the memory of each in Redis.
func populate(b *testing.B, server *redistest.Server, n int, begin func(i int) *http.Cookie) []*http.Cookie {
	cookies, before := make([]*http.Cookie, n), used(b, server)
	var all sync.WaitGroup
	for first := range visitors {
		all.Go(func() {
			for i := first; i < n; i += visitors {
				cookies[i] = begin(i)
			}
		})
	}
	all.Wait()
	bytes := float64(used(b, server)-before) / float64(n)
	b.Run("memory", func(b *testing.B) {
		b.ReportMetric(bytes, "B/session")
		b.ReportMetric(0, "ns/op")
	})
	return cookies
}

// used returns how many bytes Redis uses. A connection's buffers are nothing beside a million sessions.
func used(b *testing.B, server *redistest.Server) (bytes int) {
	b.Helper()
	info, err := redis.String(server.Do(b, "INFO", "memory"), nil)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "used_memory:%d", &bytes); err == nil {
			return bytes
		}
	}
	b.Fatal("INFO has no used_memory")
	return 0
}

// visit makes a request, and returns the cookie of the response, or else the cookie of the request.
func visit(b *testing.B, h http.Handler, cookie *http.Cookie, query string) *http.Cookie {
	r := httptest.NewRequest(http.MethodPost, "https://example.com/?"+query, nil)
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	if res.StatusCode != http.StatusOK {
		b.Errorf("%s: %s", res.Status, w.Body)
	}
	if set := res.Cookies(); len(set) > 0 {
		return set[0]
	}
	return cookie
}
