package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A fleet is the processes of one peer. They are this program itself, started
// once more, so what they spend can be told from what the clients spend.
type fleet struct {
	peer      app.Peer
	processes []*process
}

// A process is one of them.
type process struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer // it ends when this is closed, so also when this program dies
}

// startFleet starts n processes. They are killed when ctx ends.
func startFleet(ctx context.Context, c app.Config, n int) (*fleet, error) {
	peer, _ := app.Find(c.Peer) // the name is from app
	f := &fleet{peer: peer}
	for range n {
		p, err := startProcess(ctx, c)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("starting a process: %w", err)
		}
		f.processes = append(f.processes, p)
		c.Profile = "" // of the first one only
	}
	return f, nil
}

func startProcess(ctx context.Context, c app.Config) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), app.Env+"="+string(config))
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.close()
		return nil, fmt.Errorf("it did not say where it listens: %w", err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// close ends the process: when it is asked to, or else soon after.
func (p *process) close() {
	_ = p.stdin.Close() // fails if it has ended already, which is as good
	kill := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Wait() // however it has ended
}

func (f *fleet) close() {
	for _, p := range f.processes {
		p.close()
	}
}

// addr returns the address for client i: they are spread evenly.
func (f *fleet) addr(i int) string { return f.processes[i%len(f.processes)].addr }

// stats returns what all processes have spent since they began.
func (f *fleet) stats(ctx context.Context) (app.Stats, error) {
	var sum app.Stats
	var err error
	for _, p := range f.processes {
		var s app.Stats
		err = errors.Join(err, p.ask(ctx, "GET", "/stats", nil, &s))
		sum.CPU += s.CPU
		sum.Mallocs += s.Mallocs
		sum.Slow += s.Slow
		sum.Slept += s.Slept
	}
	return sum, err
}
