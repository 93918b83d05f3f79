package model_test

import (
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/model"
)

// breaks are rules that the modelled client follows, broken on purpose: the exploration must notice. The rules of
// the scripts are broken in the catalogue of internal/defects.
var breaks = []struct {
	name     string
	switches model.Switches
	work     string
	want     string // part of the violation's text
}{
	{
		name:     "who leaves the line takes the place of its process along",
		switches: model.Switches{QuitAlways: true},
		work:     "wtw",
		want:     "is dropped",
	},
	{
		name:     "a place does not ask by itself",
		switches: model.Switches{OnlyWhenTold: true},
		work:     "wtw",
		want:     "is never answered",
	},
	{
		name:     "a take believes the reply to SET",
		switches: model.Switches{TrustSet: true},
		work:     "wtw",
		want:     "has not the lock",
	},
	{
		name:     "a take reads the record before it has the lock",
		switches: model.Switches{ReadFirst: true},
		work:     "wtw",
		want:     "and the record is",
	},
	{
		name:     "a take reads the record, and then looks at the lock",
		switches: model.Switches{ReadApart: true},
		work:     "wtw",
		want:     "and the record is",
	},
	{
		name:     "a plain take does not know a tombstone",
		switches: model.Switches{TakeTombstones: true},
		work:     "dww",
		want:     "an ended ID has come back",
	},
	{
		name:     "all large records are staged at one key",
		switches: model.Switches{StageTogether: true},
		work:     "lll",
		want:     "is told done, and nothing is stored",
	},
	{
		name:     "a copy of it is not known under the lock",
		switches: model.Switches{ForgetOwn: true},
		work:     "wto",
		want:     "has written twice",
	},
	{
		name:     "who hands over is answered before the commit",
		switches: model.Switches{AnswerEarly: true},
		work:     "wtw",
		want:     "nothing is stored",
	},
	{
		name:     "a version that was never stored is shown",
		switches: model.Switches{JoinedReadsVoid: true},
		work:     "wtw",
		want:     "which was not stored while it was there",
	},
	{
		name:     "a tenure does not know what it has written",
		switches: model.Switches{KeepBase: true},
		work:     "wtw",
		want:     "nothing was wrong",
	},
}

func TestBreaks(t *testing.T) {
	s := scripts(t)
	for _, b := range breaks {
		t.Run(b.name, func(t *testing.T) {
			found := model.New(s, one, b.switches).Explore(b.work)
			if found.Violation == "" {
				found = model.New(s, two, b.switches).Explore(b.work)
			}
			if !strings.Contains(found.Violation, b.want) {
				t.Fatalf("in %d states this was found:\n%s", found.States, found.Violation)
			}
			t.Logf("after %d states: %s", found.States, found.Violation)
		})
	}
}
