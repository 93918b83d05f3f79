package redistest

// Command is what a client sent: the name in upper case, and the arguments.
type Command struct {
	Name string
	Args []string
}

// Fault is what a Proxy does with a command and its reply. A client that gets no reply cannot know
// whether its command was executed. The faults are the cases that the client cannot tell apart.
type Fault int

const (
	// Pass forwards the command and returns the reply.
	Pass Fault = iota

	// DropReply forwards the command, waits for the reply, throws it away and
	// closes the connection: executed, but the client cannot know.
	DropReply

	// DropCommand closes the connection instead of forwarding: not executed,
	// but the client cannot know.
	DropCommand

	// CutReply is DropReply, except that half of the reply's bytes get through.
	CutReply

	// Hang forwards the command and never returns another reply on this connection, which stays open: the
	// client runs into its read timeout. From then on, no connection answers a PING, so the client cannot
	// learn that the other connections still work.
	Hang

	// HangCommand holds the command back until Release, which forwards it even if the client has closed
	// the connection by then. So the command takes effect long after its sender has stopped waiting. No
	// PING is answered, as with Hang.
	HangCommand

	// Die is Hang, but other connections answer a PING: the client can find out that only this connection
	// has died.
	Die
)

// A heldCommand is a command under HangCommand.
type heldCommand struct {
	release chan struct{} // closed to forward the command
	done    chan struct{} // closed when the command has been executed, or never can be
}

func newHeldCommand() *heldCommand {
	return &heldCommand{release: make(chan struct{}), done: make(chan struct{})}
}

// Inject sets the function that decides about every command from now on; nil passes them all. Calls of
// decide do not overlap, and decide may use the Proxy.
func (p *Proxy) Inject(decide func(Command) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inject = decide
}

// decide records a command and returns its fault. Recording and holding are one
// step, so a test that sees a command in the record can Release it.
func (p *Proxy) decide(cmd Command, joined bool) (Fault, *heldCommand) {
	// Not under p.mu: the injected function may call methods that take it.
	p.deciding.Lock()
	defer p.deciding.Unlock()
	p.mu.Lock()
	inject := p.inject
	p.mu.Unlock()
	fault := Pass
	if inject != nil {
		fault = inject(cmd)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.commands = append(p.commands, cmd); !joined {
		p.trips++
	}
	if p.hung && fault == Pass && cmd.Name == "PING" && len(cmd.Args) == 0 {
		fault = Hang
	}
	p.hung = p.hung || fault == Hang || fault == HangCommand
	if fault != HangCommand {
		return fault, nil
	}
	h := newHeldCommand()
	p.held = append(p.held, h)
	return fault, h
}

// Release forwards all held commands in the order they came. It returns when
// Redis has executed them. A client that still waits gets its reply.
func (p *Proxy) Release() {
	p.mu.Lock()
	held := p.held
	p.held = nil
	p.mu.Unlock()
	for _, h := range held {
		close(h.release)
		<-h.done
	}
}
