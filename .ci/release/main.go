// Makes a release in dist/: static binaries, deb and rpm, an image, a list of what is in them
// (SBOM), the licences of others, packages of clients, checksums and, with a key, a signature.
// Same sources, same versions of Go and of the languages' builders: same bytes. The tools are
// libraries of this module, pinned by its go.sum; the product's go.mod has none of them.
//
// goreleaser would do the packages by the same nfpm, but needs a container engine for an image,
// and compiles for many minutes; ko cannot write an image for two processors without a registry.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"
)

// release is one run.
type release struct {
	root    string // of the sources
	dist    string
	version string
	targets []string // OS/ARCH[/LEVEL]
	clients bool
	key     string    // of minisign, "" for no signature
	made    time.Time // of every file
}

func main() {
	var r release
	var targets string
	flag.StringVar(&r.root, "root", "../..", "directory of the sources")
	flag.StringVar(&r.version, "version", "", "such as 1.2.3; without it, the version of CHANGELOG.md, with -dev and the commit unless that commit has its tag")
	flag.StringVar(&targets, "targets", "linux/amd64 linux/amd64/v3 linux/arm64 darwin/amd64 darwin/arm64", "binaries to build; packages and image are for linux/amd64 and linux/arm64")
	flag.BoolVar(&r.clients, "clients", true, "build the packages of commands/clients, which needs Python, Node and Maven")
	flag.StringVar(&r.key, "key", "", "file of a minisign key that signs the checksums; MINISIGN_PASSWORD decrypts it")
	flag.Parse()
	r.targets = strings.Fields(targets)
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run() (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	r.dist = filepath.Join(r.root, "dist")
	if r.version == "" {
		if r.version, err = r.currentVersion(); err != nil {
			return err
		}
	}
	if !regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(r.version) {
		return fmt.Errorf("version %q: want one such as 1.2.3 or 1.2.3-rc.1", r.version)
	}
	r.made = r.lastChange()
	if err := os.Setenv("SOURCE_DATE_EPOCH", strconv.FormatInt(r.made.Unix(), 10)); err != nil { // for nfpm, pip and npm
		return err
	}
	var key minisign.PrivateKey
	if r.key != "" { // a wrong password shows before minutes of work
		if key, err = privateKey(r.key); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(r.dist); err != nil {
		return err
	}
	steps := []func() error{r.binaries, r.licences, r.sbom, r.packages, r.image}
	if r.clients {
		steps = append(steps, r.clientPackages)
	}
	for _, step := range append(steps, r.checksums) {
		if err := step(); err != nil {
			return err
		}
	}
	if r.key != "" {
		return r.sign(key)
	}
	return nil
}

// currentVersion is the first of CHANGELOG.md.
func (r *release) currentVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)\b`).FindSubmatch(text)
	if match == nil {
		return "", errors.New("CHANGELOG.md has no heading with a version, such as ## 1.2.3")
	}
	version := string(match[1])
	if tag, _ := r.git("describe", "--tags", "--exact-match", "--dirty"); tag == "v"+version {
		return version, nil
	}
	commit, err := r.git("describe", "--always", "--exclude=*", "--dirty")
	if err != nil {
		return version, nil // sources without git are those of the release
	}
	return version + "-dev." + strings.ReplaceAll(commit, "-", "."), nil
}

func (r *release) git(args ...string) (string, error) {
	output, err := exec.Command("git", append([]string{"-C", r.root}, args...)...).Output()
	return strings.TrimSpace(string(output)), err
}

// lastChange is SOURCE_DATE_EPOCH or the time of the commit.
func (r *release) lastChange() time.Time {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		text, _ = r.git("log", "-1", "--format=%ct")
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		seconds = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC).Unix() // the first that zip files can have
	}
	return time.Unix(seconds, 0).UTC()
}

// file is the path of an artefact, by what follows name and version.
func (r *release) file(suffix string) string {
	return filepath.Join(r.dist, "redlockd-"+r.version+suffix)
}

// command runs a program and shows its output only if it fails.
func command(dir, name string, args ...string) error {
	program := exec.Command(name, args...)
	program.Dir = dir
	if output, err := program.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, output)
	}
	return nil
}

func (r *release) binaries() error {
	return command(r.root, filepath.Join(r.root, ".ci", "build"), append([]string{r.version}, r.targets...)...)
}

// sbom lists the modules of the Linux binary as it was built. It has neither a serial number, nor a
// time, nor the checksum of the tool as it was built here: they would differ from build to build.
func (r *release) sbom() error {
	path := r.file(".cdx.json")
	if err := command("", "go", "tool", "cyclonedx-gomod", "bin", "-json", "-licenses", "-noserial", "-notimestamp",
		"-version", r.version, "-output", path, r.file("-linux-amd64")); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	metadata, _ := list["metadata"].(map[string]any)
	tools, _ := metadata["tools"].([]any)
	for _, tool := range tools {
		if fields, is := tool.(map[string]any); is {
			delete(fields, "hashes")
		}
	}
	if text, err = json.MarshalIndent(list, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// checksums has a line for each artefact, as sha256sum prints it.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		f, err := os.Open(filepath.Join(r.dist, entry.Name()))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.dist, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func privateKey(path string) (minisign.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return minisign.PrivateKey{}, err
	}
	if minisign.IsEncrypted(text) {
		key, err := minisign.DecryptKey(os.Getenv("MINISIGN_PASSWORD"), text)
		if err != nil {
			err = fmt.Errorf("%s: %w: set MINISIGN_PASSWORD to its password", path, err)
		}
		return key, err
	}
	var key minisign.PrivateKey
	if err := key.UnmarshalText(text); err != nil {
		return key, fmt.Errorf("%s: %w: it must be a key of minisign", path, err)
	}
	return key, nil
}

// sign signs the checksums, as `minisign -S` does. Verify: minisign -Vm SHA256SUMS -P PUBLIC-KEY
func (r *release) sign(key minisign.PrivateKey) error {
	path := filepath.Join(r.dist, "SHA256SUMS")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	signature := minisign.SignWithComments(key, text, "redlockd "+r.version, "verify: minisign -Vm SHA256SUMS -P PUBLIC-KEY; then sha256sum -c SHA256SUMS")
	return os.WriteFile(path+".minisig", signature, 0o644)
}
