package clustertest

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// BenchmarkRound measures a round of the watch for 10,000 sessions of as many users: what middleware asks once a second,
// 64 questions at once. It reports what that costs the servers, and what this process.
func BenchmarkRound(b *testing.B, st *store.Store, servers ...*redistest.Server) {
	engine, terms := records.Of(st), records.Terms{TTL: time.Hour, Lifetime: 2 * time.Hour}
	ids := make([]string, 10_000)
	atOnce(ids, func(i int) {
		tag := engine.Tag(user(i))
		ids[i] = fmt.Sprintf("%s.%011d", base64.RawURLEncoding.EncodeToString(tag[:]), i)
		record := records.Record{Data: make([]byte, 400), Created: time.Now(), User: user(i)}
		if err := engine.CreateRecord(b.Context(), ids[i], record, terms); err != nil {
			b.Error(err)
		}
	})
	round := func() {
		atOnce(ids, func(i int) {
			if _, err := engine.Alive(b.Context(), ids[i], terms); err != nil {
				b.Error(err)
			}
		})
	}
	round() // connects
	redis, own := serversCPU(b, servers), processCPU()
	for b.Loop() {
		round()
	}
	report := func(used time.Duration, unit string) {
		b.ReportMetric(float64(used.Microseconds())/float64(b.N)/1000, unit)
	}
	report(serversCPU(b, servers)-redis, "redis-ms/round")
	report(processCPU()-own, "own-ms/round")
}

// atOnce does something for each of all, for 64 at once.
func atOnce(all []string, do func(i int)) {
	var doing sync.WaitGroup
	const many = 64
	for k := range many {
		doing.Go(func() {
			for i := k; i < len(all); i += many {
				do(i)
			}
		})
	}
	doing.Wait()
}

func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var cpu = regexp.MustCompile(`used_cpu_(?:user|sys):([\d.]+)`)

func serversCPU(b *testing.B, servers []*redistest.Server) (all time.Duration) {
	b.Helper()
	for _, server := range servers {
		for _, found := range cpu.FindAllSubmatch(server.Do(b, "INFO", "cpu").([]byte), -1) {
			seconds, err := strconv.ParseFloat(string(found[1]), 64)
			if err != nil {
				b.Fatal(err)
			}
			all += time.Duration(seconds * float64(time.Second))
		}
	}
	return all
}
