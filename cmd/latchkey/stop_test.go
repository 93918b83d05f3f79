package main

import (
	"os/exec"
	"reflect"
	"testing"

	"golang.org/x/term"
)

// A shell can stop top by Ctrl-Z, and has the terminal as it was. After fg, top goes on, and has its keys.
func TestTheTerminalIsTheShells(t *testing.T) {
	s, _ := withRedis(t)
	top := calling(t, s.URL, "top")
	shell := exec.Command("sh", append([]string{"-c",
		`set -m; "$0" "$@"; echo "it is stopped"; read go; fg >/dev/null`, top.Path}, top.Args[1:]...)...)
	shell.Env = top.Env
	c := onTerminal(t, 24, 80, shell)
	press := func(key string) {
		t.Helper()
		if _, err := c.master.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	c.shows("0 held")
	press("\x1a") // Ctrl-Z
	c.shows("it is stopped")
	if state, err := term.GetState(int(c.tty.Fd())); err != nil || !reflect.DeepEqual(state, c.before) {
		t.Errorf("the shell's terminal is %+v, %v", state, err)
	}
	press("\n")
	c.shows("0 held")
	press("q")
	c.ends()
}
