package daemon

// Tests of the build of binaries: .ci/build calls go with the version and the commit, and the image's
// build has what it needs. The tests in .ci/release take whole releases apart.

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ignoredBy reports whether a file is left out, by the rules of a .dockerignore: a pattern is
// for a path from the root or for a directory above it, and the last one that fits decides.
func ignoredBy(rules, path string) (ignored bool) {
	for line := range strings.Lines(rules) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, negated := strings.CutPrefix(line, "!")
		form := strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(pattern))
		if regexp.MustCompile("^" + form + "(/.*)?$").MatchString(path) {
			ignored = !negated
		}
	}
	return ignored
}

func TestIgnoredBy_FollowsDocker(t *testing.T) {
	rules := "# a comment\n.git\n.ci/*\n!.ci/build\n**/*_test.go\nbench\n"
	for path, want := range map[string]bool{
		".git": true, ".git/config": true, ".gitignore": false, ".ci/run": true, ".ci/build": false, ".ci": false, "main_test.go": true,
		"proxy/daemon/main_test.go": true, "bench/a/b.go": true, "proxy/bench": false, "main.go": false,
	} {
		if got := ignoredBy(rules, path); got != want {
			t.Errorf("%s is left out: %t, want %t", path, got, want)
		}
	}
}

// buildContext copies what .dockerignore leaves, as docker sends it.
func buildContext(t *testing.T) (dir string) {
	t.Helper()
	rules, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ignoredBy(string(rules), filepath.ToSlash(path)) && entry.IsDir():
			return filepath.SkipDir
		case ignoredBy(string(rules), filepath.ToSlash(path)) || !entry.Type().IsRegular() && !entry.IsDir():
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(dir, path), 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// release runs .ci/build in a directory and returns what it prints.
func release(t *testing.T, dir string, environ []string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(dir, ".ci", "build"), args...)
	command.Env = append(os.Environ(), environ...)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}

// go list reads every file that the build needs, also those that are embedded.
func TestDockerfile_GetsWhatItBuildsFrom(t *testing.T) {
	dir := buildContext(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Dir = dir
	if output, err := list.CombinedOutput(); err != nil || !strings.Contains(string(output), "\nredlockd/proxy/daemon\n") {
		t.Errorf("%v\n%s", err, output)
	}
	for _, name := range []string{".ci/build", "configs/profile.pgo", "go.sum"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "bench")); err == nil {
		t.Error("the benchmarks are sent to the image's build")
	}
}

// A program in place of go shows what it is called with.
func TestBuild_NamesTheCommitAndTheMachine(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, ".ci"), os.DirFS(".ci")); err != nil {
		t.Fatal(err)
	}
	builder := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(builder, []byte("#!/bin/sh\nfor word; do [ \"$last\" = -o ] && : >\"$word\"; last=$word; done\necho \"$GOOS/$GOARCH GOAMD64=$GOAMD64 $@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	revision := func(environ ...string) string {
		output := release(t, dir, append([]string{"COMMIT=", "GO=" + builder, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir)}, environ...), "v1", "linux/amd64")
		if match := regexp.MustCompile(`cli\.release=v1 -X redlockd/commands/cli\.revision=(\S+)`).FindStringSubmatch(output); match != nil {
			return match[1]
		}
		return output
	}
	output := release(t, dir, []string{"COMMIT=abc", "GO=" + builder}, "v1")
	targets := []string{"linux/amd64", "linux/amd64/v3", "linux/arm64", "darwin/amd64", "darwin/arm64"}
	for _, target := range targets {
		parts := append(strings.Split(target, "/"), "v1")
		want := fmt.Sprintf(`(?m)^%s/%s GOAMD64=%s build .* -pgo configs/profile\.pgo .* -o dist/redlockd-v1-%s \.$`, parts[0], parts[1], parts[2], strings.ReplaceAll(target, "/", "-"))
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("no line %s in what go is called with:\n%s", want, output)
		}
	}
	if got := strings.Count(output, " build "); got != len(targets) {
		t.Errorf("%d builds, want %d:\n%s", got, len(targets), output)
	}
	if got := revision(); got != "unknown" {
		t.Errorf("without git the commit is %q", got)
	}
	if got := revision("COMMIT=abc"); got != "abc" {
		t.Errorf("with COMMIT=abc it is %q", got)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine: the commit of a working copy is not checked")
	}
	git := func(args ...string) string {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, output)
		}
		return strings.TrimSpace(string(output))
	}
	git("init", "--quiet")
	git("add", ".ci")
	git("commit", "--quiet", "--no-gpg-sign", "-m", "a")
	git("tag", "v1")
	commit := git("rev-parse", "HEAD")
	if got := revision(); got != commit {
		t.Errorf("the commit is %q, want %q", got, commit)
	}
	if err := os.WriteFile(filepath.Join(dir, ".ci", "run"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := revision(); got != commit+"-dirty" {
		t.Errorf("the commit is %q, want %q", got, commit+"-dirty")
	}
}

// The image's build calls it with words that it has.
func TestDockerfile_BuildsARelease(t *testing.T) {
	text := file(t, "Dockerfile")
	for _, line := range []string{"ARG VERSION=devel\n", "ARG COMMIT=unknown\n", `RUN .ci/build "$VERSION" "linux/$(go env GOARCH)" && mv dist/redlockd-* /redlockd` + "\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
}
