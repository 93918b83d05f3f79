// Package faults attacks the promises of middleware/PROMISES.md with real processes: the demo, Redis, and
// a wire between them that can be made to fail.
//
// Each fault is a named test. Visitors send requests to several processes of the demo, the fault happens,
// and the responses to the visitors are recorded and checked; see package history. The same is promised
// after each fault: no confirmed write is lost, except writes that Redis itself lost; there is no stale
// write, no revived session, and no data of another session; waits are bounded; no lock outlives its
// lease; no connection is left behind.
//
// The command internal/defects shows that the suite finds broken promises: it runs tests of the suite on
// versions of Latchkey that are broken on purpose.
package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"go.uber.org/goleak"
)

// seed is the seed of all random choices. The same seed makes visitors send the same requests, but cannot
// make the processes interleave in the same way.
var seed uint64

// quick are the tests that run by default: some of each kind, without clusters.
var quick = []string{
	"TestAppKilledAtLoad", "TestAppKilledWithCommitAnswered", "TestAppStoppedWithLateCommit", "TestAppsTerminatedInTurn",
	"TestAppKilledInEndAll", "TestClientsDripBodies", "TestForgedCookies", "TestClockJumpsBackwards", "TestMaxClients",
	"TestQueuesEvicted", "TestOutOfMemory", "TestRedisPausedShortly", "TestPowerCutWithLogAlways", "TestScriptFlush",
	"TestRedisFlapping", "TestFlushAll", "TestReplicaIsRefused", "TestFailoverToLaggingReplica", "TestRedlockNodesKilled",
	"TestWireCut", "TestWireBlackHole", "TestWirePartition", "TestWireRandomLosses", "TestWireRepeatsOnOneConnection",
	"TestStreamsOverABadNetwork", "TestStreamsThroughAFailover", "TestObserversAreToldTheTruth",
}

const leftOut = "a quick slice: %d tests, shortened. Left out are all others, such as those of clusters and Sentinel: -all runs everything\n"

func TestMain(m *testing.M) {
	all := flag.Bool("all", false, "run everything: thirteen minutes, or half of that with -short")
	flag.Uint64Var(&seed, "seed", rand.Uint64(), "what the visitors' requests are drawn from")
	results := flag.String("markdown", "", "write the table to this `file`, too")
	flag.Parse()
	if chosen := flag.Lookup("test.run").Value.String() != ""; !chosen && !*all {
		for name, value := range map[string]string{"test.run": "^(" + strings.Join(quick, "|") + ")$", "test.short": "true", "test.parallel": "4"} {
			_ = flag.Set(name, value) // these flags exist
		}
		fmt.Printf(leftOut, len(quick))
	} else if chosen {
		*all = false
	}
	begun := time.Now()
	go watchMachine()
	goleak.VerifyTestMain(m,
		goleak.IgnoreCurrent(),
		goleak.Cleanup(func(code int) {
			fmt.Printf("\n-seed %d\n", seed)
			if !printTable(os.Stdout, *all) {
				code = max(code, 1)
			}
			if *results != "" {
				if err := writeResults(*results, time.Since(begun)); err != nil {
					fmt.Println(err)
					code = max(code, 1)
				}
			}
			demotest.Clean()
			os.Exit(code)
		}))
}
