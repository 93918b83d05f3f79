package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An error in the command line is one line, before any command to Redis. No password or key is repeated.
func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	long := strings.Repeat("x", 513)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no command"},
		{[]string{"destroy"}, "unknown command destroy;"},
		{[]string{"lst"}, "unknown command lst: do you mean list?"},
		{[]string{"lcoks"}, "unknown command lcoks: do you mean locks?"},
		{[]string{"stat"}, "unknown command stat: do you mean stats?"},
		{[]string{"doc"}, "unknown command doc: do you mean doctor?"},
		{[]string{"list", "-u", "ann"}, "list has no flag -u: do you mean --user?"},
		{[]string{"list", "--usr=ann"}, "list has no flag --usr: do you mean --user?"},
		{[]string{"locks", "-v"}, "locks has no flag -v;"},
		{[]string{"show", "x"}, "an argument of 1 byte is no"},
		{[]string{"--json"}, "the command comes first"},
		{[]string{"redis://:" + secret + "@127.0.0.1"}, "unknown command;"},
		{[]string{"show"}, "needs the ID of one session"},
		{[]string{"show", secret + first + first}, "51 bytes is no session's ID"},
		{[]string{"show", "AAAAAAAAAAAAAAAAAAAAAB"}, "22 bytes is no session's ID: an ID of 22 bytes ends with A, Q, g or w\n"}, // has too many bits
		{[]string{"show", "AAAAAAAAAAAA+AAAAAAAAA"}, "22 bytes is no session's ID: an ID has only letters, digits, - and _\n"},
		{[]string{"show", "AAAAAAAAAAAAAAA.AAAAAAAAAAAA"}, "28 bytes is no session's ID: an ID of 28 bytes has a dot after 16 letters, digits, - and _, and then 11 of them\n"},
		{[]string{"show", first, "--limit", "3"}, "show has no flag --limit;"},
		{[]string{"show", first, "--" + secret}, "show has no flag;"},
		{[]string{"show", first, "--values=perhaps"}, "--values cannot be read"},
		{[]string{"list"}, "list needs --user, or IDs; latchkey users shows who is logged in\n"},
		{[]string{"list", "--user="}, "--user must not be empty\n"},
		{[]string{"list", "--user", "", first}, "--user must not be empty\n"},
		{[]string{"end", "--user", ""}, "--user must not be empty\n"},
		{[]string{"end", "--user=", "--except", first}, "--user must not be empty\n"},
		{[]string{"list", secret}, "say list --user NAME\n"},
		{[]string{"list", "--user", "ann", first}, "not both"},
		{[]string{"list", "--user", long}, "of 1 to 512 bytes"},
		{[]string{"list", "--user"}, "--user needs a value"},
		{[]string{"list", "--user", "ann", "--ttl", "48h"}, "--ttl is 48h0m0s and --lifetime 24h0m0s: --ttl must not be negative, nor longer than --lifetime\n"},
		{[]string{"end"}, "end needs IDs, - for IDs on stdin, --user, or --all\n"},
		{[]string{"end", "--all", "--user", "ann"}, "end --all takes neither IDs nor --user, nor --except\n"},
		{[]string{"end", "--all", "--except", first}, "end --all takes neither IDs nor --user, nor --except\n"},
		{[]string{"end", first, "--all"}, "end --all takes neither IDs nor --user, nor --except\n"},
		{[]string{"end", "-", "--all"}, "end --all takes neither IDs nor --user, nor --except\n"},
		{[]string{"end", "ann"}, "is no session's ID: an ID has 22 bytes, or 28 if the session is a user's; for the sessions of a user, say end --user ann\n"},
		{[]string{"end", secret}, "say end --user NAME\n"},
		{[]string{"end", first, "-"}, "it must be the only argument\n"},
		{[]string{"list", "-", first}, "it must be the only argument\n"},
		{[]string{"end", "--user", "ann", "--except", "-"}, "is no session's ID"},
		{[]string{"end", "-", "--except", first}, "not both"},
		{[]string{"show", "-"}, "is no session's ID"},
		{[]string{"top", "--count", "-1"}, "--count is -1"},
		{[]string{"end", first, "--user", "ann"}, "not both"},
		{[]string{"end", "--user", "ann", "--user", "bob"}, "--user was given twice\n"},
		{[]string{"end", "--user=ann", "-user"}, "--user was given twice\n"},
		{[]string{"locks", "--json", "--json=false"}, "--json was given twice\n"},
		{[]string{"locks", "--limit", "1", "--limit", "1"}, "--limit was given twice\n"},
		{[]string{"doctor", "-v", "--verbose"}, "--verbose was given twice\n"},
		{[]string{"end", "--except", first}, "--except is for end --user"},
		{[]string{"locks", first}, "locks takes no ID"},
		{[]string{"locks", "--limit", "many"}, "--limit cannot be read: write it like 1000"},
		{[]string{"stats", "--limit", "-1"}, "--limit is -1"},
		{[]string{"doctor", "--timeout", "0s"}, "--timeout is 0s"},
		{[]string{"locks", "--timeout", "1ns"}, "--timeout is 1ns: it must be from 1ms to 1h\n"},
		{[]string{"locks", "--timeout", "100000h"}, "it must be from 1ms to 1h\n"},
		{[]string{"end", "--all", "--redis", ""}, "--redis must not be empty\n"},
		{[]string{"show", first, "--keys-file="}, "--keys-file must not be empty\n"},
		{[]string{"doctor", "--acl-user", ""}, "--acl-user must not be empty\n"},
		{[]string{"doctor", "--prefix", "a{b}"}, "braces"},
		{[]string{"doctor", "--redis", "redis://:" + secret + "@127.0.0.1"}, "--password-file"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1?master_set=x&sentinel_password=" + secret}, "any user of this machine can see: put the URL into the environment's LATCHKEY_REDIS\n"},
		{[]string{"doctor", "--redis", "redis://" + secret + "@127.0.0.1"}, "a user without a password"},
		{[]string{"doctor", "--redis", "redis://:" + secret + "%@127.0.0.1"}, "cannot be parsed"},
		{[]string{"doctor", "--redis", "127.0.0.1:6379"}, "must begin with redis://"},
		{[]string{"doctor", "--redis", "redis://"}, "has no host"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1:99999"}, "a port that does not exist"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1?addr=node-2"}, "an addr without a port: write host:port"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1?addr=" + secret + "@node-2:1"}, "an addr with @: write host:port"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1/" + secret}, "a database that is not a number"},
		{[]string{"doctor", "--redis", "redis://127.0.0.1?password=" + secret}, "an unknown parameter"},
		{[]string{"doctor", "--redis", "unix://" + secret}, "names no socket"},
		{[]string{"doctor", "--password-file", "/nowhere"}, "--password-file: no such file"},
		{[]string{"doctor", "--keys-file", "/no\x1b[2J"}, `/no\x1b[2J: no such file`},
		{[]string{"doctor", "--keys-file", "0x" + strings.Repeat(secret, 9)}, "--keys-file: no such file"},
		{[]string{"doctor", "--keys-file", "a-" + secret + "_b-" + secret + "-_c-" + secret + "_d-" + secret + "_e-" + secret}, "--keys-file: no such file"},
		{[]string{"doctor", "--keys-file", file(t, "# none\n")}, "has no key"},
		{[]string{"doctor", "--keys-file", file(t, "# one\n"+secret+"\n")}, "line 2 of"},
		{[]string{"doctor", "--keys-file", file(t, strings.Repeat("00", 32))}, "is the same byte again and again"},
		{[]string{"doctor", "--keys-file", file(t, strings.Repeat("0001", 16)+"\n\n"+strings.Repeat("0001", 16))}, "line 3 of"},
	} {
		r := call(t, "redis://127.0.0.1:1", c.args...)
		fails(t, r, exitUsage, c.want)
		if strings.Contains(r.stderr, secret) {
			t.Errorf("%q repeats the secret: %s", c.args, r.stderr)
		}
	}
}

// If there are several servers, each has its own certificate. Otherwise it is for the host in the URL.
func TestTheNamesOfCertificates(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"rediss://one:6379":               "one",
		"rediss://one:6379?addr=two:6379": "",
		"rediss://one:26379?master_set=m": "",
	} {
		o, err := parseURL("--redis", raw)
		if err != nil || o.TLSConfig == nil || o.TLSConfig.ServerName != want {
			t.Errorf("%s: %+v, %v; want the name %q", raw, o.TLSConfig, err, want)
		}
	}
}

// An error in the environment is one line, too, before any command to Redis. It repeats no password.
func TestWrongEnvironment(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"redis://:hunter2%@127.0.0.1": redisVariable + " cannot be parsed",
		"hunter2":                     redisVariable + " must begin with",
	} {
		r := call(t, url, "doctor")
		fails(t, r, exitUsage, want)
		if strings.Contains(r.stderr, "hunter2") {
			t.Errorf("it repeats the secret: %s", r.stderr)
		}
	}
	r := call(t, "redis://:hunter2@127.0.0.1", "doctor", "--password-file", file(t, "other"))
	fails(t, r, exitUsage, "use one of them")
}

// Flags and IDs come in any order, flags with one dash or two, and an ID may begin with a dash. After -- there are only IDs.
func TestOrderOfArguments(t *testing.T) {
	t.Parallel()
	show, end := find("show"), find("end")
	none := func(string) string { return "" }
	for _, args := range [][]string{{second, "--values", "--ttl", "1h"}, {"-ttl=1h", "--values", second}, {"--values=true", second, "--ttl", "1h"}, {"--values", "--ttl", "1h", "--", second}} {
		o, err := show.parse(args, none)
		if err != nil || len(o.ids) != 1 || o.ids[0] != second || !o.values || o.ttl.Hours() != 1 {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
	fails(t, call(t, "redis://127.0.0.1:1", "show", "--", "--values"), exitUsage, "an argument of 8 bytes is no session's ID")
	o, err := end.parse([]string{"--except", second, "--user", "-x", "--except=" + first[:16] + "." + second[:11]}, none)
	if err != nil || o.user != "-x" || len(o.except) != 2 || len(o.ids) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// Help fits the smallest screen, needs no Redis, and knows all commands and flags.
func TestHelp(t *testing.T) {
	t.Parallel()
	asked := [][]string{{"--help"}, {"-h"}, {"help"}}
	for _, c := range commands {
		asked = append(asked, []string{"help", c.name}, []string{c.name, "--help"}, []string{c.name, first, "-h"})
		contains(t, help, "latchkey "+c.name)
		for _, name := range c.flags {
			contains(t, c.help(), "  --"+name)
			if len("--"+name) == idLength {
				t.Errorf("--%s could be an ID", name)
			}
		}
	}
	for _, args := range asked {
		text := must(t, "redis://127.0.0.1:1", args...)
		if lines := strings.Count(text, "\n"); lines > 24 || lines < 5 {
			t.Errorf("%q has %d lines", args, lines)
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%q has a line of %d columns: %s", args, n, line)
			}
		}
	}
	for _, name := range []string{"redis", "password-file", "keys-file", "cert", "key", "cacert", "prefix", "timeout", "json"} {
		contains(t, help, "--"+name)
	}
}

// A flag that names a file may be given its content by mistake, which is a secret.
func TestContentInsteadOfAFile(t *testing.T) {
	t.Parallel()
	const secret = "c0ffee"
	pem := "-----BEGIN PRIVATE KEY-----" + secret
	hexKey := strings.Repeat(secret, 11)[:64]
	cert := file(t, "")
	for _, c := range []struct {
		flag  string
		value string
		more  []string
	}{
		{"--cert", pem, []string{"--key", cert}},
		{"--cert", secret + "\n" + secret, []string{"--key", cert}},
		{"--key", pem, []string{"--cert", cert}},
		{"--key", "Bag Attributes\n" + secret, []string{"--cert", cert}},
		{"--cacert", pem, nil},
		{"--keys-file", hexKey, nil},
		{"--keys-file", hexKey + "\r", nil},
		{"--keys-file", hexKey + "\n" + hexKey, nil},
		{"--password-file", "one\n" + secret, nil},
	} {
		r := call(t, "rediss://127.0.0.1:1", append([]string{"locks", c.flag, c.value}, c.more...)...)
		fails(t, r, exitUsage, c.flag+" takes the name of a file, not its content")
		if strings.Contains(r.stderr, secret) {
			t.Errorf("%s: it shows the secret: %s", c.flag, r.stderr)
		}
	}
	c := calling(t, "redis://127.0.0.1:1", "locks")
	c.Env = append(c.Env, keysVariable+"="+hexKey)
	fails(t, finish(t, c), exitUsage, keysVariable+" takes the name of a file, not its content")

	// A password looks like the name of any file.
	r := call(t, "redis://127.0.0.1:1", "locks", "--password-file", secret)
	fails(t, r, exitUsage, "--password-file: no such file")
	if strings.Contains(r.stderr, secret) {
		t.Errorf("it shows the password: %s", r.stderr)
	}
}
