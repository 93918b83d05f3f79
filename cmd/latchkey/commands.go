package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// A command is one word after latchkey.
type command struct {
	name, args string
	about      string // a few lines
	ids        int    // the number of IDs that it needs, or many
	flags      []string
	check      func(o *options) error // of flags and IDs together; nil: no check
	run        func(j *job) error
}

// many is for a command that takes any number of IDs, also from stdin.
const many = -1

var commands = []command{
	{"users", "[--limit N]", usersAbout, 0, []string{"limit", "ttl", "lifetime"}, nil, users},
	{"list", "--user U | ID... | -", listAbout, many, []string{"user", "ttl", "lifetime"}, checkList, list},
	{"show", "ID [--values]", showAbout, 1, []string{"values", "ttl", "lifetime"}, nil, show},
	{"end", "ID... | - | --user U [--except ID] | --all", endAbout, many, []string{"user", "except", "all"}, checkEnd, end},
	{"locks", "[--limit N]", locksAbout, 0, []string{"limit"}, nil, locks},
	{"top", "[--limit N] [--count N]", topAbout, 0, []string{"limit", "count"}, nil, top},
	{"watch", "[--limit N]", watchAbout, 0, []string{"limit"}, nil, watch},
	{"stats", "[--limit N]", statsAbout, 0, []string{"limit"}, nil, stats},
	{"doctor", "[--acl-user U] [-v]", doctorAbout, 0, []string{"acl-user", "verbose"}, nil, doctor},
}

func find(name string) *command {
	for i := range commands {
		if commands[i].name == name {
			return &commands[i]
		}
	}
	return nil
}

// commandNames returns all first words.
func commandNames() []string {
	names := []string{"version", "completion", "help"}
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

var errHelp = errors.New("help was requested")

// help fits on a screen of 24 lines.
const help = `latchkey shows and ends sessions in Redis, and checks Redis's settings.

  latchkey users                        who is logged in, by number of sessions
  latchkey list --user U | ID... | -    a user's sessions, or these; - is stdin
  latchkey show ID [--values]           one session; its values with the flag
  latchkey end ID... | - | --all        ends these sessions, or everybody's
  latchkey end --user U [--except ID]   ends all sessions of a user
  latchkey locks, latchkey watch        who holds which session; every second
  latchkey top                          the busiest sessions, and who waits
  latchkey stats                        sessions, bytes, ages; by SCAN
  latchkey doctor                       what is wrong with Redis's settings
  latchkey version, latchkey completion bash|zsh|fish

Flags of every command; latchkey COMMAND --help shows those of its own:
  --redis URL           default: LATCHKEY_REDIS, or redis://127.0.0.1:6379
                        cluster: ?addr=host2:port; Sentinel: &master_set=NAME
  --cert, --key, --cacert FILE    for rediss://, as for redis-cli
  --password-file FILE  Redis's password, which must not be in --redis
  --keys-file FILE      keys of store.Options.Encryption, one hex key per line;
                        default: LATCHKEY_ENCRYPTION_KEYS_FILE
  --prefix P            as in store.Options (latchkey:)
  --timeout D           of each round trip to Redis (2s)
  --json                output for programs
Exit status: 0; 1 if something is wrong or failed; 2 for a bad command line.
`

// help returns the output of latchkey COMMAND --help.
func (c *command) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "latchkey %s %s\n\n%s\n", c.name, c.args, c.about)
	all := (&options{}).flagSet(c)
	for _, name := range c.flags {
		f := all.Lookup(name)
		value, about := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "  %-16s  %s\n", strings.TrimSpace("--"+name+" "+value), about)
	}
	b.WriteString("latchkey --help shows the flags that every command has.\n")
	return b.String()
}
