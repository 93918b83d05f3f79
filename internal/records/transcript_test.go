package records

import (
	"context"
	"crypto/sha1"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/overlay"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// The protocol as readable transcripts: in each file of transcripts, a command is a line with >, and what happens
// then follows it, sorted. They run in fake time, on one Redis. Each request saves what it has read, with its own
// name appended: so what is stored shows which request has built on which.
//
//	take a, take a elsewhere      a request comes, to this process or to another one
//	save, touch, release, destroy a
//	leave a                       its client goes away
//	hang, flow                    from now on round trips of this process wait; or wait no more
//	deliver, lose, drop           the round trip that has hung longest: is done; is done, but its reply is
//	                              lost; is not done
//	lose commit.lua               the same, of those that run this script
//	delete lock                   somebody deletes it in Redis
//	wait 2s
//
// With -update the files are written.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *redistest.Server) {
				text, err := os.ReadFile(file)
				must(t, err)
				got := transcript(t, s, string(text))
				if *update {
					must(t, os.WriteFile(file, []byte(got), 0o666))
				} else if got != string(text) {
					t.Errorf("the transcript is now:\n%s\nWith -update the file is written.", got)
				}
			})
		})
	}
}

// transcript executes the commands of a transcript, and returns it with what happens now.
func transcript(t *testing.T, s *redistest.Server, text string) string {
	p := &play{Server: s, parts: make(map[string]*part)}
	p.wire = &wire{Client: transport.NewRedigo(s.Pool(t, 4), onStage.Timeout), said: p.say, names: make(map[string]string)}
	for _, file := range goldenScripts(t) {
		text, err := overlay.ReadFile(file)
		must(t, err)
		p.wire.names[fmt.Sprintf("%x", sha1.Sum(text))] = filepath.Base(file)
		s.Do(t, "SCRIPT", "LOAD", text)
	}
	p.here, p.elsewhere = New(p.wire, onStage), process(t, s)
	p.here.maxUnheard = time.Hour
	create(t, p.elsewhere, "-")
	var all strings.Builder
	for line := range strings.Lines(text) {
		command, isCommand := strings.CutPrefix(line, "> ")
		if !isCommand {
			if line == "\n" || strings.HasPrefix(line, "#") {
				all.WriteString(line)
			}
			continue
		}
		p.do(t, strings.Fields(command))
		synctest.Wait()
		all.WriteString(line + p.happened(t))
	}
	p.end(t)
	return all.String()
}

// onStage are the options of this process. A round trip may take longer than a lease.
var onStage = Options{Lease: 10 * time.Second, Timeout: 20 * time.Second}

// goldenScripts returns the files of the scripts that Redis runs.
func goldenScripts(t *testing.T) []string {
	ours, err := filepath.Glob("golden/*.lua")
	must(t, err)
	locks, err := filepath.Glob("../lease/golden/*.lua")
	must(t, err)
	return append(locks, ours...)
}

// A play is a transcript that is being made.
type play struct {
	*redistest.Server
	wire            *wire
	here, elsewhere *Engine
	parts           map[string]*part
	seen            string // what Redis had when it was looked at last

	mu   sync.Mutex // guards said
	said []string
}

// A part is a request in a play.
type part struct {
	hold  *Hold
	leave context.CancelFunc
}

func (p *play) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf("  "+format+"\n", args...))
}

// happened returns what has happened since the last call, and what Redis has, if that has changed.
func (p *play) happened(t *testing.T) string {
	p.mu.Lock()
	slices.Sort(p.said) // goroutines have said it, in any order
	said := strings.Join(p.said, "")
	p.said = nil
	p.mu.Unlock()
	lock, _ := p.Get(t, theLock)
	has := fmt.Sprintf("  Redis has %q", p.stored(t))
	if lock != "" {
		has += ", locked by " + lock[strings.LastIndexByte(lock, ' ')+1:]
	}
	if has != p.seen {
		p.seen, said = has, said+has+"\n"
	}
	return said
}

// stored returns the session's content, or why there is none.
func (p *play) stored(t *testing.T) string {
	r, err := p.elsewhere.Load(t.Context(), theID, Terms{})
	if err != nil {
		return outcome(err)
	}
	return string(r.Data)
}

// do executes a command.
func (p *play) do(t *testing.T, words []string) {
	verb, name := words[0], ""
	if len(words) > 1 {
		name = words[1]
	}
	one := p.parts[name]
	switch {
	case verb == "take":
		p.take(t, name, len(words) > 2)
	case verb == "leave":
		one.leave()
	case verb == "hang", verb == "flow":
		p.wire.hang(verb == "hang")
	case verb == "deliver", verb == "lose", verb == "drop":
		p.wire.decide(verb, name)
	case verb == "delete":
		p.Do(t, "DEL", theLock)
	case verb == "wait":
		d, err := time.ParseDuration(name)
		must(t, err)
		lapse(d)
	case one == nil || one.hold == nil:
		t.Fatalf("%v: it has no session", words)
	default:
		go p.finish(t, verb, name, one.hold)
	}
}

// take makes a request come.
func (p *play) take(t *testing.T, name string, elsewhere bool) {
	ctx, leave := context.WithCancel(t.Context())
	one := &part{leave: leave}
	p.parts[name] = one
	engine := p.here
	if elsewhere {
		engine = p.elsewhere
	}
	go func() {
		h, _, err := engine.Take(ctx, theID, Terms{Label: name, LockWait: patient.Lease})
		if err != nil {
			p.say("%s does not get the session: %s", name, outcome(err))
			return
		}
		one.hold = h
		p.say("%s has the session, with %q", name, h.Record.Data)
		h.OnLost(func(error) { p.say("%s is told that it has lost the session", name) })
	}()
}

// finish ends the hold of a request.
func (p *play) finish(t *testing.T, verb, name string, h *Hold) {
	end, ok := ends[strings.ToUpper(verb[:1])+verb[1:]]
	if !ok {
		t.Errorf("no command %q", verb)
		return
	}
	if verb == "save" {
		end = func(ctx context.Context, h *Hold) error {
			return h.Save(ctx, fmt.Append(nil, string(h.Record.Data), name))
		}
	}
	p.say("%s: %s: %s", name, verb, outcome(end(t.Context(), h)))
}

// end lets everything go on that still waits.
func (p *play) end(t *testing.T) {
	p.wire.hang(false)
	for _, one := range p.parts {
		one.leave()
		if one.hold != nil {
			one.hold.Release(t.Context())
		}
	}
	lapse(2 * onStage.Timeout) // for repetitions and sweeps
	must(t, errors.Join(p.here.Close(), p.elsewhere.Close()))
}

// outcome returns the names of the errors that err wraps.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	var names []string
	for name, is := range map[string]error{"ErrLost": ErrLost, "ErrUnavailable": ErrUnavailable, "ErrGone": ErrGone,
		"ErrNotFound": ErrNotFound, "ErrTimeout": ErrTimeout, "canceled": context.Canceled} {
		if errors.Is(err, is) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return err.Error()
	}
	return strings.Join(slices.Sorted(slices.Values(names)), " and ")
}

// A wire is a client whose round trips can be held up.
type wire struct {
	transport.Client
	said  func(format string, args ...any)
	names map[string]string // of scripts, by their hash

	mu    sync.Mutex // guards all below
	hangs bool
	held  []heldUp // in the order in which they were sent
}

// A heldUp is a round trip that waits for its fate.
type heldUp struct {
	name    string
	verdict chan string
}

// Do implements [transport.Client].
func (w *wire) Do(ctx context.Context, key string, commands ...transport.Command) ([]any, error) {
	name := w.name(commands)
	verdict := make(chan string, 1)
	w.mu.Lock()
	if w.hangs {
		w.held = append(w.held, heldUp{name, verdict})
		w.said("round trip: %s, hangs", name)
	} else {
		verdict <- "deliver"
		w.said("round trip: %s", name)
	}
	w.mu.Unlock()
	end := time.Now().Add(onStage.Timeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end) {
		end = deadline
	}
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	how := "time out"
	select { // cancelling ctx instead would break the connection
	case how = <-verdict:
	case <-timer.C:
	}
	switch how {
	case "drop":
		return nil, errBroken
	case "time out":
		return nil, fmt.Errorf("%w: %w", transport.ErrUnavailable, context.DeadlineExceeded)
	}
	replies, err := w.Client.Do(context.WithoutCancel(ctx), key, commands...)
	if how == "lose" {
		return nil, errBroken
	}
	return replies, err
}

var errBroken = fmt.Errorf("%w: the connection broke", transport.ErrUnavailable)

// name returns what a round trip is for.
func (w *wire) name(commands []transport.Command) string {
	last := commands[len(commands)-1]
	if len(last) > 1 {
		if hash, ok := last[1].(string); ok && w.names[hash] != "" {
			return w.names[hash]
		}
	}
	if commands[0][0] == "SET" {
		return "plain take"
	}
	return fmt.Sprint(last[0])
}

func (w *wire) hang(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs = on
	for _, x := range w.held {
		x.verdict <- "deliver"
	}
	w.held = nil
}

// decide decides the fate of the round trip with this name that has waited longest.
func (w *wire) decide(how, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, x := range w.held {
		if name == "" || x.name == name {
			w.held = slices.Delete(w.held, i, i+1)
			x.verdict <- how
			return
		}
	}
	w.said("no such round trip hangs")
}
