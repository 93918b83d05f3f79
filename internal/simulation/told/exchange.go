package told

import (
	"cmp"
	"slices"

	"github.com/a2139e8d/latchkey/middleware"
)

// exchanges judges that each exchange is told once, with the request that has made it.
func (j *judge) exchanges() {
	const rule = "each exchange is told once"
	type key struct {
		Mark
		began    int64
		took     int64
		command  string
		commands int
	}
	made, told := make(map[key]int), make(map[key]int)
	for _, x := range j.Exchanges {
		if x.Ended.IsZero() {
			j.broken(rule, nil, "an exchange has not ended: %+v", x)
			continue
		}
		made[key{x.Mark, int64(x.Began.Sub(j.Began)), int64(x.Ended.Sub(x.Began)), x.Command, x.Commands}]++
	}
	for _, e := range j.Events {
		if x, ok := e.What.(*middleware.ExchangeEvent); ok {
			told[key{e.Mark, int64(x.Began.Sub(j.Began)), int64(x.Took), x.Command, x.Commands}]++
		}
	}
	var wrong []key
	for k, n := range made {
		if told[k] != n {
			wrong = append(wrong, k)
		}
	}
	for k := range told {
		if made[k] == 0 {
			wrong = append(wrong, k)
		}
	}
	slices.SortFunc(wrong, func(a, b key) int { return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.Request, b.Request)) })
	for _, k := range wrong {
		j.broken(rule, j.byNumber[k.Request], "%+v was made %d times, and told %d times", k, made[k], told[k])
	}
	for _, r := range j.requests {
		if r.event != nil && r.event.RoundTrips != len(r.exchanges) {
			j.broken("a request's exchanges are counted", r, "%d were told, %d are counted", len(r.exchanges), r.event.RoundTrips)
		}
	}
}
