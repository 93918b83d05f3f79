package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// lastRelease returns the newest version that is tagged, or "".
func lastRelease(repository string) (last string, err error) {
	list := exec.Command("git", "tag", "--list", "v*")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("git tag: %w", err)
	}
	for tag := range strings.FieldsSeq(string(out)) {
		if semver.IsValid(tag) && semver.Compare(tag, last) > 0 {
			last = tag
		}
	}
	return last, nil
}

// serveTagged adds a version that is tagged to a proxy.
func serveTagged(proxy, repository, version string) error {
	dir, err := os.MkdirTemp("", "latchkey-tagged")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	git := func(args ...string) error {
		cmd := exec.Command("git", args...)
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
		}
		return nil
	}
	if err := git("worktree", "add", "--detach", tree, version); err != nil {
		return err
	}
	defer func() { _ = git("worktree", "remove", "--force", tree) }() // it is below the temporary directory
	return writeProxy(proxy, tree, version)
}
