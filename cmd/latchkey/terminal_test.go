package main

import (
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/creack/pty"
	"golang.org/x/term"
)

// A terminal runs a command, and shows what it prints. It knows only the codes that this program prints: any other
// fails the test.
type terminal struct {
	*exec.Cmd
	t            *testing.T
	master, tty  *os.File
	before       *term.State
	shown        chan struct{} // closed when all is shown
	mu           sync.Mutex    // guards all below
	grid         [][]rune
	row, column  int
	scrolled     int
	other        bool // another screen is shown
	cursor, wrap bool
}

// onTerminal starts a command on a terminal of some size.
func onTerminal(t *testing.T, rows, columns int, c *exec.Cmd) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	r := &terminal{Cmd: c, t: t, master: master, tty: tty, shown: make(chan struct{}), cursor: true, wrap: true}
	r.resize(rows, columns)
	if r.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	c.Env = slices.Insert(c.Env, len(os.Environ()), "TERM=xterm") // unless the test has appended another
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go r.show()
	t.Cleanup(func() {
		_ = c.Process.Kill() // unless it has ended; what it has started gets a SIGHUP
		_ = c.Wait()
		tty.Close()
		<-r.shown
		master.Close()
	})
	return r
}

func (r *terminal) resize(rows, columns int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grid = make([][]rune, rows)
	for i := range r.grid {
		r.grid[i] = []rune(strings.Repeat(" ", columns))
	}
	r.row, r.column = 0, 0
	if err := pty.Setsize(r.tty, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		r.t.Fatal(err)
	}
}

var code = regexp.MustCompile(`^\x1b\[(\??[0-9]*)([A-Za-z])`)

// show reads until the terminal is closed.
func (r *terminal) show() {
	defer close(r.shown)
	text := ""
	for b := make([]byte, 4096); ; {
		n, err := r.master.Read(b)
		if err != nil {
			return
		}
		text = r.write(text + string(b[:n]))
	}
}

// write returns the rest, which is incomplete.
func (r *terminal) write(text string) (rest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for text != "" {
		if text[0] == '\x1b' {
			found := code.FindStringSubmatch(text)
			if found == nil {
				if len(text) > 10 {
					r.t.Errorf("it prints %q", text)
				}
				return text
			}
			r.obey(found[1], found[2])
			text = text[len(found[0]):]
			continue
		}
		c := []rune(text[:1])[0]
		if text[0] >= 0x80 {
			if len(text) < 4 {
				return text
			}
			c = []rune(text)[0]
		}
		text = text[len(string(c)):]
		r.put(c)
	}
	return ""
}

func (r *terminal) put(c rune) {
	switch {
	case c == '\r':
		r.column = 0
	case c == '\n' && r.row == len(r.grid)-1:
		r.scrolled++
		r.grid = append(r.grid[1:], []rune(strings.Repeat(" ", len(r.grid[0]))))
	case c == '\n':
		r.row++
	case c < ' ':
		r.t.Errorf("it prints %q", c)
	default:
		if r.column >= len(r.grid[0]) && r.wrap {
			r.t.Errorf("a line is longer than the %d columns", len(r.grid[0]))
		}
		r.grid[r.row][min(r.column, len(r.grid[0])-1)] = c
		r.column++
	}
}

func (r *terminal) obey(number, letter string) {
	blank := func(cells []rune) {
		for i := range cells {
			cells[i] = ' '
		}
	}
	switch on := letter == "h"; {
	case number == "?1049": // its own screen is empty, too: these programs print nothing before
		r.other, r.row, r.column = on, 0, 0
		for _, row := range r.grid {
			blank(row)
		}
	case number == "?25":
		r.cursor = on
	case number == "?7":
		r.wrap = on
	case letter == "H" && number == "":
		r.row, r.column = 0, 0
	case letter == "K" && number == "":
		blank(r.grid[r.row][min(r.column, len(r.grid[0])):])
	case letter == "J" && number == "":
		blank(r.grid[r.row][min(r.column, len(r.grid[0])):])
		for _, row := range r.grid[r.row+1:] {
			blank(row)
		}
	default:
		r.t.Errorf("it prints the code %s%s", number, letter)
	}
}

// lines returns what is on the terminal, without empty lines at the bottom.
func (r *terminal) lines() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range r.grid {
		all = append(all, strings.TrimRight(string(row), " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// shows waits until a line has all the words, and returns it.
func (r *terminal) shows(words ...string) (line string) {
	r.t.Helper()
	redistest.Eventually(r.t, strings.Join(words, " "), func() bool {
		all := r.lines()
		at := slices.IndexFunc(all, func(line string) bool {
			return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
		})
		if at >= 0 {
			line = all[at]
		}
		return at >= 0
	})
	return line
}

// ends checks that the command ends well, and leaves the terminal as it was.
func (r *terminal) ends() {
	r.t.Helper()
	limit := time.AfterFunc(time.Minute, func() { _ = r.Process.Kill() })
	defer limit.Stop()
	if err := r.Wait(); err != nil {
		r.t.Errorf("it ends with %v", err)
	}
	redistest.Eventually(r.t, "the terminal's own screen", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !r.other && r.cursor && r.wrap
	})
	after, err := term.GetState(int(r.tty.Fd()))
	if err != nil || !reflect.DeepEqual(after, r.before) {
		r.t.Errorf("the terminal is left as %+v, %v", after, err)
	}
	if r.scrolled > 0 {
		r.t.Errorf("the screen has scrolled by %d lines", r.scrolled)
	}
}

// A picture takes the place of the one before, and nothing of that is left.
func TestPainted(t *testing.T) {
	t.Parallel()
	r := &terminal{t: t}
	for range 3 {
		r.grid = append(r.grid, []rune(strings.Repeat(" ", 10)))
	}
	for _, lines := range [][]string{{"a long", "line", "and more"}, {"a", "b", "c"}, {"ü"}} {
		if r.write(painted(lines)); !slices.Equal(r.lines(), lines) || r.scrolled > 0 {
			t.Errorf("%q is shown as %q", lines, r.lines())
		}
	}
}

// Lines that do not fit are left out, and the last line says how many.
func TestFitted(t *testing.T) {
	t.Parallel()
	text := ""
	for i := range 9 {
		text += strings.Repeat(strconv.Itoa(i), 5) + "ü\n"
	}
	for _, c := range []struct {
		note          string
		width, height int
		want          string
	}{
		{"", 80, 24, "00000ü 11111ü 22222ü 33333ü 44444ü 55555ü 66666ü 77777ü 88888ü"},
		{"", 6, 9, "00000ü 11111ü 22222ü 33333ü 44444ü 55555ü 66666ü 77777ü 88888ü"},
		{"", 12, 3, "00000ü 11111ü 7_more_lines"},
		{"away", 12, 3, "00000ü 8_more_lines away"},
		{"away", 2, 1, "aw"},
		{"Redis is away", 12, 3, "9_more_lines Redis_is ____away"},
		{"", 3, 1, "9_m"},
		{"", 0, 0, ""},
	} {
		got := strings.ReplaceAll(strings.Join(fitted(text, c.note, c.width, c.height), "|"), " ", "_")
		if got = strings.ReplaceAll(got, "|", " "); got != c.want {
			t.Errorf("%dx%d: %q, want %q", c.width, c.height, got, c.want)
		}
	}
}

// A line that is continued is shown whole, or left out.
func TestContinuedLinesAreNotCut(t *testing.T) {
	t.Parallel()
	const text = "head\naaaaaaaaa bbbbbbbb\nccccccccc dddddddd\neeeeeeeee ffffffff\n"
	for height, want := range map[int]string{
		7: "head|aaaaaaaaa|    bbbbbbbb|ccccccccc|    dddddddd|eeeeeeeee|    ffffffff",
		6: "head|aaaaaaaaa|    bbbbbbbb|ccccccccc|    dddddddd|1 more line",
		5: "head|aaaaaaaaa|    bbbbbbbb|2 more lines",
		4: "head|aaaaaaaaa|    bbbbbbbb|2 more lines",
		3: "head|3 more lines",
	} {
		if got := strings.Join(fitted(text, "", 12, height), "|"); got != want {
			t.Errorf("%d lines: %q, want %q", height, got, want)
		}
	}
}
