package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// processors are those of packages and of the image.
var processors = []string{"amd64", "arm64"}

// packages makes deb and rpm as configs/package.yaml describes them.
func (r *release) packages() error {
	pages, err := os.MkdirTemp("", "redlockd-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(pages)
	if err := r.writePages(pages); err != nil {
		return err
	}
	for _, processor := range processors {
		variables := map[string]string{"VERSION": r.version, "ARCH": processor, "BINARY": r.file("-linux-" + processor), "LICENSES": r.file("-licenses.txt"), "PAGES": pages, "ROOT": r.root}
		config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "configs", "package.yaml"), func(name string) string { return variables[name] })
		if err != nil {
			return err
		}
		config.MTime = r.made
		for _, format := range []string{"deb", "rpm"} {
			if err := r.write(config, format, processor); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *release) write(config nfpm.Config, format, processor string) error {
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return os.WriteFile(r.file("-linux-"+processor+"."+format), out.Bytes(), 0o644)
}

// writePages writes what the program prints about itself: the manual page and completions.
func (r *release) writePages(dir string) error {
	program := []string{r.file("-" + runtime.GOOS + "-" + runtime.GOARCH)}
	if _, err := os.Stat(program[0]); err != nil {
		program = []string{"go", "run", "."}
	}
	for name, words := range map[string][]string{"redlockd.1": {"man"}, "bash": {"completion", "bash"}, "zsh": {"completion", "zsh"}, "fish": {"completion", "fish"}} {
		all := append(append([]string{}, program...), words...)
		print := exec.Command(all[0], all[1:]...)
		print.Dir = r.root
		text, err := print.Output()
		if err != nil {
			return err
		}
		if name == "redlockd.1" {
			var packed bytes.Buffer
			w := gzip.NewWriter(&packed)
			if _, err := w.Write(text); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
			name, text = "redlockd.1.gz", packed.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
