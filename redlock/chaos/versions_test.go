package chaos

// versions_test.go: the daemon of another commit, built from a copy of its tree, and the
// version of the format that each of two trees stores on the masters.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// version is a daemon of one commit.
type version struct {
	name   string
	binary string
	format string   // of what it stores on the masters
	env    []string // further variables of its environment
	words  []string // further options
}

// lastRelease stands for the last release before this commit or, without one, for the
// commit before.
const lastRelease = "last"

// thisVersion is the daemon of this tree.
func thisVersion(t *testing.T) version {
	t.Helper()
	binary, err := buildDaemon()
	if err != nil {
		t.Fatal(err)
	}
	return version{name: "new", binary: binary, format: formatOf(t, root)}
}

// formerVersion is the daemon of another commit.
func formerVersion(t testing.TB, commit string) version {
	t.Helper()
	tree := export(t, commitOf(t, commit))
	binary := filepath.Join(tree, "redlockd-former")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir = tree
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the daemon of %s: %v; without a network its modules must be in the module cache, or choose another UPGRADE_FROM\n%s", commit, err, output)
	}
	return version{name: "old", binary: binary, format: formatOf(t, tree)}
}

// commitOf is the id of a commit. A clone without the last release is no failure; the test
// is skipped, and the end of the output repeats that.
func commitOf(t testing.TB, name string) string {
	t.Helper()
	if name == lastRelease {
		name = lastCommit()
	}
	id, err := git("rev-parse", "--verify", name+"^{commit}")
	switch {
	case err == nil:
		t.Logf("the old daemon is that of %s, %s", name, id)
		return id
	case name != parentCommit:
		t.Fatalf("UPGRADE_FROM=%s: %v; want a commit of this clone, or %s", name, err, lastRelease)
	}
	text := fmt.Sprintf("SKIPPED: %s: this tree has no history, or a shallow one: %v; git fetch --deepen=1 fetches the commit before, UPGRADE_FROM=COMMIT names another", t.Name(), err)
	failed.append(text)
	t.Skip(text)
	return ""
}

const parentCommit = "HEAD~1"

// lastCommit is the last tag before this commit or, without one, the commit before.
func lastCommit() string {
	if tag, err := git("describe", "--tags", "--abbrev=0", parentCommit); err == nil {
		return tag
	}
	return parentCommit
}

func git(words ...string) (string, error) {
	output, err := exec.Command("git", append([]string{"-C", root}, words...)...).Output()
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		err = fmt.Errorf("git %s: %w: %s", words[0], err, strings.TrimSpace(string(failure.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// export copies the tree of a commit, for as long as the test takes.
func export(t testing.TB, commit string) (tree string) {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "tree.tar")
	if _, err := git("archive", "--output", archive, commit); err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("tar", "-x", "-f", archive, "-C", tree).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, output)
	}
	return tree
}

var formatLine = regexp.MustCompile(`(?m)^const formatVersion = "([^"]+)"`)

// formatOf is the format of a tree. Daemons of one format must be able to share masters,
// daemons of two formats refuse it.
func formatOf(t testing.TB, tree string) string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(tree, "pool"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range formatLine.FindAllSubmatch(text, -1) {
			found = append(found, string(match[1]))
		}
		return err
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("formatVersion of %s: %q (%v), want one constant below pool", tree, found, err)
	}
	return found[0]
}

// changeOfFormat is the line of the changelog that announces a format.
func changeOfFormat(changelog, format string) string {
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(format) + `\b`)
	for line := range strings.Lines(changelog) {
		if strings.Contains(line, "format") && word.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestUpgrade_ReadsTheFormatOfATree(t *testing.T) {
	tree := t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, "pool"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "package pool\n\n// formatVersion = \"v0\"\nconst formatVersion = \"v7\"\n"
	if err := os.WriteFile(filepath.Join(tree, "pool", "anywhere.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if format := formatOf(t, tree); format != "v7" {
		t.Errorf("format %q, want v7", format)
	}
	if format := formatOf(t, root); !strings.HasPrefix(format, "v") {
		t.Errorf("format %q of this tree, want v and a number", format)
	}
}

func TestUpgrade_FindsTheLineOfTheChangelogThatAnnouncesAFormat(t *testing.T) {
	changelog := "- Requires go v2.\n- The format is v22.\n- The format on the masters is v2: stop all daemons.\n"
	if line := changeOfFormat(changelog, "v2"); line != "- The format on the masters is v2: stop all daemons." {
		t.Errorf("found %q", line)
	}
	if line := changeOfFormat(changelog, "v3"); line != "" {
		t.Errorf("found %q", line)
	}
}
