// Command release checks that the modules of this repository can be released as one version, and prints the
// commands that tag and push it. It tags nothing itself.
//
//	go run . -version v1.0.0-rc.1
//
// checks.go has what is checked. The modules users get are in modules.go, and proxy.go serves them as a module
// proxy will after the tags. follow_test.go follows the README with that proxy, in every run of the tests.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	version := flag.String("version", "", "the `version` to be released, such as v1.0.0-rc.1")
	flag.Parse()
	if *version == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "release: say which version: make release VERSION=v1.0.0-rc.1")
		os.Exit(2)
	}
	if err := run("../..", *version, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the checks, and says what to do next.
func run(repository, version string, out io.Writer) error {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	last, err := lastRelease(repository)
	if err != nil {
		return err
	}
	proxy, err := os.MkdirTemp("", "latchkey-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(proxy)
	r := &release{version, repository, last, proxy, filepath.Join(repository, "bin", "release", version)}
	for _, checks := range [][]check{quick, slow} {
		if failed := r.make(checks, out); failed > 0 {
			return fmt.Errorf("%d of %d checks have failed", failed, len(checks))
		}
	}
	fmt.Fprintf(out, "\n%s", commandsFor(version))
	return nil
}

// make makes all checks, also after one has failed, and returns how many have.
func (r *release) make(checks []check, out io.Writer) (failed int) {
	for _, c := range checks {
		note, err := c.run(r)
		if err != nil {
			failed++
			fmt.Fprintf(out, "WRONG  %s: %v\n", c.what, err)
			continue
		}
		fmt.Fprintf(out, "ok     %s%s\n", c.what, strings.TrimSuffix("; "+note, "; "))
	}
	return failed
}

// commandsFor returns what a person does after the checks.
func commandsFor(version string) string {
	var b, tags strings.Builder
	fmt.Fprintf(&b, "When CI is green on this commit:\n\n")
	for _, dir := range published {
		fmt.Fprintf(&b, "  git tag -a %[1]s -m '%[2]s %[3]s'\n", tagOf(dir, version), pathOf(dir), version)
		fmt.Fprintf(&tags, " %s", tagOf(dir, version))
	}
	fmt.Fprintf(&b, "  git push --atomic origin%s\n\nThen let the module proxy fetch them, in this order:\n\n", tags.String())
	for _, dir := range published {
		fmt.Fprintf(&b, "  GOWORK=off go list -m %s@%s\n", pathOf(dir), version)
	}
	return b.String()
}
