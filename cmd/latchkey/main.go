// Command latchkey is for operators of a program with sessions: it shows who is logged in and who holds which
// session, ends sessions, and says which of Redis's settings are wrong.
//
// It needs access to the program's Redis only: one server, Sentinel or Cluster.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// The exit statuses.
const (
	exitOK    = 0
	exitError = 1 // something is wrong, or has failed
	exitUsage = 2 // the command line is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // a second signal ends a command that is stuck, such as one whose output nobody reads
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// endings are the signals that end a command well, so that it leaves the terminal as it was. Under nohup SIGHUP stays ignored.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// A usageError says what is wrong with a command line.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFound says that a command has printed what is wrong.
var errFound = errors.New("something is wrong")

// run is the program. It prints the command's result on stdout, and all else on stderr.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := bufio.NewWriter(stdout)
	err := dispatch(ctx, args, getenv, streams{out, stdin, stdout, stderr, hasColours(stdout, getenv)})
	if failed := out.Flush(); failed != nil && err == nil {
		err = failed
	}
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errFound) {
		fmt.Fprintln(stderr, "latchkey:", printable(err.Error()))
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitError
}

// dispatch finds the command and runs it.
func dispatch(ctx context.Context, args []string, getenv func(string) string, out streams) error {
	if len(args) == 0 {
		return usage("no command; latchkey --help shows all commands")
	}
	if len(args) == 2 && args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	if isHelp(args[0]) || args[0] == "help" {
		_, err := io.WriteString(out, help)
		return err
	}
	if done, err := withoutRedis(args, out); done {
		return err
	}
	c := find(args[0])
	switch {
	case c == nil && strings.HasPrefix(args[0], "-"):
		return usage("the command comes first, then its flags; latchkey --help shows all commands")
	case c == nil:
		return usage("unknown command%s; latchkey --help shows all commands", typed(args[0], commandNames()))
	}
	o, err := c.parse(args[1:], getenv)
	switch {
	case errors.Is(err, errHelp):
		_, err = io.WriteString(out, c.help())
		return err
	case err != nil:
		return err
	}
	if err := o.readIDs(ctx, out.stdin); err != nil {
		return err
	}
	o.ids = distinct(o.ids)
	r, err := connect(ctx, o)
	if err == nil && c.name != "doctor" {
		err = r.current()
	}
	if err == nil || c.name == "doctor" && o.redis.Sentinel.MasterSet != "" { // the Sentinels can be asked
		out.continueLines(o.json)
		err = c.run(&job{ctx: ctx, options: o, redis: r, out: out, unconnected: err})
	}
	if ctx.Err() != nil && err != nil && !errors.Is(err, errInterrupted) {
		return errInterrupted
	}
	return err
}

// withoutRedis runs the commands about the program itself, if args is one of them.
func withoutRedis(args []string, out io.Writer) (done bool, err error) {
	asksHelp := len(args) > 1 && isHelp(args[1])
	switch name := args[0]; {
	case name == "version" && asksHelp:
		_, err = io.WriteString(out, versionHelp)
	case name == "completion" && asksHelp:
		_, err = io.WriteString(out, completionHelp)
	case (name == "version" || name == "--version") && len(args) == 1:
		err = printVersion(out)
	case name == "version":
		err = usage("version takes no argument")
	case name == "completion":
		err = printCompletion(args[1:], out)
	default:
		return false, nil
	}
	return true, err
}

// streams are the input and the outputs of the program.
type streams struct {
	*bufio.Writer  // of stdout
	stdin          io.Reader
	stdout, stderr io.Writer
	colour         bool // stdout has colours
}

// A job is one run of a command.
type job struct {
	ctx context.Context
	*options
	redis       *redis
	out         streams
	unconnected error // why there is no connection; only doctor runs without one
	looked      bool  // at all keys before
	slotsMoved  bool  // during the last each
}
