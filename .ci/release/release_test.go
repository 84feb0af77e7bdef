package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aead.dev/minisign"
)

const testVersion = "9.8.7-rc.1"

// sources copies what git knows, and what it does not ignore, so that a release of it does not
// change the tree.
func sources(t *testing.T) (root string) {
	t.Helper()
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		from, to := filepath.Join("../..", name), filepath.Join(root, name)
		info, err := os.Lstat(from)
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted, or a link
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// builders reports whether the builders of the clients' languages are there.
func builders() bool {
	for _, name := range []string{"npm", "mvn", "javac"} {
		if _, err := exec.LookPath(name); err != nil {
			return false
		}
	}
	return exec.Command("python3", "-c", "import ensurepip, venv").Run() == nil
}

// signing makes a key that is thrown away, with a password if it has one. To encrypt it takes seconds.
func signing(t *testing.T, password string) (public minisign.PublicKey, path string) {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, private)
	}
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, path
}

// Two releases from two places have the same bytes. Each artefact is taken apart as a user would, and
// its program runs. Builds for three targets take minutes where nothing is cached: no file of the product
// is for one processor, so the others differ only in what Go itself makes of them.
func TestRelease_EveryArtefactRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the packages are Linux's")
	}
	t.Setenv("COMMIT", "0123abc")
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	public, key := signing(t, "")
	var dists []map[string][]byte
	clients := builders()
	for range 2 {
		r := &release{root: sources(t), version: testVersion, targets: []string{"linux/amd64", "linux/arm64", "darwin/arm64"}, clients: clients, key: key}
		if err := r.run(); err != nil {
			t.Fatal(err)
		}
		dists = append(dists, artefacts(t, r.dist))
	}
	dist := dists[0]
	for name, content := range dist {
		if !bytes.Equal(content, dists[1][name]) {
			t.Errorf("%s differs between two builds", name)
		}
	}
	names := []string{"SHA256SUMS", "SHA256SUMS.minisig", prefix("-darwin-arm64"), prefix("-image.tar"), prefix("-licenses.txt"), prefix(".cdx.json")}
	for _, processor := range processors {
		names = append(names, prefix("-linux-"+processor), prefix("-linux-"+processor+".deb"), prefix("-linux-"+processor+".rpm"))
	}
	version := clientVersion(t)
	if clients {
		names = append(names, "redlockd_client-"+version+"-py3-none-any.whl", "redlockd-client-"+version+".tgz", "redlockd-client-"+version+".jar", "redlockd-client-go-"+version+".tar.gz")
	}
	slices.Sort(names)
	if got := sortedNames(dist); !slices.Equal(got, names) {
		t.Fatalf("dist has %q, want %q", got, names)
	}
	wantSums(t, dist)
	if !minisign.Verify(public, dist["SHA256SUMS"], dist["SHA256SUMS.minisig"]) {
		t.Error("the signature is not of the key")
	}
	for _, processor := range processors {
		program := dist[prefix("-linux-"+processor)]
		wantStatic(t, program, processor)
		for where, files := range map[string]map[string][]byte{
			"deb": debFiles(t, dist[prefix("-linux-"+processor+".deb")]), "rpm": rpmFiles(t, dist[prefix("-linux-"+processor+".rpm")]),
		} {
			wantPackage(t, where+" "+processor, files, program)
		}
		wantImage(t, dist[prefix("-image.tar")], processor, program)
	}
	wantMachO(t, dist[prefix("-darwin-arm64")])
	wantSBOM(t, dist[prefix(".cdx.json")], dist[prefix("-licenses.txt")])
	if !clients {
		t.Skip("python3 with venv, npm, mvn or javac is missing: the packages of clients were not built")
	}
}

func prefix(suffix string) string { return "redlockd-" + testVersion + suffix }

func artefacts(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if all[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func sortedNames(all map[string][]byte) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func wantSums(t *testing.T, dist map[string][]byte) {
	t.Helper()
	var want string
	for _, name := range sortedNames(dist) {
		if !strings.HasPrefix(name, "SHA256SUMS") {
			want += fmt.Sprintf("%x  %s\n", sha256.Sum256(dist[name]), name)
		}
	}
	if got := string(dist["SHA256SUMS"]); got != want {
		t.Errorf("checksums:\n%s\nwant\n%s", got, want)
	}
}

// wantRuns runs the program if it is for this processor.
func wantRuns(t *testing.T, where string, program []byte, processor string) {
	t.Helper()
	if processor != runtime.GOARCH {
		return
	}
	path := filepath.Join(t.TempDir(), "redlockd")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(path, "version").CombinedOutput()
	if want := fmt.Sprintf("redlockd %s, commit 0123abc, %s linux/%s\n", testVersion, runtime.Version(), processor); err != nil || string(output) != want {
		t.Errorf("%s: version prints %q, want %q: %v", where, output, want, err)
	}
}

func wantStatic(t *testing.T, program []byte, processor string) {
	t.Helper()
	wantRuns(t, "binary", program, processor)
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[processor]; f.Machine != want {
		t.Errorf("the binary is for %s, want %s", f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s: the binary is not static: it has a %s", processor, p.Type)
		}
	}
	for _, s := range f.Sections {
		if s.Name == ".symtab" || strings.Contains(s.Name, "debug") {
			t.Errorf("%s: the binary is not stripped: it has %s", processor, s.Name)
		}
	}
}

// wantMachO: programs of macOS always use its own libraries.
func wantMachO(t *testing.T, program []byte) {
	t.Helper()
	f, err := macho.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || f.Cpu != macho.CpuArm64 || f.Segment("__DWARF") != nil {
		t.Errorf("the binary of macOS is for %s, with DWARF %v: %v", f.Cpu, f.Segment("__DWARF"), err)
	}
	for _, library := range libraries {
		if !strings.HasPrefix(library, "/usr/lib/") && !strings.HasPrefix(library, "/System/") {
			t.Errorf("the binary of macOS needs %s", library)
		}
	}
}

func wantPackage(t *testing.T, where string, files map[string][]byte, program []byte) {
	t.Helper()
	if !bytes.Equal(files["usr/bin/redlockd"], program) {
		t.Errorf("%s has not the binary: %q", where, sortedNames(files))
	}
	wantRuns(t, where, files["usr/bin/redlockd"], strings.Fields(where)[1])
	for shipped, at := range map[string]string{
		"configs/redlockd.service": "usr/lib/systemd/system/redlockd.service", "configs/redlockd.toml": "etc/redlockd/redlockd.toml",
		"configs/RUNBOOK.md": "usr/share/doc/redlockd/RUNBOOK.md", "configs/LOGS.md": "usr/share/doc/redlockd/LOGS.md",
		"configs/MEMBERSHIP.md": "usr/share/doc/redlockd/MEMBERSHIP.md", "LICENSE": "usr/share/doc/redlockd/copyright",
	} {
		text, err := os.ReadFile(filepath.Join("../..", shipped))
		if err != nil || !bytes.Equal(files[at], text) {
			t.Errorf("%s: %s is not %s: %v", where, at, shipped, err)
		}
	}
	if unit := string(files["usr/lib/systemd/system/redlockd.service"]); !strings.Contains(unit, "ExecStart=/usr/bin/redlockd ") {
		t.Errorf("%s: the unit does not start /usr/bin/redlockd", where)
	}
	for _, name := range []string{"usr/share/man/man1/redlockd.1.gz", "usr/share/bash-completion/completions/redlockd", "usr/share/doc/redlockd/licenses.txt"} {
		if len(files[name]) < 100 {
			t.Errorf("%s: %s has %d bytes", where, name, len(files[name]))
		}
	}
}

// debFiles reads a deb, and lets dpkg-deb do so where it is installed.
func debFiles(t *testing.T, deb []byte) map[string][]byte {
	t.Helper()
	if !bytes.HasPrefix(deb, []byte("!<arch>\n")) {
		t.Fatal("a deb is no ar archive")
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.deb")
		if err := os.WriteFile(path, deb, 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.Command("dpkg-deb", "-x", path, filepath.Join(dir, "x")).CombinedOutput(); err != nil {
			t.Errorf("dpkg-deb: %v\n%s", err, output)
		}
		info, err := exec.Command("dpkg-deb", "-f", path, "Package", "Version").CombinedOutput()
		if want := "Package: redlockd\nVersion: 9.8.7~rc.1\n"; err != nil || string(info) != want {
			t.Errorf("dpkg-deb: %q, want %q: %v", info, want, err)
		}
	}
	for rest := deb[8:]; len(rest) > 60; {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		if name == "data.tar.gz" {
			return tarFiles(t, unzipped(t, rest[60:60+size]))
		}
		rest = rest[60+size+size%2:]
	}
	t.Fatal("a deb has no data.tar.gz")
	return nil
}

// rpmFiles reads an rpm: the lead, two headers, and a cpio archive (newc).
func rpmFiles(t *testing.T, rpm []byte) map[string][]byte {
	t.Helper()
	at := 96
	for i := range 2 {
		if !bytes.HasPrefix(rpm[at:], []byte{0x8e, 0xad, 0xe8, 1}) {
			t.Fatalf("an rpm has no header %d", i)
		}
		at += 16 + 16*int(binary.BigEndian.Uint32(rpm[at+8:])) + int(binary.BigEndian.Uint32(rpm[at+12:]))
		if i == 0 {
			at = (at + 7) &^ 7
		}
	}
	all, cpio := map[string][]byte{}, unzipped(t, rpm[at:])
	for at := 0; ; {
		if string(cpio[at:at+6]) != "070701" && string(cpio[at:at+6]) != "070702" {
			t.Fatalf("an entry of cpio begins with %q", cpio[at:at+6])
		}
		field := func(i int) int {
			n, err := strconv.ParseInt(string(cpio[at+6+8*i:at+14+8*i]), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		size, length := field(6), field(11)
		name := string(cpio[at+110 : at+110+length-1])
		if name == "TRAILER!!!" {
			return all
		}
		at = (at + 110 + length + 3) &^ 3
		all[strings.TrimPrefix(strings.TrimPrefix(name, "."), "/")] = cpio[at : at+size]
		at = (at + size + 3) &^ 3
	}
}

func unzipped(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func tarFiles(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			all[strings.TrimPrefix(strings.TrimPrefix(header.Name, "."), "/")] = text
		}
	}
}

// ociObject has the fields of an index, a manifest and a configuration that are looked at.
type ociObject struct {
	Manifests []descriptor
	Layers    []descriptor
	Config    json.RawMessage
}

type descriptor struct {
	MediaType, Digest string
	Size              int
	Platform          struct{ OS, Architecture string }
	Annotations       map[string]string
}

// wantImage goes from index.json to the layer, as Podman and containerd do, and from manifest.json, as
// Docker's older store does.
func wantImage(t *testing.T, image []byte, processor string, program []byte) {
	t.Helper()
	files := tarFiles(t, image)
	object := func(text []byte, into any) {
		t.Helper()
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	blob := func(d descriptor) []byte {
		t.Helper()
		hex, _ := strings.CutPrefix(d.Digest, "sha256:")
		content := files["blobs/sha256/"+hex]
		if fmt.Sprintf("%x", sha256.Sum256(content)) != hex || len(content) != d.Size {
			t.Fatalf("the blob %s has %d bytes, want %d", d.Digest, len(content), d.Size)
		}
		return content
	}
	var top, index, manifest ociObject
	object(files["index.json"], &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != testVersion {
		t.Fatalf("index.json: %s", files["index.json"])
	}
	object(blob(top.Manifests[0]), &index)
	at := slices.IndexFunc(index.Manifests, func(d descriptor) bool { return d.Platform.OS == "linux" && d.Platform.Architecture == processor })
	if at < 0 || len(index.Manifests) != len(processors) {
		t.Fatalf("the index has %+v", index.Manifests)
	}
	object(blob(index.Manifests[at]), &manifest)
	layer := tarFiles(t, unzipped(t, blob(manifest.Layers[0])))
	if len(manifest.Layers) != 1 || !bytes.Equal(layer["redlockd"], program) || bytes.Count(layer["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")) < 100 {
		t.Errorf("the image for %s has %d layers with %q", processor, len(manifest.Layers), sortedNames(layer))
	}
	wantRuns(t, "image", layer["redlockd"], processor)

	var config struct {
		OS, Architecture string
		Config           struct {
			User            string
			Entrypoint, Cmd []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	var d descriptor
	object(manifest.Config, &d)
	object(blob(d), &config)
	diff := fmt.Sprintf("sha256:%x", sha256.Sum256(unzipped(t, blob(manifest.Layers[0]))))
	if config.Architecture != processor || config.Config.User != "65532:65532" || !slices.Equal(config.RootFS.DiffIDs, []string{diff}) {
		t.Errorf("configuration %+v, want the layer %s", config, diff)
	}
	dockerfile, err := os.ReadFile("../../configs/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for word, value := range map[string][]string{"ENTRYPOINT": config.Config.Entrypoint, "CMD": config.Config.Cmd} {
		text, _ := json.Marshal(value)
		if line := word + " " + strings.ReplaceAll(string(text), ",", ", "); !strings.Contains(string(dockerfile), line+"\n") {
			t.Errorf("the image has %s, and the Dockerfile does not", line)
		}
	}

	var loaded []struct {
		Config           string
		RepoTags, Layers []string
	}
	object(files["manifest.json"], &loaded)
	wanted := "redlockd:" + testVersion + "-" + processor
	for _, one := range loaded {
		if slices.Contains(one.RepoTags, wanted) {
			if one.Config != "blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:") || !slices.Equal(one.Layers, []string{"blobs/sha256/" + strings.TrimPrefix(manifest.Layers[0].Digest, "sha256:")}) {
				t.Errorf("manifest.json: %+v", one)
			}
			return
		}
	}
	t.Errorf("manifest.json has no %s", wanted)
}

// wantSBOM: every module that the product's go.mod requires of shipped code is in both lists, with a licence.
func wantSBOM(t *testing.T, sbom, licences []byte) {
	t.Helper()
	var list struct {
		BomFormat  string
		Metadata   struct{ Component struct{ Version string } }
		Components []struct {
			Name, Version string
			Evidence      struct{ Licenses []any }
			Licenses      []any
		}
	}
	if err := json.Unmarshal(sbom, &list); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sbom, []byte(`"SHA-512"`)) {
		t.Error("the SBOM has the checksum of a tool that was built on this machine")
	}
	found := 0
	for _, c := range list.Components {
		if strings.Contains(string(licences), "==== "+c.Name+" "+c.Version+" ====\n") {
			found++
			if len(c.Licenses)+len(c.Evidence.Licenses) == 0 && c.Name != "github.com/tidwall/btree" { // MIT, in other words
				t.Errorf("the SBOM has no licence of %s", c.Name)
			}
		}
	}
	if want := strings.Count(string(licences), "==== "); list.BomFormat != "CycloneDX" || list.Metadata.Component.Version != testVersion || found != want-1 || found < 15 { // Go itself is no module
		t.Errorf("%s of %q: %d modules, licences of %d", list.BomFormat, list.Metadata.Component.Version, found, want)
	}
}

// clientVersion is the one of CHANGELOG.md.
func clientVersion(t *testing.T) string {
	t.Helper()
	r := &release{root: "../.."}
	version, err := r.currentVersion()
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ = strings.Cut(version, "-")
	return version
}

// One version everywhere.
func TestVersion_IsThatOfTheChangelogInAllPackages(t *testing.T) {
	version, found := clientVersion(t), 0
	for name, line := range map[string]string{
		"python/pyproject.toml": `version = "%s"`, "python/redlockd_client/__init__.py": `__version__ = "%s"`, "node/package.json": `"version": "%s"`,
		"java/pom.xml": "<version>%s</version>", "go/lock.go": `const Version = "%s"`,
	} {
		text, err := os.ReadFile(filepath.Join("../../commands/clients", name))
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(line, version)) {
			t.Errorf("%s has not the version %s: %v", name, version, err)
		}
		found++
	}
	if found < 5 {
		t.Errorf("%d packages were looked at", found)
	}
}

func TestRun_RefusesAWrongVersionOrKeyBeforeItBuilds(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(root, "dist", "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, key := signing(t, "right")
	t.Setenv("MINISIGN_PASSWORD", "wrong")
	for _, c := range []struct {
		release release
		want    string
	}{
		{release{root: root, version: "soon"}, `version "soon"`},
		{release{root: root, version: "1.0.0", key: key}, "MINISIGN_PASSWORD"},
		{release{root: root, version: "1.0.0", key: kept}, "must be a key of minisign"},
		{release{root: root, version: "1.0.0", key: kept + "x"}, "no such file"},
	} {
		if err := c.release.run(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.release, err, c.want)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error("the former release is gone:", err)
	}
}

func TestLicences_AModuleWithoutOneStopsTheRelease(t *testing.T) {
	dir := t.TempDir()
	if _, err := licencesIn(dir); err == nil {
		t.Error("a directory without a licence passes")
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("MIT"), fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	if text, err := licencesIn(dir); err != nil || !strings.Contains(text, "MIT") {
		t.Errorf("%q: %v", text, err)
	}
}
