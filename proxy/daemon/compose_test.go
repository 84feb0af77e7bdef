package daemon

// Tests of compose.yaml: its fields are compose's, and its masters, daemons and commands run.

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"

	"redlockd/pool/faulty"
)

// compose is what compose.yaml may have.
type compose struct {
	Services map[string]composeService
	Volumes  map[string]struct{}
	Master   composeService `yaml:"x-master"`
	Daemon   composeService `yaml:"x-daemon"`
}

type composeService struct {
	Image       kubeText
	Build       struct{ Context, Dockerfile kubeText }
	Command     []kubeText
	Environment map[string]kubeText
	Ports       []kubeText
	Volumes     []kubeText
	Restart     kubeText
	Healthcheck struct {
		Test     []kubeText
		Interval kubeText
	}
	DependsOn map[string]struct{ Condition kubeText } `yaml:"depends_on"`
	ReadOnly  bool                                    `yaml:"read_only"`
	CapDrop   []kubeText                              `yaml:"cap_drop"`
	Security  []kubeText                              `yaml:"security_opt"`
	Grace     kubeText                                `yaml:"stop_grace_period"`
}

var composeVariable = regexp.MustCompile(`\$\{(\w+):\?[^}]*\}`)

// decodeCompose reads the file with these variables.
func decodeCompose(text string, variables map[string]string) (c compose, err error) {
	text = composeVariable.ReplaceAllStringFunc(text, func(one string) string {
		name := composeVariable.FindStringSubmatch(one)[1]
		value, there := variables[name]
		if !there {
			err = fmt.Errorf("the variable %s is not set by the commands at the head", name)
		}
		return value
	})
	if err != nil {
		return c, err
	}
	return c, yaml.UnmarshalStrict([]byte(text), &c)
}

func shippedCompose(t *testing.T) compose {
	t.Helper()
	c, err := decodeCompose(file(t, "compose.yaml"), map[string]string{"LOCK_PASSWORD": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// named returns the services whose names begin so, in order.
func (c compose) named(prefix string) (names []string) {
	for name := range c.Services {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func environOf(variables map[string]kubeText) (environ []string) {
	for name, value := range variables {
		environ = append(environ, name+"="+string(value))
	}
	return environ
}

func TestCompose_RunsTwoDaemonsOnFiveMasters(t *testing.T) {
	c := shippedCompose(t)
	masters, daemons := c.named("master-"), c.named("daemon-")
	if len(masters) != 5 || len(daemons) != 2 || len(c.Services) != 7 || len(c.Volumes) != 5 {
		t.Errorf("%q, %q and %d volumes", masters, daemons, len(c.Volumes))
	}
	for _, name := range masters {
		volume := strings.TrimPrefix(name, "master-")
		if _, there := c.Volumes[volume]; !there || !slices.Contains(c.Services[name].Volumes, kubeText(volume+":/data")) {
			t.Errorf("%s keeps its data in %q", name, c.Services[name].Volumes)
		}
	}
	published := map[kubeText]bool{}
	for _, name := range daemons {
		service := c.Services[name]
		config := wantServes(t, []string{"--listen", ":7379", "--admin-listen", ":9379"}, environOf(service.Environment), "7379", "9379")
		var hosts []kubeText
		for _, m := range config.Masters {
			host, _, _ := net.SplitHostPort(m.Address)
			hosts = append(hosts, kubeText(host))
		}
		if waits := slices.Sorted(maps.Keys(service.DependsOn)); !slices.Equal(words(hosts), masters) || !slices.Equal(waits, masters) {
			t.Errorf("%s uses the masters %q and waits for %q, there are %q", name, hosts, waits, masters)
		}
		for master, waits := range service.DependsOn {
			if waits.Condition != "service_healthy" || len(c.Services[master].Healthcheck.Test) == 0 {
				t.Errorf("%s does not wait until %s answers", name, master)
			}
		}
		if grace, err := time.ParseDuration(string(service.Grace)); err != nil || grace <= config.DrainGrace+config.DrainTimeout || config.DrainGrace == 0 {
			t.Errorf("%s has %s to end, %s of grace and %s to drain", name, service.Grace, config.DrainGrace, config.DrainTimeout)
		}
		for i, port := range []string{":7379", ":9379"} {
			if address := service.Ports[i]; !strings.HasSuffix(string(address), port) || !strings.HasPrefix(string(address), "127.0.0.1:") || published[address] {
				t.Errorf("%s publishes %s, want a port of this machine for %s", name, address, port)
			} else {
				published[address] = true
			}
		}
		if _, err := os.Stat(filepath.Join("configs", string(service.Build.Context), string(service.Build.Dockerfile))); err != nil {
			t.Error(err)
		}
	}
}

func TestWrongCompose_IsFound(t *testing.T) {
	shipped, set := file(t, "compose.yaml"), map[string]string{"LOCK_PASSWORD": "secret"}
	for _, change := range [][2]string{
		{"healthcheck:", "healtcheck:"}, {"read_only: true", "read_only: ja"}, {"LOCK_PASSWORD:?", "PASSWORD:?"},
		{"  daemon-2:", "  daemon-1:"}, {"restart: unless-stopped", "restart: no"}, {"cap_drop: [ALL]", "cap_drop: ALL, NONE"},
	} {
		changed := strings.Replace(shipped, change[0], change[1], 1)
		if changed == shipped {
			t.Errorf("compose.yaml has no %s", change[0])
		}
		if _, err := decodeCompose(changed, set); err == nil {
			t.Errorf("%s in place of %s is not noticed", change[1], change[0])
		}
	}
}

// The commands at the head of the file, on masters and daemons that run as it describes.
func TestCompose_RunsAsShipped(t *testing.T) {
	c := shippedCompose(t)
	servers, address := map[string]*faulty.Server{}, []string{}
	for _, name := range c.named("master-") {
		service := c.Services[name]
		servers[name] = startShipped(t, words(service.Command), "", "", func(file string) string {
			for _, v := range service.Volumes {
				parts := strings.Split(string(v), ":")
				if parts[1] != file {
					continue
				}
				path, err := filepath.Abs(filepath.Join("configs", parts[0]))
				if err != nil {
					t.Fatal(err)
				}
				return path
			}
			t.Fatalf("%s has no %s", name, file)
			return ""
		})
		address = append(address, name+":6379", servers[name].Addr())
	}
	here := strings.NewReplacer(address...)
	for name, value := range c.Services["daemon-1"].Environment {
		t.Setenv(name, here.Replace(string(value)))
	}
	head, _, _ := strings.Cut(file(t, "compose.yaml"), "\n\n")
	if first, second := strings.Index(head, "daemon-1 bootstrap"), strings.Index(head, " up --build"); first < 0 || second < first {
		t.Errorf("bootstrap comes too late beside a daemon:\n%s", head)
	}
	if code, output := typedInTime(t, []string{"bootstrap"}); code != 0 {
		t.Fatalf("bootstrap: code %d:\n%s", code, output)
	}
	daemons := []*operated{operate(t), operate(t)}
	clients := make([]*client, 2)
	for i, o := range daemons {
		clients[i] = dial(t, o.port)
		if got := clients[i].ask(t, "AUTH secret"); got != "+OK" {
			t.Fatalf("AUTH: %s", got)
		}
		if got := clients[i].ask(t, "DMASTERS"); got != "*5" {
			t.Errorf("DMASTERS: %s", got)
		}
		clients[i] = dial(t, o.port)
		clients[i].ask(t, "AUTH secret")
	}
	clients[0].lock(t, "invoices")
	servers["master-a"].Kill()
	servers["master-b"].Kill()
	for end := time.Now().Add(testTimeout); ; {
		reply := clients[1].ask(t, "DLOCK invoices 30000")
		if reply == "$-1" {
			break
		}
		if !strings.HasPrefix(reply, "-NOQUORUM") || time.Now().After(end) {
			t.Fatalf("with two masters down, a lock that another daemon granted: %s", reply)
		}
	}
	for _, o := range daemons {
		o.stop(t)
	}
}

func TestCompose_IsReadByDocker(t *testing.T) {
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		t.Skipf("no docker compose on this machine: only the tests' own decoder read compose.yaml: %v", err)
	}
	command := exec.Command("docker", "compose", "-f", filepath.Join("configs", "compose.yaml"), "config", "--quiet")
	command.Env = append(os.Environ(), "LOCK_PASSWORD=secret")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
