package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A fleet is the processes of one application. They run this program, or the same program built with another
// Latchkey. So the costs of the application can be told apart from those of the clients.
type fleet []*process

type process struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer // the process ends if this pipe is closed, also by the end of this program
}

// startFleet starts n processes of a binary, or of this program if binary is empty. They are killed if ctx
// ends.
func startFleet(ctx context.Context, binary string, c app.Config, n int) (f fleet, err error) {
	if binary == "" {
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	for range n {
		p, err := startProcess(ctx, binary, c)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("starting a process: %w", err)
		}
		f = append(f, p)
		c.Profile = "" // only of the first one
	}
	return f, nil
}

func startProcess(ctx context.Context, binary string, c app.Config) (*process, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, binary)}
	p.cmd.Env = append(os.Environ(), app.Env+"="+string(config))
	p.cmd.Stderr = os.Stderr
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
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
		return nil, fmt.Errorf("it did not print its listen address: %w", err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// close asks the process to end, and kills a process that does not.
func (p *process) close() {
	_ = p.stdin.Close() // if it fails, the process has ended already, which is as good
	kill := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Wait() // however it has ended
}

func (f fleet) close() {
	for _, p := range f {
		p.close()
	}
}

// addr returns the address for client i: clients are spread evenly.
func (f fleet) addr(i int) string { return f[i%len(f)].addr }

// stats returns what all processes have spent since they began.
func (f fleet) stats(ctx context.Context) (app.Stats, error) {
	var sum app.Stats
	var err error
	for _, p := range f {
		var s app.Stats
		err = errors.Join(err, p.ask(ctx, http.MethodGet, "/stats", nil, &s))
		sum.CPU += s.CPU
		sum.Mallocs += s.Mallocs
	}
	return sum, err
}

// ask sends a question to the process itself, not to its sessions. Question and reply are JSON.
func (p *process) ask(ctx context.Context, method, path string, question, reply any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, reply)
}
