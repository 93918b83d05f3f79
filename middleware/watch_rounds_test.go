package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func sessionsOn(tb testing.TB, st *store.Store) *Sessions {
	tb.Helper()
	s, err := New(st, Options{Keys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// enters makes a request enter, as if it had opened the session with an ID.
func enters(s *Sessions, id string) *request {
	rq := &s.newResponse(httptest.NewRecorder(), new(http.Request), Exclusive, "").request
	rq.context.Context, rq.context.request = context.Background(), rq
	rq.origin = locked
	rq.identity.setID(id)
	rq.watch()
	return rq
}

// There are rounds only while requests are there, and none after the store was closed. Nothing is left of the watch.
func TestRoundsEndWithTheLastRequestAndWithTheStore(t *testing.T) {
	t.Parallel()
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprintf("the store is closed: %v", closes), func(t *testing.T) {
			t.Parallel()
			redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
				st := store.New(r.Pool(t, 2), store.Options{})
				s := sessionsOn(t, st)
				h := s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					session.FromContext(r.Context()).Set("n", 1)
					w.(http.Flusher).Flush()
					redistest.Elapse(10*time.Second + time.Millisecond)
					if n := s.watch.rounds.Load() % 40; n != 0 {
						t.Errorf("%d rounds more or less in 10 s", n)
					}
					if closes {
						if err := st.Close(); err != nil {
							t.Error(err)
						}
					}
					redistest.Elapse(time.Second)
				}))
				for range 2 {
					if s.watch.on.Load() {
						t.Error("the watch is on, and no request is watched")
					}
					serveTo(t, h)
					was := s.watch.rounds.Load()
					redistest.Elapse(time.Minute)
					if more := s.watch.rounds.Load() - was; more > 1 || more > 0 && closes {
						t.Errorf("%d rounds more", more)
					}
					if closes {
						return
					}
					s.watch.rounds.Store(0)
				}
			})
		})
	}
}

func serveTo(t *testing.T, h http.Handler) {
	t.Helper()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
}

// Each request that has entered and not left is asked for once a second, but not before its last answer has come. No
// other request is asked for. That holds in whatever order requests come and go, and when the number of rounds wraps
// around.
func TestWhoIsDue(t *testing.T) {
	t.Parallel()
	s := sessionsOn(t, store.New(redistest.Embedded(t).Pool(t, 1), store.Options{}))
	s.watch.on.Store(true) // the rounds of this test are the only ones
	s.watch.rounds.Store(math.MaxUint32 - 50)
	type state struct {
		entered, next int
		silent        bool // it gets no answer
	}
	there := make(map[*request]*state)
	out := make(map[*request]int)
	unanswered := make(map[*request]watchEntry)
	for round := range 200 {
		for range rand.IntN(5) {
			there[enters(s, fmt.Sprint("ID of round ", round))] = &state{entered: round, next: round + watchPeriod + 1, silent: rand.IntN(10) == 0}
		}
		for rq := range there {
			switch rand.IntN(20) {
			case 0:
				rq.leaveWatch()
				rq.watch() // it does not come back
				delete(there, rq)
				delete(out, rq)
				delete(unanswered, rq)
			case 1:
				rq.stepOut()
				out[rq]++
			case 2:
				rq.watch() // that alone does not make it step in
				if out[rq] > 0 {
					rq.stepIn(false)
					out[rq]--
				}
			}
		}
		due := make(map[*request]bool)
		for _, e := range s.watch.due(s.watch.rounds.Add(1)) {
			if _, asked := unanswered[e.rq]; asked || due[e.rq] || there[e.rq] == nil || out[e.rq] > 0 || round+1 < there[e.rq].next {
				t.Errorf("round %d: %+v is due, %+v", round, e.rq.watched, there[e.rq])
			}
			due[e.rq] = true
			there[e.rq].next = round + 1 + watchPeriod
			unanswered[e.rq] = e
		}
		for rq, is := range there {
			if _, asked := unanswered[rq]; !asked && !due[rq] && out[rq] == 0 && round+1 >= is.next {
				t.Errorf("round %d: %+v is not due, %+v", round, rq.watched, is)
			}
		}
		for rq, e := range unanswered {
			if !there[rq].silent && rand.IntN(4) != 0 {
				s.watch.answered(e)
				delete(unanswered, rq)
			}
		}
	}
}

// An answer counts only if the request is there with the ID that was asked for.
func TestAnAnswerThatComesLate(t *testing.T) {
	t.Parallel()
	s := sessionsOn(t, store.New(redistest.Embedded(t).Pool(t, 1), store.Options{}))
	s.watch.on.Store(true)
	for name, test := range map[string]struct {
		meanwhile func(*request)
		counts    bool
	}{
		"nothing":        {func(*request) {}, true},
		"it has left":    {func(rq *request) { rq.leaveWatch() }, false},
		"it ends itself": {func(rq *request) { rq.stepOut() }, false},
		"it has ended":   {func(rq *request) { rq.stepOut(); rq.stepIn(true) }, false},
		"a new ID":       {func(rq *request) { rq.stepOut(); rq.identity.setID("new"); rq.watch(); rq.stepIn(false) }, false},
		"another's end":  {func(rq *request) { rq.stepOut(); rq.stepIn(false) }, true},
	} {
		rq := enters(s, "old")
		other := enters(s, "other")
		asked := watchEntry{rq: rq, id: "old"}
		test.meanwhile(rq)
		if counts := s.watch.follow(asked, "old"); counts != test.counts {
			t.Errorf("%s: an answer counts: %v", name, counts)
		}
		other.leaveWatch()
		rq.leaveWatch()
	}
	if !s.watch.isEmpty() {
		t.Error("a request is still watched")
	}
}

// P7: if a context of the application panics when the watch ends it, the Logger of its Sessions gets a line, and neither
// this panic nor one of the Logger ends the process.
func TestAContextThatPanicsAtTheEnd(t *testing.T) {
	t.Parallel()
	st := store.New(redistest.Embedded(t).Pool(t, 1), store.Options{})
	var log logtest.Buffer
	for _, logger := range []*slog.Logger{log.Logger(), new(slog.Logger)} {
		s := sessionsOn(t, st)
		s.options.Logger = logger
		s.watch.on.Store(true)
		rq := enters(s, "AAAAAAAAAAAAAAAAAAAAAA") // which is not stored
		rq.base = rq.base.WithContext(t.Context())
		rq.context.Context = panicContext{t.Context()}
		s.watch.askFor(watchEntry{rq: rq, id: rq.identity.knownID()})
	}
	if len(log.Lines("has panicked", "no such context")) != 1 {
		t.Errorf("log:\n%s", &log)
	}
}

type panicContext struct{ context.Context }

func (panicContext) Done() <-chan struct{} { panic("no such context") }

// Entering and leaving allocates nothing. (The test is not parallel: other tests' allocations would be counted.)
func TestToBeWatchedForAMomentAllocatesNothing(t *testing.T) {
	s := sessionsOn(t, store.New(redistest.Embedded(t).Pool(t, 1), store.Options{}))
	rq := enters(s, "AAAAAAAAAAAAAAAAAAAAAA")
	if n := testing.AllocsPerRun(1000, func() {
		rq.leaveWatch()
		rq.watched.at = 0
		rq.watch()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	rq.leaveWatch()
}

// BenchmarkWatched measures what each request pays: it enters and leaves.
func BenchmarkWatched(b *testing.B) {
	s := sessionsOn(b, store.New(redistest.Embedded(b).Pool(b, 1), store.Options{}))
	rq := enters(s, "AAAAAAAAAAAAAAAAAAAAAA")
	b.ReportAllocs()
	for b.Loop() {
		rq.leaveWatch()
		rq.watched.at = 0
		rq.watch()
	}
	rq.leaveWatch()
}

// BenchmarkRound measures a round for 10,000 requests of 10,000 users, all of which are due: what it costs Redis, and
// what it costs this process.
func BenchmarkRound(b *testing.B) {
	for _, users := range []bool{true, false} {
		b.Run(fmt.Sprintf("users=%v", users), func(b *testing.B) { benchmarkRound(b, 10_000, users) })
	}
}

func benchmarkRound(b *testing.B, n int, users bool) {
	r := redistest.Real(b)
	st, err := store.Open(r.URL, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s := sessionsOn(b, st)
	var all []watchEntry
	for i := range n {
		id, record := fmt.Sprintf("%022d", i), records.Record{Data: make([]byte, 400), Created: time.Now()}
		if users {
			record.User = fmt.Sprint("user", i)
			tag := s.store.Tag(record.User)
			id = tagged(tag[:], id[11:]+id[:11])
		}
		if err := s.store.CreateRecord(b.Context(), id, record, s.terms); err != nil {
			b.Fatal(err)
		}
		all = append(all, watchEntry{rq: enters(s, id), id: id})
	}
	s.watch.on.Store(true)
	used := func() (redis, own time.Duration) {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return redisCPU(b, r), time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	s.watch.ask(all) // connects
	b.ReportAllocs()
	redis, own := used()
	for b.Loop() {
		s.watch.ask(all)
	}
	redisAfter, ownAfter := used()
	b.ReportMetric(float64((redisAfter-redis).Microseconds())/float64(b.N)/1000, "redis-ms/round")
	b.ReportMetric(float64((ownAfter-own).Microseconds())/float64(b.N)/1000, "own-ms/round")
	for _, e := range all {
		e.rq.leaveWatch()
	}
	runtime.KeepAlive(all)
}

// redisCPU returns the processor time that Redis has used.
func redisCPU(b *testing.B, r *redistest.Server) (all time.Duration) {
	b.Helper()
	for _, found := range regexp.MustCompile(`used_cpu_(?:user|sys):([\d.]+)`).FindAllSubmatch(r.Do(b, "INFO", "cpu").([]byte), -1) {
		seconds, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		all += time.Duration(seconds * float64(time.Second))
	}
	return all
}

// A request that enters while the last one leaves is watched: the round that finds nobody looks once more.
func TestARequestEntersAsTheRoundsEnd(t *testing.T) {
	t.Parallel()
	s := sessionsOn(t, store.New(redistest.Embedded(t).Pool(t, 1), store.Options{}))
	w := s.watch
	w.timer = time.AfterFunc(time.Hour, func() {}) // the rounds are made here
	defer w.timer.Stop()
	for i := range 20_000 {
		w.on.Store(true)
		entered := make(chan *request, 1)
		go func() { entered <- enters(s, "id") }()
		w.goOn(time.Now())
		rq := <-entered
		if !w.on.Load() {
			t.Fatalf("try %d: a request is there, and no round will come", i)
		}
		rq.leaveWatch()
	}
}

// A question about an old ID that is under way does not keep the watch from asking about the new one.
func TestANewIDIsAskedForAtOnce(t *testing.T) {
	t.Parallel()
	s := sessionsOn(t, store.New(redistest.Embedded(t).Pool(t, 1), store.Options{}))
	s.watch.timer = time.AfterFunc(time.Hour, func() {})
	defer s.watch.timer.Stop()
	rq := enters(s, "old")
	defer rq.leaveWatch()
	later := s.watch.rounds.Load() + 10*watchPeriod
	if n := len(s.watch.due(later)); n != 1 {
		t.Fatalf("%d requests are due", n)
	}
	rq.identity.setID("new")
	rq.watch()
	if all := s.watch.due(later + watchPeriod); len(all) != 1 || all[0].id != "new" {
		t.Errorf("due are %v", all)
	}
}
