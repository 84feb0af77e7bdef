package daemon

// Tests that the deployment files fit the program, and what the tests of the single files
// share: see kubernetes_test.go, compose_test.go, unit_test.go and release_test.go.

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlockd/configs"
	"redlockd/pool/faulty"
)

func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("configs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wantServes loads a command line and environment as the daemon would, and
// expects its ports.
func wantServes(t *testing.T, args, environ []string, port, admin string) configs.Config {
	t.Helper()
	config, err := configs.Load(args, environ)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(config.Listen[0], ":"+port) || !strings.HasSuffix(config.AdminListen, ":"+admin) {
		t.Errorf("%q listens on %q and %q, want ports %s and %s", args, config.Listen, config.AdminListen, port, admin)
	}
	if config.Bootstrap {
		t.Errorf("%q sets bootstrap", args)
	}
	return config
}

// Left in force, it grants locks that are still held once all masters have lost
// their memory. The subcommand of the same name is no option.
func TestShippedFiles_NeverSetBootstrap(t *testing.T) {
	set := regexp.MustCompile(`(?i)--bootstrap|REDLOCKD_BOOTSTRAP|bootstrap["']?\s*[=:]\s*["']?(true|1|yes|on)\b`)
	for _, line := range []string{"--bootstrap", "REDLOCKD_BOOTSTRAP: \"true\"", "bootstrap = true"} {
		if !set.MatchString(line) {
			t.Fatalf("%s is not found", line)
		}
	}
	for name, text := range shippedFiles(t) {
		if found := set.FindString(text); found != "" {
			t.Errorf("%s sets bootstrap: %s", name, found)
		}
	}
}

// shippedFiles are the files in configs that are neither code nor pages, by path.
func shippedFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir("configs", func(path string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err == nil && !entry.IsDir() && ext != ".go" && ext != ".md" {
			name := strings.TrimPrefix(filepath.ToSlash(path), "configs/")
			all[name] = file(t, name)
		}
		return err
	})
	if err != nil || len(all) < 14 {
		t.Fatalf("%d shipped files were read, there are more: %v", len(all), err)
	}
	return all
}

// Also those in comments, which nothing loads.
func TestShippedFiles_NameVariablesThatAreOptions(t *testing.T) {
	options := make([]string, 0, 64)
	for _, row := range configs.Rows() {
		options = append(options, "REDLOCKD_"+strings.ToUpper(strings.ReplaceAll(row.Name, "-", "_")))
	}
	seen := 0
	for name, text := range shippedFiles(t) {
		for _, variable := range regexp.MustCompile(`REDLOCKD_[A-Z_]*[A-Z]`).FindAllString(text, -1) {
			if seen++; !slices.Contains(options, variable) {
				t.Errorf("%s names %s, which is no option", name, variable)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d variables were found, there are more", seen)
	}
}

// dockerInstruction is one instruction, on one line.
var dockerInstruction = regexp.MustCompile(`^([A-Z]+) (.*)`)

func TestDockerfile_ServesOnThePortsItExposes(t *testing.T) {
	text := file(t, "Dockerfile")
	said := map[string][]string{}
	for line := range strings.Lines(text) {
		if match := dockerInstruction.FindStringSubmatch(line); match != nil {
			said[match[1]] = append(said[match[1]], strings.TrimSpace(match[2]))
		} else if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			t.Errorf("%q is no instruction", line)
		}
	}
	for name := range said {
		if !slices.Contains([]string{"FROM", "WORKDIR", "COPY", "RUN", "ARG", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}, name) {
			t.Errorf("%s is no instruction, or a new one", name)
		}
	}
	var args []string
	if err := json.Unmarshal([]byte(said["CMD"][0]), &args); err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(said["EXPOSE"][0])
	wantServes(t, args, nil, ports[0], ports[1])
	for _, line := range []string{"USER 65532:65532\n", `ENTRYPOINT ["/redlockd"]`, "COPY --from=build /redlockd /redlockd"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
	module, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	release := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))
	if want := "golang:" + release[1] + " AS build"; said["FROM"][0] != want {
		t.Errorf("it builds with %s, go.mod needs %s", said["FROM"][0], want)
	}
}

// startShipped runs the command of a master's container with files of this machine, on a port
// of it. What the container alone has is left out: all addresses, and the directory of data.
func startShipped(t *testing.T, command []string, user, password string, local func(file string) string) *faulty.Server {
	t.Helper()
	if len(command) < 2 || command[0] != "redis-server" || len(command)%2 != 0 {
		t.Fatalf("the masters run %q", command)
	}
	var args []string
	for i := 2; i < len(command); i += 2 {
		option, value := command[i], command[i+1]
		if strings.HasPrefix(value, "/") {
			value = local(value)
		}
		if option != "--dir" && (option != "--bind" || value != "*") {
			args = append(args, option, value)
		}
	}
	return faulty.Options{File: local(command[1]), Username: user, Password: password}.Start(t, args...)
}

// startMaster starts redis-server as an operator would, from a file of configs.
func startMaster(t *testing.T, conf string) (address string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("configs", conf))
	if err != nil {
		t.Fatal(err)
	}
	return faulty.Options{File: path}.Start(t).Addr()
}

func TestMasterFiles_MakeMastersThatAreFit(t *testing.T) {
	for conf, durable := range map[string]bool{"master-durable.conf": true, "master-fast.conf": false} {
		t.Run(conf, func(t *testing.T) {
			list := make([]string, 3)
			for i := range list {
				list[i] = startMaster(t, conf)
			}
			var out strings.Builder
			err := run(t.Context(), []string{"check", "--masters", strings.Join(list, ",")}, []string{unhurried}, nil, &out, io.Discard)
			if err != nil || strings.Contains(out.String(), "appendonly no") == durable {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
