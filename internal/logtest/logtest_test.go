package logtest_test

import (
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/logtest"
)

func TestLinesContainAllTexts(t *testing.T) {
	t.Parallel()
	var log logtest.Buffer
	log.Logger().Info("one", "a", 1, "b", 2)
	log.Logger().Debug("two", "a", 1)
	for _, test := range []struct {
		texts []string
		want  int
	}{{nil, 2}, {[]string{"a=1"}, 2}, {[]string{"a=1", "b=2"}, 1}, {[]string{"a=2"}, 0}} {
		if got := log.Lines(test.texts...); len(got) != test.want {
			t.Errorf("Lines(%q) = %q, want %d", test.texts, got, test.want)
		}
	}
	if all := log.Lines(); len(all) == 2 && slices.Equal(all, log.Lines("level=")) && log.String() == all[0]+all[1] {
		return
	}
	t.Errorf("the log is %q, its lines %q", log.String(), log.Lines())
}
