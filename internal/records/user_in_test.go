package records

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// UserIn reads the user from the beginning of a record, or from all of a sealed one. It reveals nothing of a
// record that is cut off, copied to another key, or sealed with another key.
func TestTheUserInARecord(t *testing.T) {
	const user = "Ann \"\x1b[2J\" Zürich"
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		for name, e := range map[string]Encryption{"plain": {}, "sealed": {Keys: [][]byte{newKey, oldKey}}} {
			st := by(t, s, e)
			id := login(t, st, user, 1)
			text, _ := s.Get(t, st.recordKey(id))
			got, err := st.UserIn(id, []byte(text))
			if got != user || err != nil {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if got, err := st.UserIn(id, []byte(text[:len(text)-len("0]}")])); name == "plain" && (got != user || err != nil) {
				t.Errorf("its beginning: %q, %v", got, err)
			}
			_, err = st.UserIn(id, []byte(text[:len(text)-10]))
			wantError(t, name+", cut off", err, ErrCorrupt)
			_, err = st.UserIn(idOf(st, user, 2), []byte(text))
			wantError(t, name+", copied", err, ErrCorrupt)
			_, err = by(t, s, Encryption{Keys: [][]byte{oldKey}}).UserIn(id, []byte(text))
			wantError(t, name+", by others", err, ErrCorrupt)
			s.Do(t, "FLUSHALL")
		}
	})
}
