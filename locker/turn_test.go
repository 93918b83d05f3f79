package locker

import (
	"testing"
	"time"
)

// A turn is over when others wait and it has had its share, by count or by time; now
// and then it is over although nobody seems to wait; and whenever it was ended.
func TestTurnIsOver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turn  turn
		lasts time.Duration
		want  bool
	}{
		"new":                      {turn{}, 0, false},
		"others wait":              {turn{others: true}, 0, false},
		"almost as often as may":   {turn{others: true, passes: maxPasses - 1}, 0, false},
		"as often as may":          {turn{others: true, passes: maxPasses}, 0, true},
		"almost as long as may":    {turn{others: true}, maxTurn - 1, false},
		"as long as may":           {turn{others: true}, maxTurn, true},
		"often, alone":             {turn{passes: 100 * maxPasses}, 0, false},
		"long, alone":              {turn{passes: 100 * maxPasses}, maxTurnAlone - 1, false},
		"longer, alone":            {turn{}, maxTurnAlone, true},
		"ended":                    {turn{ended: true}, 0, true},
		"ended, while others wait": {turn{ended: true, others: true}, 0, true},
	} {
		began := time.Now()
		tt.turn.began = began
		if over := tt.turn.over(began.Add(tt.lasts)); over != tt.want {
			t.Errorf("%s: over is %v", name, over)
		}
	}
}

// Whoever gets the lock goes on with the turn; that others wait is what was seen last.
func TestTurnGoesOn(t *testing.T) {
	t.Parallel()
	first := turn{began: time.Now(), passes: 3, others: true}
	if next := first.passed(false); next != (turn{began: first.began, passes: 4}) {
		t.Errorf("%+v", next)
	}
}
