// Package differential compares handlers that run inside the sessions with the same handlers
// without them. To HTTP the sessions should make no difference: the same bytes arrive at the
// client, the same values and errors at the handler, the same lines in the server's log.
//
// Each case is a handler and a request. It runs over HTTP/1.0, HTTP/1.1 and HTTP/2; first without
// the sessions, then in each mode, with and without a session. That takes long: without the flag
// -all, one variant is run over each protocol, and another over HTTP/1.1. make test does both.
//
// An exchange becomes a transcript of plain lines, which are compared. One rule, in differences_test.go,
// computes what the sessions mean to add to an answer, from the answer without them. All other
// differences are listed in difference_list_test.go, each with its reason. A difference that is not
// listed is a failure, and so is a listed one that does not occur.
package differential

// Where things are:
//
//	differential_test.go     runs the cases, and reports what differs
//	cases_test.go            what a case is; all files whose names begin with case_ have some
//	exchange_test.go         one run: a server for one connection, and what its handler saw
//	connection_test.go       the connection, and the bytes that have arrived on it
//	site_test.go             the ways to run a case: without the sessions, and in each mode
//	client_test.go           the clients: for HTTP/1.0 and 1.1, which sees each byte, and for HTTP/2
//	differences_test.go      an exchange as lines, the rule for what the sessions add to them, and
//	                         how they are compared
//	difference_list_test.go  the list of the differences that remain

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)                                 // thousands of servers come and go
	if err := flag.Set("test.parallel", "12"); err != nil { // many cases mostly wait
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var (
	show = flag.Bool("show", false, "log the transcripts of all cases that are run, as they are without sessions")
	all  = flag.Bool("all", false, "run all variants, over all protocols")
)

// at limits how many exchanges run at once: most of the slow ones only wait.
var at = make(chan struct{}, 24)

func TestSessionsMakeNoDifference(t *testing.T) {
	checkList(t)
	site := newSite(t)
	b := newBackend()
	t.Cleanup(b.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	backend.Store(b)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compare(t, site, c)
		})
	}
}

// compare runs a case in all ways, and reports each difference once, with all the runs that have
// it.
func compare(t *testing.T, site *site, c testCase) {
	var mu sync.Mutex
	found := make(map[string]map[string][]string) // what differs: in which variant: over what
	var runs sync.WaitGroup
	for _, p := range protocols {
		if !c.runsOn(p) {
			continue
		}
		runs.Go(func() {
			without := site.run(c, without, p)
			if *show {
				t.Logf("%s\n%s", p, strings.Join(without.lines(), "\n"))
			}
			for _, v := range variants {
				if !*all && !slices.Contains(v.most, p) {
					continue
				}
				runs.Go(func() {
					with := site.run(c, v, p)
					d := diff(v.expected(without, c.session).lines(), with.lines())
					problem := unexplained(c.name, v, p, d)
					if problem == "" {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if found[problem] == nil {
						found[problem] = make(map[string][]string)
					}
					found[problem][v.name] = append(found[problem][v.name], string(p))
				})
			}
		})
	}
	runs.Wait()
	for _, problem := range slices.Sorted(maps.Keys(found)) {
		where := make(map[string][]string) // over what: in which variants
		for name, over := range found[problem] {
			slices.Sort(over)
			key := strings.Join(over, ", ")
			where[key] = append(where[key], name)
		}
		report := "\"" + c.name + "\" differs with sessions (- without, + with):\n" + problem
		for _, over := range slices.Sorted(maps.Keys(where)) {
			slices.Sort(where[over])
			report += fmt.Sprintf("\n\tover %s: %s", over, strings.Join(where[over], "; "))
		}
		t.Error(report)
	}
}
