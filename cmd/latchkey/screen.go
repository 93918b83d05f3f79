package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// Codes of terminals.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, no cursor, and the terminal does not break long lines
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor on
	clearBelow  = "\x1b[J"
)

// A screen shows pictures on a terminal, one in place of the other. Until it is closed, the terminal's own content is
// set aside.
type screen struct {
	*job
	terminal    *os.File
	cancel      func()        // ends the command
	keys        *term.State   // of stdin before; nil: stdin is not a terminal
	stop        chan struct{} // gets Ctrl-Z
	shown, note string        // the picture, and what is wrong
	painted     string        // what is on the screen
	width       int           // of the terminal, when that was painted
	height      int
}

// openScreen returns nil if stdout is no terminal that knows the codes, or the output is for programs.
func (j *job) openScreen() *screen {
	terminal, ok := j.out.stdout.(*os.File)
	if !ok || j.json || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(terminal.Fd())) {
		return nil
	}
	ctx, cancel := context.WithCancel(j.ctx)
	j.ctx = ctx
	s := &screen{job: j, terminal: terminal, cancel: cancel, stop: make(chan struct{}, 1)}
	s.keys, _ = term.GetState(int(os.Stdin.Fd()))
	s.enter()
	if s.keys != nil {
		go s.obeyKeys()
	}
	return s
}

// enter sets the terminal's own content aside.
func (s *screen) enter() {
	if s.keys != nil {
		_, _ = term.MakeRaw(int(os.Stdin.Fd()))
	}
	_, _ = s.terminal.WriteString(enterScreen)
	s.painted = ""
}

// leave brings the terminal's own content back.
func (s *screen) leave() {
	_, _ = s.terminal.WriteString(leaveScreen)
	if s.keys != nil {
		_ = term.Restore(int(os.Stdin.Fd()), s.keys)
	}
}

func (s *screen) close() {
	s.cancel()
	s.leave()
}

// obeyKeys ends the command by q, or by Ctrl-C or Ctrl-\, and stops it by Ctrl-Z. All of these are ordinary keys now. Other
// keys do nothing, and are not shown.
func (s *screen) obeyKeys() {
	const ctrlC, ctrlZ, ctrlBackslash = 3, 26, 28
	for key := make([]byte, 1); ; {
		if n, err := os.Stdin.Read(key); n == 0 || err != nil {
			return
		}
		switch key[0] {
		case 'q', ctrlC, ctrlBackslash:
			s.cancel()
		case ctrlZ:
			select {
			case s.stop <- struct{}{}:
			default: // it is about to stop
			}
		}
	}
}

// live is job.live on a terminal, after the first look. The error of the last look was on the screen, which will be gone.
func (s *screen) live(count int, p picture, look func() (picture, error)) (complete bool, _ error) {
	type outcome struct {
		picture
		err error
	}
	s.shown = p.text
	var next outcome
	for n := 1; ; n++ {
		err := s.paintFor(time.After(time.Second))
		switch {
		case n == count:
			return true, cmp.Or(err, next.err)
		case err != nil || s.ctx.Err() != nil:
			return false, err
		}
		seen := make(chan time.Time)
		go func() {
			defer close(seen)
			next.picture, next.err = look()
		}()
		if err := s.paintFor(seen); err != nil {
			return false, err
		}
		<-seen
		if s.ctx.Err() != nil {
			return false, nil
		}
		if next.err == nil {
			s.shown, s.note = next.text, ""
		} else {
			s.note = "latchkey: " + printable(next.err.Error()) + "; the above is older"
		}
	}
}

// paintFor paints the picture, and paints it again whenever the size of the terminal changes, until done or the end of
// the command.
func (s *screen) paintFor(done <-chan time.Time) error {
	resized := time.NewTicker(100 * time.Millisecond)
	defer resized.Stop()
	for {
		if err := s.paint(); err != nil {
			return err
		}
		select {
		case <-done:
			return nil
		case <-s.ctx.Done():
			return nil
		case <-s.stop:
			s.leave()
			stopJob()
			select {
			case <-s.stop: // pressed twice
			default:
			}
			s.enter()
		case <-resized.C:
		}
	}
}

// paint paints the picture, unless it is on the screen already.
func (s *screen) paint() error {
	width, height := sizeOf(s.terminal)
	picture := painted(fitted(s.shown, s.note, width, height))
	if picture == s.painted && width == s.width && height == s.height {
		return nil
	}
	s.painted, s.width, s.height = picture, width, height
	_, err := s.terminal.WriteString(picture)
	return err
}

// painted returns the text that paints lines. There is no line feed after the last line, since it would scroll a full
// screen.
func painted(lines []string) string {
	return cursorHome + strings.Join(lines, clearLine+"\r\n") + clearLine + clearBelow
}

// fitted returns the lines of text that fit, and a note below them, if there is one. Long lines are continued in further
// ones, and then shown whole, or left out. If lines of the text are left out, the last line says how many.
func fitted(text, note string, width, height int) []string {
	var all [][]string // the lines of the text, each in parts that fit
	var last []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		all = append(all, continued(line, width))
	}
	if note != "" {
		last = continued(note, width)
	}
	lines := slices.Concat(all...)
	if room := height - len(last); len(lines) > room {
		lines = nil
		for len(lines)+len(all[0])+1 <= room {
			lines, all = append(lines, all[0]...), all[1:]
		}
		last = append([]string{plural(int64(len(all)), "more line")}, last...)
	}
	lines = append(lines, last...)
	lines = lines[max(0, len(lines)-height):]
	for i, line := range lines {
		lines[i] = firstColumns(line, width)
	}
	return lines
}
