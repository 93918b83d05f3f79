package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

const completionHelp = `latchkey completion bash | zsh | fish

Prints a script with which the shell completes commands and flags. In the shell's start-up file, write
  bash: source <(latchkey completion bash)
  zsh:  source <(latchkey completion zsh)     after compinit
  fish: latchkey completion fish | source
`

// shells print the script for each shell.
var shells = map[string]func(out io.Writer){"bash": completeBash, "fish": completeFish, "zsh": completeZsh}

func printCompletion(args []string, out io.Writer) error {
	if len(args) != 1 || shells[args[0]] == nil {
		return usage("say latchkey completion bash, zsh or fish")
	}
	shells[args[0]](out)
	return nil
}

// A completion is a word that a shell offers.
type completion struct{ word, about string }

// completedCommands returns all commands.
func completedCommands() (all []completion) {
	for _, c := range commands {
		about, _, _ := strings.Cut(strings.ReplaceAll(c.about, "\n", " "), ".")
		all = append(all, completion{c.name, about})
	}
	return append(all, completion{"version", "Prints the version"},
		completion{"completion", "Prints a script that completes commands and flags"})
}

// completedFlags returns all flags of a command.
func (c *command) completedFlags() (all []completion) {
	(&options{}).flagSet(c).VisitAll(func(f *flag.Flag) {
		_, about := flag.UnquoteUsage(f)
		all = append(all, completion{"--" + f.Name, about})
	})
	return all
}

func words(all []completion) string {
	var words []string
	for _, c := range all {
		words = append(words, c.word)
	}
	return strings.Join(words, " ")
}

// completeBash: if no word fits, bash completes the names of files by itself (-o default).
func completeBash(out io.Writer) {
	fmt.Fprintf(out, `_latchkey() {
  local words='%s'
  if [ "$COMP_CWORD" -gt 1 ]; then
    case "${COMP_WORDS[1]}" in
`, words(completedCommands()))
	for _, c := range commands {
		fmt.Fprintf(out, "    %s) words='%s' ;;\n", c.name, words(c.completedFlags()))
	}
	fmt.Fprint(out, `    completion) words='bash fish zsh' ;;
    *) words='' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _latchkey latchkey
`)
}

func completeZsh(out io.Writer) {
	described := func(all []completion) {
		for _, c := range all {
			fmt.Fprintf(out, "    %s\n", quoted(c.word+":"+strings.ReplaceAll(c.about, ":", `\:`)))
		}
	}
	fmt.Fprint(out, "_latchkey() {\n  local -a offered\n  if (( CURRENT == 2 )); then\n    offered=(\n")
	described(completedCommands())
	fmt.Fprint(out, "    )\n  else case $words[2] in\n")
	for _, c := range commands {
		fmt.Fprintf(out, "  %s) offered=(\n", c.name)
		described(c.completedFlags())
		fmt.Fprint(out, "    ) ;;\n")
	}
	fmt.Fprint(out, `  completion) offered=(bash fish zsh) ;;
  esac fi
  case $words[CURRENT-1] in
  --*-file|--cert|--key|--cacert) _files ;;
  *) _describe word offered ;;
  esac
}
compdef _latchkey latchkey
`)
}

func completeFish(out io.Writer) {
	fmt.Fprint(out, "complete -c latchkey -f\n")
	for _, c := range completedCommands() {
		fmt.Fprintf(out, "complete -c latchkey -n __fish_use_subcommand -a %s -d %s\n", c.word, quoted(c.about))
	}
	for _, c := range commands {
		for _, f := range c.completedFlags() {
			file := ""
			if strings.HasSuffix(f.word, "-file") || slices.Contains([]string{"--cert", "--key", "--cacert"}, f.word) {
				file = " -r -F"
			}
			fmt.Fprintf(out, "complete -c latchkey -n '__fish_seen_subcommand_from %s' -l %s%s -d %s\n", c.name, f.word[2:], file, quoted(f.about))
		}
	}
	fmt.Fprint(out, "complete -c latchkey -n '__fish_seen_subcommand_from completion' -a 'bash fish zsh'\n")
}

// quoted returns s as one word of bash, fish or zsh.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
