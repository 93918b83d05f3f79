package main

import (
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/redis/rueidis"
)

// options has the settings of the command line and the environment.
type options struct {
	redis         rueidis.ClientOption
	prefix        string
	keys          [][]byte // of store.Options.Encryption
	timeout       time.Duration
	ttl, lifetime time.Duration // of the program; 0: not known, see lastUsed
	json          bool

	ids     []string // the arguments that are not flags
	user    string
	except  idList
	all     bool
	values  bool
	limit   int
	count   int
	aclUser string
	verbose bool

	url, passwordFile, keysFile string
	cert, key, caCert           string // files, for TLS
}

// An idList is a flag that may be given more than once.
type idList []string

func (l *idList) String() string { return "" }

func (l *idList) Set(id string) error {
	*l = append(*l, id)
	return nil
}

// flagSet returns the flags of a command.
func (o *options) flagSet(c *command) *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.StringVar(&o.url, "redis", "", "")
	f.StringVar(&o.passwordFile, "password-file", "", "")
	f.StringVar(&o.keysFile, "keys-file", "", "")
	f.StringVar(&o.cert, "cert", "", "")
	f.StringVar(&o.key, "key", "", "")
	f.StringVar(&o.caCert, "cacert", "", "")
	f.StringVar(&o.prefix, "prefix", records.DefaultPrefix, "")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "")
	f.BoolVar(&o.json, "json", false, "")
	own := map[string]func(name string){
		"user":   func(n string) { f.StringVar(&o.user, n, "", "the user, `U` as the program passed it to Login") },
		"except": func(n string) { f.Var(&o.except, n, "`ID` is not ended; may be given several times") },
		"all":    func(n string) { f.BoolVar(&o.all, n, false, "end all sessions: everybody must log in again") },
		"values": func(n string) { f.BoolVar(&o.values, n, false, "show the session's values, too: personal data") },
		"ttl": func(n string) {
			f.DurationVar(&o.ttl, n, 0, "the program's TTL is `D`: shows when sessions were last used")
		},
		"lifetime": func(n string) {
			f.DurationVar(&o.lifetime, n, records.DefaultLifetime, "the program's Lifetime is `D` (24h); only used with --ttl")
		},
		"limit": func(n string) {
			switch c.name {
			case "users":
				f.IntVar(&o.limit, n, 20, "show at most `N` users (20; 0: all)")
			case "locks", "watch", "top":
				f.IntVar(&o.limit, n, 0, "show at most `N` sessions (0: all)")
			default:
				f.IntVar(&o.limit, n, 0, "stop after `N` sessions (0: never)")
			}
		},
		"count":   func(n string) { f.IntVar(&o.count, n, 0, "end after `N` looks, also failed ones (0: never)") },
		"verbose": func(n string) { f.BoolVar(&o.verbose, n, false, "show what is ok, too; short: -v") },
		"acl-user": func(n string) {
			f.StringVar(&o.aclUser, n, "", "check the rights of the Redis user `U`, not your own")
		},
	}
	for _, name := range c.flags {
		own[name](name)
	}
	return f
}

// parse reads the command line. Flags and IDs may come in any order, but after -- there are only IDs.
func (c *command) parse(args []string, getenv func(string) string) (*options, error) {
	o := &options{}
	flags := o.flagSet(c)
	for len(args) > 0 {
		if args[0] == "--" {
			o.ids = append(o.ids, args[1:]...)
			break
		}
		rest, err := c.next(flags, o, args)
		if err != nil {
			return nil, err
		}
		args = rest
	}
	if err := o.check(c); err != nil {
		return nil, err
	}
	return o, o.read(getenv)
}

// next takes a flag or an ID off args. An ID may begin with -. It cannot be a flag: none of this program's has 22
// letters.
func (c *command) next(flags *flag.FlagSet, o *options, args []string) ([]string, error) {
	arg, rest := args[0], args[1:]
	if !strings.HasPrefix(arg, "-") || arg == "-" || isID(arg) {
		o.ids = append(o.ids, arg)
		return rest, nil
	}
	if isHelp(arg) {
		return nil, errHelp
	}
	name, value, given := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if name == "v" && slices.Contains(c.flags, "verbose") {
		name = "verbose"
	}
	f := flags.Lookup(name)
	if f == nil {
		var known []string
		flags.VisitAll(func(f *flag.Flag) { known = append(known, "--"+f.Name) })
		dashes := arg[:len(arg)-len(strings.TrimLeft(arg, "-"))]
		return nil, usage("%s has no flag%s; latchkey %[1]s --help shows its flags", c.name, typed(dashes+name, known))
	}
	if _, many := f.Value.(*idList); !many && isSet(flags, name) { // the last one would win in silence
		return nil, usage("--%s was given twice", name)
	}
	if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() && !given {
		value, given = "true", true
	}
	if !given {
		if len(rest) == 0 {
			return nil, usage("--%s needs a value", name)
		}
		value, rest = rest[0], rest[1:]
	}
	if value == "" { // perhaps by a variable of a script that is empty
		return nil, usage("--%s must not be empty", name)
	}
	if flags.Set(name, value) != nil { // the error may repeat a secret that was passed by mistake
		return nil, usage("--%s cannot be read: write it like %s", name, example(f))
	}
	return rest, nil
}

// isSet reports whether a flag was given before.
func isSet(flags *flag.FlagSet, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// word returns a mistyped word with a space before it, or "" if s does not look like a word: it may be a secret.
func word(s string) string {
	if len(s) > 20 || strings.ContainsFunc(s, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return " " + s
}

// typed returns a mistyped word, and the known one that was probably meant. A flag is compared without its dashes.
func typed(s string, known []string) string {
	mistyped := word(s)
	if mistyped == "" {
		return ""
	}
	if dashes := "--"; strings.HasPrefix(s, "-") {
		s = dashes + strings.TrimLeft(s, "-")
	}
	return mistyped + suggestion(s, known)
}

// example returns a value that f takes.
func example(f *flag.Flag) string {
	switch f.Value.(flag.Getter).Get().(type) {
	case time.Duration:
		return "500ms, 30m or 24h"
	case int:
		return "1000"
	}
	return "true"
}

func isHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

// check finds what is wrong with the command line itself.
func (o *options) check(c *command) error {
	switch {
	case c.check != nil:
		if err := c.check(o); err != nil {
			return err
		}
	case c.ids == 0 && len(o.ids) > 0:
		return usage("%s takes no ID", c.name)
	}
	for _, id := range append(slices.Clone(o.ids), o.except...) {
		if c.ids == many && id == fromInput && len(o.ids) == 1 && len(o.except) == 0 {
			continue
		}
		if c.ids == many && id == fromInput && len(o.ids) > 1 {
			return usage("- stands for all IDs, which are read from stdin: it must be the only argument")
		}
		if !isID(id) {
			return usage("%v", notAnID(id))
		}
	}
	switch {
	case c.ids == 1 && len(o.ids) != 1:
		return usage("%s needs the ID of one session; the log, list and locks show IDs", c.name)
	case o.timeout < time.Millisecond || o.timeout > time.Hour:
		return usage("--timeout is %v: it must be from 1ms to 1h", o.timeout)
	case o.ttl < 0 || o.lifetime < o.ttl && o.ttl > 0:
		return usage("--ttl is %v and --lifetime %v: --ttl must not be negative, nor longer than --lifetime", o.ttl, o.lifetime)
	case o.limit < 0:
		return usage("--limit is %d: it must not be negative", o.limit)
	case o.count < 0:
		return usage("--count is %d: it must not be negative", o.count)
	case strings.ContainsAny(o.prefix, "{}") || o.prefix == "":
		return usage("--prefix is %q: it must not be empty, nor contain braces", o.prefix)
	}
	return nil
}
