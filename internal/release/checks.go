package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

const (
	gorelease   = "golang.org/x/exp/cmd/gorelease@v0.0.0-20261113113407-e3970619a1a4"
	cyclonedx   = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.2.0"
)

// A release is a version that is to be tagged.
type release struct {
	version    string
	repository string // its directory
	last       string // the newest version that is tagged; "" if there is none
	proxy      string // a directory with the modules of both versions
	bills      string // the directory of the bills of materials
}

// A check is one that a release must pass. note is for people.
type check struct {
	what string
	run  func(r *release) (note string, err error)
}

// quick are checks without which the others make no sense.
var quick = []check{
	{"the version is one of semantic versioning, and newer than the last", (*release).checkVersion},
	{"the modules require each other at this version", (*release).checkRequirements},
	{"the working tree is clean", (*release).checkClean},
	{"CHANGELOG.md has a section on this version", (*release).checkChangelog},
}

var slow = []check{
	{"the exported names fit the version", (*release).checkNames},
	{"all licences are known, and allow use in any program", (*release).checkBills},
	{"no known vulnerability", (*release).checkVulnerabilities},
	{"a newcomer can follow the README", (*release).checkReadme},
}

func (r *release) checkVersion() (string, error) {
	switch {
	case semver.Canonical(r.version) != r.version || semver.Build(r.version) != "":
		return "", fmt.Errorf("%q is no version: write it like v1.2.3 or v1.2.3-rc.1", r.version)
	case semver.Major(r.version) != "v0" && semver.Major(r.version) != "v1":
		return "", errors.New("from v2 on the paths of the modules must end with the major version")
	case r.last != "" && semver.Compare(r.version, r.last) <= 0:
		return "", fmt.Errorf("the last one is %s", r.last)
	}
	return "", nil
}

// checkRequirements sets the version where another is required, since that is all that can be done about it.
func (r *release) checkRequirements() (string, error) {
	changed, err := setVersion(r.repository, r.version)
	if err == nil {
		changed, err = r.setSums(changed)
	}
	if err == nil && len(changed) > 0 {
		err = fmt.Errorf("they do now: commit %s, and try again", strings.Join(changed, ", "))
	}
	return "", err
}

// setSums puts each module into the proxy. Before that, it puts the sums of the modules that are there already into the
// go.sum of this one. A module has no files of a nested module, so no sum depends on a later one.
func (r *release) setSums(changed []string) ([]string, error) {
	for _, dir := range published {
		name := filepath.Join(dir, "go.sum")
		before, err := os.ReadFile(filepath.Join(r.repository, name))
		if err != nil {
			return nil, err
		}
		if _, err := r.output(filepath.Join(r.repository, dir), "go", "mod", "tidy"); err != nil {
			return nil, err
		}
		after, err := os.ReadFile(filepath.Join(r.repository, name))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, after) {
			changed = append(changed, filepath.ToSlash(name))
		}
		if err := writeModule(r.proxy, r.repository, dir, r.version); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

func (r *release) checkClean() (string, error) {
	out, err := r.output(r.repository, "git", "status", "--porcelain")
	if err == nil && out != "" {
		err = fmt.Errorf("commit or remove\n%s", out)
	}
	return "", err
}

func (r *release) checkChangelog() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.repository, "CHANGELOG.md"))
	if err == nil && !regexp.MustCompile(`(?m)^## `+regexp.QuoteMeta(r.version)+`\b`).Match(text) {
		err = fmt.Errorf("write a heading ## %s", r.version)
	}
	return "", err
}

// checkNames compares the exported names with those of the last version, as gorelease does. After a candidate, names
// may change, so the differences are only shown.
func (r *release) checkNames() (note string, err error) {
	if r.last == "" {
		return "there is no earlier version to compare with", nil
	}
	if err := serveTagged(r.proxy, r.repository, r.last); err != nil {
		return "", err
	}
	var errs []error
	for _, dir := range published {
		out, err := r.output(filepath.Join(r.repository, dir), "go", "run", gorelease, "-base="+r.last, "-version="+r.version)
		switch {
		case err == nil:
			note += "\n" + pathOf(dir) + ":\n" + out
		case semver.Prerelease(r.last) != "":
			note += fmt.Sprintf("\n%s: %v", pathOf(dir), err)
		default:
			errs = append(errs, fmt.Errorf("%s: %w", pathOf(dir), err))
		}
	}
	return note, errors.Join(errs...)
}

// checkBills writes a bill of materials for each module, and reads the licences in it.
func (r *release) checkBills() (string, error) {
	if err := os.MkdirAll(r.bills, 0o777); err != nil {
		return "", err
	}
	licences := make(map[string]bool)
	var errs []error
	for _, dir := range published {
		bill := filepath.Join(r.bills, strings.ReplaceAll(strings.TrimPrefix(pathOf(dir), path.Dir(root)+"/"), "/", "-")+".cdx.json")
		if _, err := r.output(filepath.Join(r.repository, dir), "go", "run", cyclonedx, "mod", "-json", "-licenses", "-std", "-output", bill); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, readBill(bill, licences))
	}
	return fmt.Sprintf("%s; the bills of materials are in %s", strings.Join(slices.Sorted(maps.Keys(licences)), ", "), r.bills), errors.Join(errs...)
}

func (r *release) checkVulnerabilities() (note string, err error) {
	var errs []error
	for _, dir := range published {
		out, err := r.output(filepath.Join(r.repository, dir), filepath.Join(r.repository, ".ci/vulnerabilities"), "go", "run", govulncheck, "./...")
		if err != nil {
			errs = append(errs, err)
		} else if strings.Contains(out, "NOT DONE") {
			note = "NOT DONE: the database cannot be reached from here"
		}
	}
	return note, errors.Join(errs...)
}

func (r *release) checkReadme() (string, error) {
	_, err := r.output(filepath.Join(r.repository, "internal/release"), "go", "test", "-count=1", "-timeout=30m", ".")
	return "", err
}

// output runs a command and returns what it prints.
func (r *release) output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if dir != filepath.Join(r.repository, "internal/release") {
		env, err := outside(r.proxy, filepath.Join(r.proxy, "cache"))
		if err != nil {
			return "", err
		}
		cmd.Env = append(os.Environ(), env...)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, out.String())
	}
	return out.String(), nil
}
