package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A table has a row for each peer. One that has stalled has no figures. What a peer adds to the floor is
// taken within each round, and the floor is not said to lose anything.
func TestTable(t *testing.T) {
	hot := resultOf(t, "hot", 2, map[string][]sample{
		app.Latchkey:    {{crowd: 10, perSecond: 10000, writes: 100, kept: 100}, {crowd: 12, perSecond: 9000, writes: 100, kept: 100}},
		app.SCS:         {{crowd: 20, perSecond: 5000, writes: 100, kept: 4}, {crowd: 20, perSecond: 5000, writes: 100, kept: 4}},
		app.Rueidislock: nil,
	})
	hot.peers[2].err = errors.New("stalled 2 times")
	lone := resultOf(t, "lone", 1, map[string][]sample{
		app.Latchkey: {{p50: 3, appCPU: 40, redisCPU: 20, writes: 9, kept: 9}, {p50: 6, appCPU: 80, redisCPU: 40, writes: 9, kept: 9}},
		"gorilla":    nil,
		app.Floor:    {{p50: 1, appCPU: 10, writes: 9, kept: 3}, {p50: 2, appCPU: 20, writes: 9, kept: 3}},
	})
	for _, tt := range []struct {
		*result
		rows string
	}{
		{hot, `|  | rounds | kept | round, ms | per second | Latchkey ÷ it: round |
|---|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 11.0 | 9500 |  |
| scs + goredisstore, no lock | 2 | 4.00 % | 20.0 | 5000 | **0.55** (0.50–0.60) |
| scs + rueidislock | 0: stalled 2 times | – | – | – | – |`},
		{lone, `|  | rounds | kept | median, ms | Redis, µs | app, µs | added, ms | added CPU, µs | Latchkey ÷ it: median |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 4.50 | 30.0 | 60.0 | 3.00 | 75.0 |  |
| gorilla + redistore, no lock | 0 | – | – | – | – | – | – | – |
| no sessions: the floor | 2 | – | 1.50 | – | 15.0 |  |  | **3.00** (3.00–3.00) |`},
	} {
		if got := tt.table(); !strings.Contains(got, tt.rows) {
			t.Errorf("the table is\n%s\nits rows must be\n%s", got, tt.rows)
		}
	}
}
