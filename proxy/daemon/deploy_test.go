package daemon

// Tests that the deployment files fit the program: every flag, port, path and metric
// of the files in configs exists.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"redlockd/configs"
	"redlockd/pool"
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
	shipped, err := os.ReadDir("configs")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, entry := range shipped {
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || ext == ".go" || ext == ".md" {
			continue
		}
		seen++
		if found := set.FindString(file(t, entry.Name())); found != "" {
			t.Errorf("%s sets bootstrap: %s", entry.Name(), found)
		}
	}
	if seen < 10 {
		t.Errorf("%d shipped files were read, there are more", seen)
	}
}

func TestUnit_StartsTheDaemonWithItsOptions(t *testing.T) {
	unit := file(t, "redlockd.service")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/redlockd (.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("no ExecStart")
	}
	line := strings.Replace(start[1], "/etc/redlockd/redlockd.toml", "configs/redlockd.toml", 1)
	config := wantServes(t, strings.Fields(line), nil, "7379", "9379")
	var seconds int
	stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)s$`).FindStringSubmatch(unit)
	if _, err := fmt.Sscan(stop[1], &seconds); err != nil || time.Duration(seconds)*time.Second <= config.DrainTimeout {
		t.Errorf("TimeoutStopSec=%s and a drain-timeout of %s", stop[1], config.DrainTimeout)
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine: the unit's words are not verified")
	}
	here := filepath.Join(t.TempDir(), "redlockd.service") // the program is not installed where the test runs
	if err := os.WriteFile(here, []byte(strings.ReplaceAll(unit, "/usr/local/bin/redlockd", os.Args[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(verify, "verify", "--recursive-errors=no", here).CombinedOutput(); err != nil || bytes.Contains(output, []byte("redlockd.service")) {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestDockerfile_ServesOnThePortsItExposes(t *testing.T) {
	text := file(t, "Dockerfile")
	var args []string
	line := regexp.MustCompile(`(?m)^CMD (.*)$`).FindStringSubmatch(text)
	if err := json.Unmarshal([]byte(line[1]), &args); err != nil {
		t.Fatal(err)
	}
	ports := strings.Fields(regexp.MustCompile(`(?m)^EXPOSE (.*)$`).FindStringSubmatch(text)[1])
	wantServes(t, args, nil, ports[0], ports[1])
	for _, line := range []string{"USER 65532:65532\n", `ENTRYPOINT ["/redlockd"]`, "COPY --from=build /redlockd /redlockd"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %s", line)
		}
	}
}

func TestCompose_RunsTwoDaemonsOnFiveMasters(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Ports       []string
			Volumes     []string
			Command     []string
		}
		Volumes map[string]any
		Master  any `yaml:"x-master"`
		Daemon  any `yaml:"x-daemon"`
	}
	if err := yaml.Unmarshal([]byte(file(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	masters, daemons := 0, 0
	for name, service := range compose.Services {
		switch {
		case strings.HasPrefix(name, "master-"):
			masters++
			conf, _, _ := strings.Cut(service.Volumes[0], ":")
			if _, err := os.Stat(filepath.Join("configs", conf)); err != nil {
				t.Error(err)
			}
			if volume, _, _ := strings.Cut(service.Volumes[1], ":"); volume != strings.TrimPrefix(name, "master-") {
				t.Errorf("%s keeps its data in %s", name, volume)
			}
		case strings.HasPrefix(name, "daemon-"):
			daemons++
			config := wantServes(t, []string{"--listen", ":7379", "--admin-listen", ":9379"}, environOf(service.Environment), "7379", "9379")
			for _, m := range config.Masters {
				host, _, _ := net.SplitHostPort(m.Address)
				if _, there := compose.Services[host]; !there {
					t.Errorf("%s names the master %s, which there is not", name, host)
				}
			}
			for i, port := range []string{":7379", ":9379"} {
				if !strings.HasSuffix(service.Ports[i], port) {
					t.Errorf("%s publishes %s, want %s", name, service.Ports[i], port)
				}
			}
		}
	}
	if masters != 5 || daemons != 2 {
		t.Errorf("%d masters and %d daemons", masters, daemons)
	}
}

func environOf(variables map[string]string) []string {
	var environ []string
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// manifest is what the tests read of Kubernetes' objects.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas     int
		ServiceName  string `yaml:"serviceName"`
		MinAvailable int    `yaml:"minAvailable"`
		MaxUnavail   int    `yaml:"maxUnavailable"`
		Ports        []struct {
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Spec struct {
				Token   *bool `yaml:"automountServiceAccountToken"`
				Grace   int   `yaml:"terminationGracePeriodSeconds"`
				Volumes []struct {
					Name   string
					Secret struct {
						Name string `yaml:"secretName"`
					}
				}
				Containers []struct {
					Args, Command []string
					Env           []struct{ Name, Value string }
					Ports         []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					ReadinessProbe, LivenessProbe probe `yaml:",omitempty"`
					Ready                         probe `yaml:"readinessProbe"`
					Live                          probe `yaml:"livenessProbe"`
				}
			}
		}
	}
}

type probe struct {
	Get struct{ Path, Port, Scheme string } `yaml:"httpGet"`
}

// prepared runs the commands at the head of kubernetes.yaml that need no cluster, in
// an empty directory beside the shipped files, and lists what the others create.
func prepared(t *testing.T) (dir string, secrets map[string]bool) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl on this machine: the commands of kubernetes.yaml are not run")
	}
	dir, secrets = t.TempDir(), make(map[string]bool)
	if err := os.WriteFile(filepath.Join(dir, "master-acl.txt"), []byte(file(t, "master-acl.txt")), 0o600); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(file(t, "kubernetes.yaml"), "\n\n")
	script := "set -e\n"
	for _, line := range strings.Split(head, "\n") {
		command, ok := strings.CutPrefix(line, "#   ")
		created := regexp.MustCompile(`create secret \w+ ([\w-]+)`).FindStringSubmatch(command)
		switch {
		case created != nil:
			secrets[created[1]] = true
		case ok && !strings.HasPrefix(command, "kubectl") && !strings.HasPrefix(command, "rm "):
			script += command + "\n"
		}
	}
	shell := exec.Command("sh", "-c", script)
	shell.Dir = dir
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, script)
	}
	return dir, secrets
}

func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	all := make(map[string]manifest)
	for decoder := yaml.NewDecoder(strings.NewReader(file(t, "kubernetes.yaml"))); ; {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[m.Kind+"/"+m.Metadata.Name] = m
	}
}

func TestKubernetes_ProbesThePortsThatTheDaemonServes(t *testing.T) {
	all := manifests(t)
	dir, secrets := prepared(t)
	daemon, masters := all["Deployment/redlockd"], all["StatefulSet/redlockd-master"]
	pod := daemon.Spec.Template.Spec
	container := pod.Containers[0]
	var environ []string
	for _, v := range container.Env {
		if strings.HasPrefix(v.Value, "/") {
			v.Value = filepath.Join(dir, filepath.Base(v.Value)) // the Secrets are made of the files of the same names
		}
		environ = append(environ, v.Name+"="+v.Value)
	}
	named := make(map[string]string)
	for _, p := range container.Ports {
		named[p.Name] = fmt.Sprint(p.ContainerPort)
	}
	config := wantServes(t, container.Args, environ, named["clients"], named["admin"])
	if container.Ready.Get != (struct{ Path, Port, Scheme string }{"/readyz", "admin", "HTTPS"}) || container.Live.Get != (struct{ Path, Port, Scheme string }{"/healthz", "admin", "HTTPS"}) {
		t.Errorf("probes %+v and %+v", container.Ready, container.Live)
	}
	if _, err := clientTLS(config).Load(); err != nil {
		t.Error(err)
	}
	if service := all["Service/redlockd"]; service.Spec.Ports[0].TargetPort != "clients" {
		t.Errorf("the service leads to %q", service.Spec.Ports[0].TargetPort)
	}
	if service := all["Service/redlockd-admin"]; service.Spec.Ports[0].TargetPort != "admin" {
		t.Errorf("the service of the admin endpoint leads to %q", service.Spec.Ports[0].TargetPort)
	}
	if grace := time.Duration(pod.Grace) * time.Second; grace <= config.DrainTimeout {
		t.Errorf("%s to end and %s to drain", grace, config.DrainTimeout)
	}
	if masters.Spec.Replicas != len(config.Masters) {
		t.Errorf("%d masters run, %d are listed", masters.Spec.Replicas, len(config.Masters))
	}
	for i, m := range config.Masters {
		if want := fmt.Sprintf("redlockd-master-%d.%s:6379", i, masters.Spec.ServiceName); m.Address != want || m.Username != "redlockd" || len(m.Password) != 64 {
			t.Errorf("master %s is %s as %q, want %s as redlockd", m.Name, m.Address, m.Username, want)
		}
	}
	for _, template := range []manifest{daemon, masters} {
		if token := template.Spec.Template.Spec.Token; token == nil || *token {
			t.Errorf("%s mounts a token of the cluster's API", template.Metadata.Name)
		}
		for _, v := range template.Spec.Template.Spec.Volumes {
			if name := v.Secret.Name; name != "" && !secrets[name] {
				t.Errorf("%s mounts the Secret %s, which no command creates", template.Metadata.Name, name)
			}
		}
	}
	acl, err := os.ReadFile(filepath.Join(dir, "users.acl"))
	if err != nil || !strings.HasPrefix(string(acl), "user default off\nuser redlockd on >"+string(config.Masters[0].Password)+" ") {
		t.Errorf("%v: users of the masters:\n%s", err, acl)
	}
	users, err := clientUsers(config)
	if err != nil || users == nil {
		t.Errorf("users of the daemons: %v", err)
	}
}

// A manifest is kept in repositories and shown by kubectl.
func TestKubernetes_HoldsNoSecret(t *testing.T) {
	all := manifests(t)
	for name := range all {
		if strings.HasPrefix(name, "Secret/") {
			t.Errorf("%s stands in kubernetes.yaml", name)
		}
	}
	for _, kind := range []string{"NetworkPolicy/redlockd", "NetworkPolicy/redlockd-master"} {
		if _, there := all[kind]; !there {
			t.Errorf("there is no %s", kind)
		}
	}
	var monitor struct {
		Spec struct {
			Endpoints []struct {
				Port, Scheme, Path string
				BasicAuth          struct{ Username, Password struct{ Name, Key string } } `yaml:"basicAuth"`
			}
		}
	}
	if err := yaml.Unmarshal([]byte(file(t, "kubernetes-monitor.yaml")), &monitor); err != nil {
		t.Fatal(err)
	}
	scrape := monitor.Spec.Endpoints[0]
	if scrape.Port != "admin" || scrape.Scheme != "https" || scrape.Path != "/metrics" || scrape.BasicAuth.Password.Name != "redlockd-scraper" {
		t.Errorf("the monitor scrapes %+v", scrape)
	}
}

func TestKubernetes_NeverTakesAQuorumAway(t *testing.T) {
	all := manifests(t)
	n := all["StatefulSet/redlockd-master"].Spec.Replicas
	if gone := all["PodDisruptionBudget/redlockd-master"].Spec.MaxUnavail; gone < 1 || n-gone < pool.Quorum(n) {
		t.Errorf("%d of %d masters may be evicted at once", gone, n)
	}
	if all["PodDisruptionBudget/redlockd"].Spec.MinAvailable < 1 {
		t.Error("all daemons may be evicted at once")
	}
	if got := all["ConfigMap/redlockd-master"].Data["master.conf"]; strings.TrimSpace(got) != strings.TrimSpace(file(t, "master-durable.conf")) {
		t.Error("the ConfigMap does not hold master-durable.conf")
	}
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
