// Command clusterapp is like the demo, for the fault suite: the same sessions at the same paths, but on a
// Redis Cluster or on servers that sentinels watch, through a client that the demo does not know. It also has streams
// and observers.
package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A config is the command line.
type config struct {
	client          string
	addrs           []string // of some nodes, or of the sentinels
	master          string   // its name, for sentinels; "": a cluster
	key             []byte
	lease, lockWait time.Duration
	timeout         time.Duration // of a round trip
	work            time.Duration
	ttl             time.Duration
	maxSessions     int
	events          string // the file for them; "": there are no observers
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clusterapp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var c config
	at := flag.String("addr", "127.0.0.1:0", "listen on this `address`")
	key := flag.String("key", "", "signing `key` in hex")
	addrs := flag.String("redis", "", "`addresses` of nodes, or of sentinels, separated by commas")
	flag.StringVar(&c.client, "client", "rueidis", "use this `client`: rueidis or goredis, or redigo for one server")
	flag.StringVar(&c.master, "master", "", "ask sentinels for the master of this `name`")
	flag.DurationVar(&c.lease, "lease", 10*time.Second, "how long a killed process keeps a session locked")
	flag.DurationVar(&c.lockWait, "lock-wait", 10*time.Second, "longest wait for a session")
	flag.DurationVar(&c.timeout, "timeout", 0, "longest time for an exchange with Redis; 0: the store's default")
	flag.DurationVar(&c.work, "work", 0, "how long each /set holds its session")
	flag.DurationVar(&c.ttl, "ttl", 0, "idle timeout; 0: the default")
	flag.IntVar(&c.maxSessions, "max-sessions", 0, "how many sessions a user may have; 0: any number")
	flag.StringVar(&c.events, "events", "", "write to this `file` what observers are told")
	flag.Parse()
	c.addrs = strings.Split(*addrs, ",")
	var err error
	if c.key, err = hex.DecodeString(*key); err != nil {
		return err
	}
	st, err := open(c)
	if err != nil {
		return err
	}
	defer st.Close()
	handler, err := newApp(c, st, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *at)
	if err != nil {
		return err
	}
	fmt.Printf("Cluster app: http://%s/\n", l.Addr())
	return serve(ctx, l, handler, c.lockWait+c.work+5*time.Second)
}

// serve listens until ctx ends, and then waits for the requests that have begun.
func serve(ctx context.Context, l net.Listener, handler http.Handler, patience time.Duration) error {
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		drained <- srv.Shutdown(ctx)
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}

// newApp returns the endpoints of the demo that visitors use; see newApp there.
func newApp(c config, st *store.Store, log *slog.Logger) (http.Handler, error) {
	observers, err := observers(c.events)
	if err != nil {
		return nil, err
	}
	o := middleware.Options{
		Keys:     [][]byte{c.key},
		TTL:      c.ttl,
		LockWait: c.lockWait,
		MaxHold:  max(time.Minute, c.work+10*time.Second),
		Cookie:   http.Cookie{Name: "latchkey-demo"}, // plain HTTP: no __Host-, no Secure
		Logger:   log,

		MaxSessions: c.maxSessions,
		Observers:   observers,
		Mode: func(r *http.Request) middleware.Mode {
			if r.Method == http.MethodGet {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		},
	}
	if c.events != "" {
		o.Label = number // so that an event shows behind which request another has waited
	}
	s, err := middleware.New(st, o)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, *session.Session){
		"POST /set":    set(c.work),
		"POST /incr":   incr,
		"POST /reset":  reset,
		"POST /login":  login,
		"POST /logout": logout,
		"GET /params":  params,
		"GET /count":   count,
		"GET /stream":  stream,
	} {
		mux.Handle(pattern, s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handle(w, r, session.FromContext(r.Context()))
		})))
	}
	mux.HandleFunc("POST /end", end(s))
	mux.HandleFunc("POST /end-all", endAll(s))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := st.Ping(r.Context()); err != nil {
			log.Error("Redis does not reply", "error", err)
			http.Error(w, "Redis does not reply.", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return numbered(mux), nil
}

func set(work time.Duration) func(http.ResponseWriter, *http.Request, *session.Session) {
	return func(w http.ResponseWriter, r *http.Request, s *session.Session) {
		name := cmp.Or(r.PostFormValue("name"), "none")
		select { // instead of a real handler's work
		case <-time.After(work):
		case <-r.Context().Done():
		}
		s.Set("param_"+name, 1)
		fmt.Fprintln(w, "ok")
	}
}

func incr(w http.ResponseWriter, _ *http.Request, s *session.Session) {
	n, _ := session.Get[int](s, "n") // absent is 0
	s.Set("n", n+1)
	fmt.Fprintln(w, n+1)
}

func count(w http.ResponseWriter, _ *http.Request, s *session.Session) {
	n, _ := session.Get[int](s, "n") // absent is 0
	fmt.Fprintln(w, n)
}

func reset(w http.ResponseWriter, _ *http.Request, s *session.Session) {
	s.Clear()
	s.Set("since", time.Now()) // an empty session would not be stored
	w.WriteHeader(http.StatusNoContent)
}

func login(w http.ResponseWriter, r *http.Request, s *session.Session) {
	if user := r.FormValue("user"); user != "" {
		s.Login(user)
	} else {
		s.Renew()
	}
	s.Set("user", "demo")
	w.WriteHeader(http.StatusNoContent)
}

func logout(w http.ResponseWriter, _ *http.Request, s *session.Session) {
	s.Destroy()
	w.WriteHeader(http.StatusNoContent)
}

func params(w http.ResponseWriter, _ *http.Request, s *session.Session) {
	names := []string{} // not null in JSON
	for key := range s.Keys() {
		if name, ok := strings.CutPrefix(key, "param_"); ok {
			names = append(names, name)
		}
	}
	_ = json.NewEncoder(w).Encode(names) // strings only; the client may have gone
}
