package daemon

// Tests of compose.yaml: its fields are compose's, its masters, daemons, health checks and load run,
// and Prometheus and Grafana get what they read.

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	Init        bool
	Build       struct{ Context, Dockerfile kubeText }
	Command     []kubeText
	Environment map[string]kubeText
	Ports       []kubeText
	Volumes     []kubeText
	Restart     kubeText
	Healthcheck struct {
		Test     []kubeText
		Interval kubeText
		Timeout  kubeText
		Start    kubeText `yaml:"start_period"`
	}
	DependsOn map[string]struct{ Condition kubeText } `yaml:"depends_on"`
	ReadOnly  bool                                    `yaml:"read_only"`
	CapDrop   []kubeText                              `yaml:"cap_drop"`
	Security  []kubeText                              `yaml:"security_opt"`
	Grace     kubeText                                `yaml:"stop_grace_period"`
}

const composeFile = "compose/compose.yaml"

func decodeCompose(text string) (c compose, err error) {
	return c, yaml.UnmarshalStrict([]byte(text), &c)
}

func shippedCompose(t *testing.T) compose {
	t.Helper()
	c, err := decodeCompose(file(t, composeFile))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mounted returns the file of this machine that a service has at a path.
func (c compose) mounted(t *testing.T, service, file string) string {
	t.Helper()
	for _, v := range c.Services[service].Volumes {
		parts := strings.Split(string(v), ":")
		if len(parts) < 2 || parts[1] != file {
			continue
		}
		path, err := filepath.Abs(filepath.Join("configs", "compose", parts[0]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil && parts[0][0] == '.' { // others are volumes
			t.Fatal(err)
		}
		return path
	}
	t.Fatalf("%s has no %s", service, file)
	return ""
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
	if len(masters) != 5 || len(daemons) != 2 || len(c.Services) != 11 || len(c.Volumes) != 5 {
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
		if waits := slices.Sorted(maps.Keys(c.Services["bootstrap"].DependsOn)); !slices.Equal(words(hosts), masters) || !slices.Equal(waits, masters) {
			t.Errorf("%s uses the masters %q and waits for %q, there are %q", name, hosts, waits, masters)
		}
		if len(service.DependsOn) != 1 || service.DependsOn["bootstrap"].Condition != "service_completed_successfully" {
			t.Errorf("%s waits for %v", name, service.DependsOn)
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
		if _, err := os.Stat(filepath.Join("configs", "compose", string(service.Build.Context), string(service.Build.Dockerfile))); err != nil {
			t.Error(err)
		}
	}
	for name, service := range c.Services {
		for needed, waits := range service.DependsOn {
			if waits.Condition == "service_healthy" && len(c.Services[needed].Healthcheck.Test) == 0 {
				t.Errorf("%s waits for ever until %s is healthy: it has no health check", name, needed)
			}
		}
	}
}

func TestWrongCompose_IsFound(t *testing.T) {
	shipped := file(t, composeFile)
	for _, change := range [][2]string{
		{"healthcheck:", "healtcheck:"}, {"read_only: true", "read_only: ja"}, {"start_period: 10s", "start-period: 10s"},
		{"  daemon-2:", "  daemon-1:"}, {"restart: unless-stopped", "restart: no"}, {"cap_drop: [ALL]", "cap_drop: ALL, NONE"},
	} {
		changed := strings.Replace(shipped, change[0], change[1], 1)
		if changed == shipped {
			t.Errorf("compose.yaml has no %s", change[0])
		}
		if _, err := decodeCompose(changed); err == nil {
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
		servers[name] = startShipped(t, words(service.Command), "", "", func(file string) string { return c.mounted(t, name, file) })
		address = append(address, name+":6379", servers[name].Addr())
	}
	here := strings.NewReplacer(address...)
	for name, value := range c.Services["daemon-1"].Environment {
		t.Setenv(name, here.Replace(string(value)))
	}
	bootstrap := words(c.Services["bootstrap"].Command)
	for _, want := range []string{"may vote", "nothing to do"} { // the second time "up" is typed
		if code, output := typedInTime(t, bootstrap); code != 0 || !strings.Contains(output, want) {
			t.Fatalf("%q: code %d, want 0 and %q:\n%s", bootstrap, code, want, output)
		}
	}
	if code, output := typedInTime(t, append(bootstrap, "--max-ttl", "5s")); code == 0 || !strings.Contains(output, "other settings") {
		t.Errorf("%q with other settings: code %d:\n%s", bootstrap, code, output)
	}
	daemons := []*operated{operate(t), operate(t)}
	clients := make([]*client, 2)
	for i, o := range daemons {
		clients[i] = dial(t, o.port)
		if got := clients[i].ask(t, "AUTH evaluate"); got != "+OK" {
			t.Fatalf("AUTH: %s", got)
		}
		if got := clients[i].ask(t, "DMASTERS"); got != "*5" {
			t.Errorf("DMASTERS: %s", got)
		}
		clients[i] = dial(t, o.port)
		clients[i].ask(t, "AUTH evaluate")
	}
	for i, name := range c.named("daemon-") {
		check := words(c.Services[name].Healthcheck.Test)
		if !slices.Equal(check[:3], []string{"CMD", "/redlockd", "lock"}) || !slices.Equal(check[len(check)-3:], []string{"--", "/redlockd", "version"}) {
			t.Fatalf("the health check is %q", check)
		}
		check[len(check)-2] = "true" // the program is not installed here
		check[slices.Index(check, "--wait")+1] = testTimeout.String()
		check = slices.Concat(check[2:3], []string{"--connect", daemons[i].port}, check[3:len(check)-1])
		if code, output := typedInTime(t, check); code != 0 {
			t.Errorf("the health check %q: code %d:\n%s", check, code, output)
		}
	}
	c.wantLoad(t, daemons)
	c.wantScraped(t, daemons[0])
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

// wantLoad runs the load with its daemons on this machine, until one sees the lock of another client.
func (c compose) wantLoad(t *testing.T, daemons []*operated) {
	t.Helper()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Log("no redis-cli on this machine: the load is not run")
		return
	}
	command := words(c.Services["load"].Command)
	script := strings.ReplaceAll(command[2], "$$", "$")
	for i, o := range daemons {
		host, port, err := net.SplitHostPort(o.port)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(fmt.Sprintf("at_%d", i+1), "-h "+host+" -p "+port)
	}
	const there = "-h daemon-$((n % 2 + 1)) -p 7379"
	if !strings.Contains(script, there) {
		t.Fatalf("the load is %q", script)
	}
	script = strings.Replace(script, there, `$(printenv at_$((n % 2 + 1)))`, 1)
	load := exec.CommandContext(t.Context(), command[0], command[1], script)
	load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	defer load.Wait()
	defer syscall.Kill(-load.Process.Pid, syscall.SIGKILL)
	for _, o := range daemons {
		client, last := dial(t, o.port), ""
		client.ask(t, "AUTH evaluate")
		eventually(t, "the load holds locks", func() bool {
			last = client.ask(t, "EXISTS load:0 load:1 load:2 load:3 load:4")
			return last > ":0" && last < ":6"
		}, func() string { return last })
	}
}

// wantScraped scrapes as prometheus.yaml describes.
func (c compose) wantScraped(t *testing.T, o *operated) {
	t.Helper()
	var p struct {
		Global  map[string]string
		Rules   []string `yaml:"rule_files"`
		Scrapes []struct {
			Job     string                              `yaml:"job_name"`
			Login   struct{ Username, Password string } `yaml:"basic_auth"`
			Targets []struct{ Targets []string }        `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	text, err := os.ReadFile(c.mounted(t, "prometheus", "/etc/prometheus/prometheus.yml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, rules := range p.Rules {
		c.mounted(t, "prometheus", rules)
	}
	scrape := p.Scrapes[0]
	if want := []string{"daemon-1:9379", "daemon-2:9379"}; scrape.Job != "redlockd" || !slices.Equal(scrape.Targets[0].Targets, want) || len(p.Rules) == 0 {
		t.Errorf("Prometheus scrapes %+v with the rules %q, want %q as the job redlockd of alerts.yaml", scrape, p.Rules, want)
	}
	if status, _ := o.get(t, "/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("without a login /metrics is %d", status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(scrape.Login.Username, scrape.Login.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("with Prometheus' login /metrics is %s", response.Status)
	}
}

// Grafana finds its source, and the dashboard in the directory of its provider.
func TestCompose_ProvisionsGrafana(t *testing.T) {
	c := shippedCompose(t)
	var source struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, Access, URL string
			Default                 bool `yaml:"isDefault"`
		}
	}
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	for name, into := range map[string]any{"datasources": &source, "dashboards": &boards} {
		text, err := os.ReadFile(c.mounted(t, "grafana", "/etc/grafana/provisioning/"+name+"/redlockd.yaml"))
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if s := source.Datasources[0]; source.APIVersion != 1 || s.Type != "prometheus" || s.URL != "http://prometheus:9090" || !s.Default || c.Services["prometheus"].Image == "" {
		t.Errorf("Grafana reads %+v", source)
	}
	path := boards.Providers[0].Options.Path + "/dashboard.json"
	if boards.APIVersion != 1 || boards.Providers[0].Type != "file" || string(c.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]) != path {
		t.Errorf("Grafana's dashboards: %+v, and at first %q", boards, c.Services["grafana"].Environment)
	}
	if got, err := filepath.Abs("configs/dashboard.json"); err != nil || c.mounted(t, "grafana", path) != got {
		t.Errorf("%s is not %s: %v", path, got, err)
	}
}

func TestCompose_IsReadByDocker(t *testing.T) {
	if err := exec.Command("docker", "compose", "version").Run(); err != nil {
		t.Skipf("no docker compose on this machine: only the tests' own decoder read compose.yaml: %v", err)
	}
	command := exec.Command("docker", "compose", "-f", filepath.Join("configs", "compose", "compose.yaml"), "config", "--quiet")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
