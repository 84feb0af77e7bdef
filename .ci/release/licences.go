package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// licences writes what the licences of Go and of every module in the binary require beside it:
// their texts. A module without one stops the release.
func (r *release) licences() error {
	info, err := buildinfo.ReadFile(r.file("-linux-amd64"))
	if err != nil {
		return err
	}
	var all strings.Builder
	add := func(name, dir string) error {
		texts, err := licencesIn(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(&all, "==== %s ====\n\n%s\n", name, texts)
		return nil
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	if err := add("Go "+strings.TrimPrefix(info.GoVersion, "go"), strings.TrimSpace(string(goroot))); err != nil {
		return err
	}
	for _, dep := range info.Deps {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", dep.Path)
		list.Dir = r.root
		dir, err := list.Output()
		if err != nil {
			return fmt.Errorf("%s: %w", dep.Path, err)
		}
		if err := add(dep.Path+" "+dep.Version, strings.TrimSpace(string(dir))); err != nil {
			return err
		}
	}
	return os.WriteFile(r.file("-licenses.txt"), []byte(all.String()), 0o644)
}

func licencesIn(dir string) (texts string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		name := strings.ToUpper(strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())))
		if entry.IsDir() || !slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		texts += string(text) + "\n"
	}
	if texts == "" {
		return "", fmt.Errorf("no licence in %s", dir)
	}
	return texts, nil
}
