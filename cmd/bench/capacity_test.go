package main

import (
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestCapacity(t *testing.T) {
	results := []*result{
		resultOf(t, "spread", 4, map[string][]sample{
			app.Latchkey: {{redisCPU: 30}, {redisCPU: 12.5}, {redisCPU: 10}},
			app.SCS:      {{redisCPU: 17.3}},
			app.Floor:    {{redisCPU: 0}},
		}),
		resultOf(t, "hot", 1, map[string][]sample{app.Latchkey: {{redisCPU: 1}}, "gorilla": {{redisCPU: 1}}}),
		resultOf(t, "read", 1, map[string][]sample{app.Latchkey: {{redisCPU: 4}}, app.SCS: nil}),
	}
	const want = `
## When Redis is full

| requests per second (Redis's µs for each) | spread, 4 processes | read, 1 process |
|---|--:|--:|
| Latchkey | 80000 (12.5) | 250000 (4.00) |
| scs + goredisstore | 57800 (17.3) | – |
`
	if got := capacity(results); got != want {
		t.Errorf("the table is\n%s\nit must be\n%s", got, want)
	}
	if got := capacity(results[1:2]); got != "" {
		t.Errorf("neither workload was measured, but the table is\n%s", got)
	}
}
