package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// contend makes two processes set one value after another in the same session, holding it
// for the demos' -work each time, while enough makes both hold it at once; enough returns
// whether that has happened often enough. All that was answered must be there in the end.
func (s *scene) contend(enough func() bool) {
	s.Helper()
	g := s.guest(s.demos[0])
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	var writers sync.WaitGroup
	answered := make([][]string, len(s.demos))
	for i, d := range s.demos {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if name := fmt.Sprint(i, "-", n); g.set(d, name).status == 200 {
					answered[i] = append(answered[i], name)
				}
			}
		})
	}
	eventually(s.T, 10*time.Second, "two processes have had the lock", enough)
	stop()
	writers.Wait()
	all := slices.Concat(answered...)
	found := g.get(s.demos[0], "/params").text
	for _, name := range all {
		if !strings.Contains(found, `"`+name+`"`) {
			s.Errorf("%s was answered, and is lost", name)
		}
	}
	s.seen = fmt.Sprintf("%d holders noticed that they had lost the lock, %d others were answered and their writes kept", s.logged("lock was lost"), len(all))
}
