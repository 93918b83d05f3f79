package lease

import (
	"testing"
	"time"
)

// A quota is used up when others wait and it has had its share, by count or by time; now
// and then it is over although nobody seems to wait.
func TestQuotaIsOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		quota quota
		lasts time.Duration
		want  bool
	}{
		"new":                    {quota{}, 0, false},
		"others wait":            {quota{others: true}, 0, false},
		"almost as often as may": {quota{others: true, handoffs: maxHandoffs - 1}, 0, false},
		"as often as may":        {quota{others: true, handoffs: maxHandoffs}, 0, true},
		"almost as long as may":  {quota{others: true}, maxTime - 1, false},
		"as long as may":         {quota{others: true}, maxTime, true},
		"often, alone":           {quota{handoffs: 100 * maxHandoffs}, 0, false},
		"long, alone":            {quota{handoffs: 100 * maxHandoffs}, maxTimeAlone - 1, false},
		"longer, alone":          {quota{}, maxTimeAlone, true},
	} {
		began := time.Now()
		tt.quota.began = began
		if over := tt.quota.over(began.Add(tt.lasts)); over != tt.want {
			t.Errorf("%s: over is %v", name, over)
		}
	}
}

// The next holder goes on with the quota; that others wait is what was seen last.
func TestQuotaGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, l := newCrowd(t, 1)
		began := l.quota.began
		l.quota.handoffs, l.quota.others = 3, true
		mustUnlock(t, l) // the exchange finds that nobody else waits
		next := c.holds(0)
		if want := (quota{began: began, handoffs: 4}); next.quota != want {
			t.Errorf("%+v, want %+v", next.quota, want)
		}
		mustUnlock(t, next)
		c.wantRest()
	})
}
