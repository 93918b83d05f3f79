package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// askShell is a script for each shell that prints what it would complete after $LINE.
var askShell = map[string]string{
	"bash": `source <(latchkey completion bash)
read -ra COMP_WORDS <<<"$LINE"
case $LINE in *' ') COMP_WORDS+=('');; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_latchkey
printf '%s\n' "${COMPREPLY[@]}"`,
	"fish": `latchkey completion fish | source
complete -C "$LINE" | string split -f 1 \t
true`,
	// zsh completes only on a terminal, so what it would offer is printed in place of its completer.
	"zsh": `compdef() { : }
_files() { : }
_describe() { for w in ${(P)2}; do print -r -- ${w%%:*}; done }
source <(latchkey completion zsh)
words=(${(s: :)LINE}); [[ $LINE = *' ' ]] && words+=('')
CURRENT=$#words
_latchkey`,
}

// Each shell completes commands, and the flags of a command. .ci/shells installs the shells.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, ask := range askShell {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			for line, want := range map[string][]string{
				"latchkey ":            {"users", "list", "show", "end", "locks", "watch", "top", "stats", "doctor", "version", "completion"},
				"latchkey list --":     {"--user", "--redis", "--json", "--password-file", "--cert", "--key", "--cacert"},
				"latchkey users --":    {"--limit", "--ttl"},
				"latchkey top --":      {"--limit", "--count"},
				"latchkey doctor --":   {"--acl-user", "--redis"},
				"latchkey completion ": {"bash", "fish", "zsh"},
			} {
				got := strings.Fields(complete(t, shell, ask, line))
				for _, word := range want {
					if !slices.Contains(got, word) {
						t.Errorf("%q offers %q, not %s", line, got, word)
					}
				}
				if strings.Contains(line, "list --") && slices.Contains(got, "--acl-user") {
					t.Errorf("%q offers the flag of another command: %q", line, got)
				}
			}
		})
	}
}

// complete returns the words that a shell offers.
func complete(t *testing.T, shell, ask, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shell, "-c", ask)
	if shell == "zsh" { // without the user's own files
		cmd.Args = []string{"zsh", "-f", "-c", ask}
	}
	cmd.Env = append(os.Environ(), "LINE="+line, "HOME="+t.TempDir(), "BASH_ENV=", "XDG_CONFIG_HOME=",
		"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return string(out)
}

// The commands about the program itself need no Redis.
func TestVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		out := must(t, "redis://127.0.0.1:1", args...)
		if !regexp.MustCompile(`^latchkey \S+, go1\.\d+\S*, \w+/\w+\n$`).MatchString(out) {
			t.Errorf("%q prints %q", args, out)
		}
	}
	for _, args := range [][]string{{"version", "--help"}, {"completion", "--help"}} {
		if out := must(t, "redis://127.0.0.1:1", args...); !strings.HasPrefix(out, "latchkey "+args[0]) {
			t.Errorf("%q prints %q", args, out)
		}
	}
	fails(t, call(t, "redis://127.0.0.1:1", "version", "now"), exitUsage, "version takes no argument")
	fails(t, call(t, "redis://127.0.0.1:1", "completion", "tcsh"), exitUsage, "bash, zsh or fish")
}
