// Tests that what is deployed fits the program: every flag, port, path and metric
// of the files in configs is one that there is.
package main

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
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
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
	Get struct{ Path, Port string } `yaml:"httpGet"`
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
	daemon, masters := all["Deployment/redlockd"], all["StatefulSet/redlockd-master"]
	container := daemon.Spec.Template.Spec.Containers[0]
	var environ []string
	for _, v := range container.Env {
		if v.Value == "" {
			v.Value = "from-a-secret"
		}
		environ = append(environ, v.Name+"="+v.Value)
	}
	named := make(map[string]string)
	for _, p := range container.Ports {
		named[p.Name] = fmt.Sprint(p.ContainerPort)
	}
	config := wantServes(t, container.Args, environ, named["clients"], named["admin"])
	if container.Ready.Get.Path != "/readyz" || container.Live.Get.Path != "/healthz" || container.Ready.Get.Port != "admin" || container.Live.Get.Port != "admin" {
		t.Errorf("probes %+v and %+v", container.Ready, container.Live)
	}
	if daemon.Spec.Template.Metadata.Annotations["prometheus.io/port"] != named["admin"] {
		t.Error("Prometheus looks at another port")
	}
	if service := all["Service/redlockd"]; service.Spec.Ports[0].TargetPort != "clients" {
		t.Errorf("the service leads to %q", service.Spec.Ports[0].TargetPort)
	}
	if grace := time.Duration(daemon.Spec.Template.Spec.Grace) * time.Second; grace <= config.DrainTimeout {
		t.Errorf("%s to end and %s to drain", grace, config.DrainTimeout)
	}
	if masters.Spec.Replicas != len(config.Masters) {
		t.Errorf("%d masters run, %d are listed", masters.Spec.Replicas, len(config.Masters))
	}
	for i, m := range config.Masters {
		if want := fmt.Sprintf("redlockd-master-%d.%s:6379", i, masters.Spec.ServiceName); m.Address != want {
			t.Errorf("master %s is %s, want %s", m.Name, m.Address, want)
		}
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
			err := run(t.Context(), []string{"check", "--masters", strings.Join(list, ",")}, []string{unhurried}, &out, io.Discard)
			if err != nil || strings.Contains(out.String(), "appendonly no") == durable {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}
