package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// clientPackages builds the packages of commands/clients with the builders of their languages,
// each in a copy: none leaves files in the tree.
func (r *release) clientPackages() error {
	work, err := os.MkdirTemp("", "redlockd-clients-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, os.DirFS(filepath.Join(r.root, "commands", "clients"))); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(work, name) }
	for _, step := range [][]string{
		{"", "python3", "-m", "venv", in("venv")},
		{"python", in("venv/bin/pip"), "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", r.dist, "."},
		{"node", "npm", "pack", "--silent", "--pack-destination", r.dist},
		{"java", "mvn", "-q", "-B", "-DskipTests", "package"},
	} {
		if err := command(in(step[0]), step[1], step[2:]...); err != nil {
			return err
		}
	}
	jars, err := filepath.Glob(in("java/target/redlockd-client-*.jar"))
	if err != nil || len(jars) != 1 {
		return fmt.Errorf("Maven made %q: %v", jars, err)
	}
	jar, err := os.ReadFile(jars[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dist, filepath.Base(jars[0])), jar, 0o644); err != nil {
		return err
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(jars[0]), "redlockd-client-"), ".jar")
	return r.goModule(in("go"), "redlockd-client-go-"+version)
}

// goModule packs the sources of the Go package: its users unpack them and name the directory in a
// replace of go.mod, until the module has an address of its own.
func (r *release) goModule(dir, name string) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	out := &archive{tar: tar.NewWriter(w), r: r, has: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return out.add(name+"/"+filepath.ToSlash(below), 0o644, text)
	})
	if err != nil {
		return err
	}
	if err := out.tar.Close(); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, name+".tar.gz"), packed.Bytes(), 0o644)
}
