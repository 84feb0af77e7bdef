package daemon

// Tests of the Kubernetes files: every field is one of the API's, every reference leads to
// something, and what the pods run does run, with the Secrets that the commands at the head
// of kubernetes.yaml make.

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlockd/configs"
	"redlockd/pool"
)

const (
	kubernetesFile = "kubernetes/base/kubernetes.yaml"
	monitorFile    = "kubernetes-monitor.yaml"
)

// kubernetes are the shipped objects.
func kubernetes(t *testing.T) *cluster {
	t.Helper()
	c, err := decodeObjects(file(t, kubernetesFile), file(t, monitorFile))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubeCommands are the commands at the head of kubernetes.yaml.
func kubeCommands(t *testing.T) (script string) {
	t.Helper()
	head, _, _ := strings.Cut(file(t, kubernetesFile), "\n\n")
	for line := range strings.Lines(head) {
		if command, ok := strings.CutPrefix(line, "#   "); ok {
			script += command
		}
	}
	return script
}

var (
	secretCreated = regexp.MustCompile(`create secret \w+ ([\w-]+) (.*)`)
	secretOption  = regexp.MustCompile(`--(from-file|from-literal|cert|key)=([\w.-]+)`)
)

// kubeSecrets are the keys of the Secrets that the commands make, by name.
func kubeSecrets(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, made := range secretCreated.FindAllStringSubmatch(kubeCommands(t), -1) {
		for _, option := range secretOption.FindAllStringSubmatch(made[2], -1) {
			key := option[2]
			if option[1] == "cert" || option[1] == "key" {
				key = "tls." + map[string]string{"cert": "crt", "key": "key"}[option[1]]
			}
			all[made[1]] = append(all[made[1]], key)
		}
	}
	return all
}

// wrongObjects returns which references between objects lead nowhere, and what is unsafe.
func wrongObjects(c *cluster, secrets map[string][]string) (wrong []string) {
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for name, w := range c.workloads() {
		c.wrongPods(&w, func(format string, args ...any) { note(name+" "+format, args...) })
		c.wrongMounts(&w, c.claims(name), secrets, func(format string, args ...any) { note(name+" "+format, args...) })
	}
	for name, s := range c.services {
		w, there := c.workloads()[c.selected(s.Spec.Selector)]
		for _, p := range s.Spec.Ports {
			target := p.TargetPort
			if target == "" {
				target = p.Port
			}
			if _, ok := w.port(target); !there || !ok {
				note("Service/%s leads to port %s of pods %v, which there are not", name, target, s.Spec.Selector)
			}
		}
	}
	for name, set := range c.sets {
		if s := c.services[string(set.Spec.ServiceName)]; s.Spec.ClusterIP != "None" || c.selected(s.Spec.Selector) != "StatefulSet/"+name {
			note("StatefulSet/%s has no headless service %s", name, set.Spec.ServiceName)
		}
	}
	for name, b := range c.budgets {
		w, there := c.workloads()[c.selected(b.Spec.Selector.MatchLabels)]
		if !there || b.Spec.MinAvailable+b.Spec.MaxUnavailable < 1 || b.Spec.MinAvailable >= w.Replicas {
			note("PodDisruptionBudget/%s: %+v", name, b.Spec)
		}
	}
	c.wrongPolicies(note)
	c.wrongMonitors(secrets, note)
	return wrong
}

func (c *cluster) claims(workload string) []volumeClaim {
	return c.sets[path.Base(workload)].Spec.Claims
}

// wrongPods looks at selectors, rights, probes and resources.
func (c *cluster) wrongPods(w *workload, note func(string, ...any)) {
	labels, pod := w.Template.Metadata.Labels, &w.Template.Spec
	var selectors []kubeLabels
	if pod.Restart == "" { // the pods of a Job are not selected
		selectors = append(selectors, w.Selector.MatchLabels)
	}
	for _, term := range pod.Affinity.Apart.Required {
		selectors = append(selectors, term.Selector.MatchLabels)
	}
	for _, preferred := range pod.Affinity.Apart.Preferred {
		selectors = append(selectors, preferred.Term.Selector.MatchLabels)
	}
	for _, s := range selectors {
		if !s.within(labels) {
			note("selects %v and labels %v", s, labels)
		}
	}
	if pod.Token == nil || *pod.Token || !pod.Security.NonRoot || pod.Security.User == 0 || pod.Security.Seccomp.Type != "RuntimeDefault" {
		note("mounts a token of the cluster's API, runs as root or without seccomp: %+v", pod.Security)
	}
	for _, one := range pod.Containers {
		if s := one.Security; s.Escalation == nil || *s.Escalation || !s.ReadOnly || !slices.Equal(s.Capabilities.Drop, []kubeText{"ALL"}) {
			note("has rights that it does not need: %+v", s)
		}
		for _, p := range []*probe{one.Ready, one.Live} {
			if p != nil && (p.Get == nil) == (p.Socket == nil) {
				note("probes nothing, or two things")
			} else if _, ok := w.port(p.port()); p != nil && !ok {
				note("probes the port %s, which there is not", p.port())
			}
		}
		if one.Resources.Limits["memory"] == 0 || one.Resources.Requests["cpu"] == 0 {
			note("has no limit of memory or no request for cpu")
		}
		for name, limit := range one.Resources.Limits {
			if request := one.Resources.Requests[name]; request == 0 || request > limit {
				note("requests %d of %s and is limited to %d", request, name, limit)
			}
		}
	}
}

func (p *probe) port() kubePort {
	switch {
	case p == nil:
		return ""
	case p.Get != nil:
		return p.Get.Port
	}
	return p.Socket.Port
}

// wrongMounts looks at volumes, and at the paths in arguments and variables.
func (c *cluster) wrongMounts(w *workload, claims []volumeClaim, secrets map[string][]string, note func(string, ...any)) {
	pod, idle := &w.Template.Spec, map[kubeText]bool{}
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil && (secrets[string(v.Secret.Name)] == nil || v.Secret.Mode&0o040 == 0 || v.Secret.Mode&0o007 != 0 || pod.Security.Group == 0):
			note("has the Secret %s, which no command creates or which other users than the pod's group read", v.Secret.Name)
		case v.ConfigMap != nil && c.configs[string(v.ConfigMap.Name)].Data == nil:
			note("has the ConfigMap %s, which there is not", v.ConfigMap.Name)
		}
		idle[v.Name] = true
	}
	for _, claim := range claims {
		idle[claim.Metadata.Name] = true
	}
	for _, one := range pod.Containers {
		for _, m := range one.Mounts {
			if _, there := idle[m.Name]; !there {
				note("mounts %s, which there is not", m.Name)
			}
			idle[m.Name] = false
		}
		values := append(slices.Clone(one.Args), one.Command...)
		for _, v := range one.Env {
			values = append(values, v.Value)
		}
		for _, value := range values {
			if _, _, ok := c.mounted(pod, &one, claims, secrets, string(value)); strings.HasPrefix(string(value), "/") && !ok {
				note("names the file %s, which is not mounted", value)
			}
		}
	}
	for name, unmounted := range idle {
		if unmounted {
			note("has the volume %s and does not mount it", name)
		}
	}
}

// mounted returns the ConfigMap or Secret that a path leads to, and the key; both are empty
// for a path on a claim.
func (c *cluster) mounted(pod *podSpec, one *container, claims []volumeClaim, secrets map[string][]string, file string) (name, key string, ok bool) {
	for _, m := range one.Mounts {
		rest, below := strings.CutPrefix(file, string(m.Path))
		if !below || rest != "" && rest[0] != '/' {
			continue
		}
		key := strings.TrimPrefix(rest, "/")
		for _, v := range pod.Volumes {
			switch {
			case v.Name == m.Name && v.Secret != nil:
				return string(v.Secret.Name), key, slices.Contains(secrets[string(v.Secret.Name)], key)
			case v.Name == m.Name && v.ConfigMap != nil:
				_, there := c.configs[string(v.ConfigMap.Name)].Data[key]
				return string(v.ConfigMap.Name), key, there
			}
		}
		return "", "", slices.ContainsFunc(claims, func(claim volumeClaim) bool { return claim.Metadata.Name == m.Name })
	}
	return "", "", false
}

// wrongPolicies: every port that a policy opens is served, and every pod of its own namespace
// that it names is in the files. Pods of other namespaces are the operator's.
func (c *cluster) wrongPolicies(note func(string, ...any)) {
	wrongPorts := func(policy, pods string, ports []policyPort) {
		w := c.workloads()[pods]
		for _, p := range ports {
			if _, ok := w.port(p.Port); !ok {
				note("NetworkPolicy/%s opens the port %s of %q, which there is not", policy, p.Port, pods)
			}
		}
	}
	for name, policy := range c.policies {
		for _, in := range policy.Spec.Ingress {
			wrongPorts(name, c.selected(policy.Spec.PodSelector.MatchLabels), in.Ports)
			for _, from := range in.From {
				if from.Namespaces == nil && c.selected(from.Pods.MatchLabels) == "" {
					note("NetworkPolicy/%s admits pods %v, which there are not", name, from.Pods.MatchLabels)
				}
			}
		}
		for _, out := range policy.Spec.Egress {
			for _, to := range out.To {
				if to.Namespaces == nil {
					wrongPorts(name, c.selected(to.Pods.MatchLabels), out.Ports)
				}
			}
		}
	}
}

func (c *cluster) wrongMonitors(secrets map[string][]string, note func(string, ...any)) {
	for name, m := range c.monitors {
		for _, e := range m.Spec.Endpoints {
			for _, s := range []secretKey{e.BasicAuth.Username, e.BasicAuth.Password, e.TLS.CA.Secret} {
				if !slices.Contains(secrets[string(s.Name)], string(s.Key)) {
					note("ServiceMonitor/%s reads %s of the Secret %s, which no command makes", name, s.Key, s.Name)
				}
			}
			served := false
			for _, s := range c.services {
				for _, p := range s.Spec.Ports {
					served = served || m.Spec.Selector.MatchLabels.within(s.Metadata.Labels) && p.Name == e.Port && s.Metadata.Labels[string(m.Spec.JobLabel)] != ""
				}
			}
			if !served {
				note("ServiceMonitor/%s scrapes no service with the port %s and the label %s", name, e.Port, m.Spec.JobLabel)
			}
		}
	}
}

func TestKubernetes_LeavesNoReferenceOpen(t *testing.T) {
	for _, wrong := range wrongObjects(kubernetes(t), kubeSecrets(t)) {
		t.Error(wrong)
	}
}

// Each change of the shipped text must be noticed: by the decoder, or as a reference that
// leads nowhere.
func TestWrongObjects_AreFound(t *testing.T) {
	shipped, monitor := file(t, kubernetesFile), file(t, monitorFile)
	for _, change := range [][2]string{
		{"livenessProbe:", "livenesProbe:"},
		{"replicas: 5", `replicas: "5"`},
		{`{redlockd-client: "true"}`, "{redlockd-client: true}"},
		{"clusterIP: None", "clusterIP: None\n  clusterIP: None"},
		{"kind: Deployment\n", "kind: Deploiment\n"},
		{"runAsNonRoot: true, runAsUser: 65532", "runAsNonRoot: yes please, runAsUser: 65532"},
		{"memory: 1Gi", "memory: 1Gb"},
		{"targetPort: clients", "targetPort: client"},
		{"httpGet: {path: /healthz, port: admin", "httpGet: {path: /healthz, port: admn"},
		{"secretName: redlockd-users", "secretName: redlockd-user"},
		{"/etc/redlockd/users/users.toml", "/etc/redlockd/users.toml"},
		{"{name: tls, mountPath: /etc/redlockd/tls, readOnly: true}", "{name: masters, mountPath: /etc/redlockd/tls, readOnly: true}"},
		{"defaultMode: 0440", "defaultMode: 0400"},
		{"serviceName: redlockd-master", "serviceName: redlockd-masters"},
		{"ports: [{port: 7379}]", "ports: [{port: 7380}]"},
		{"from: [{podSelector: {matchLabels: {app: redlockd}}}", "from: [{podSelector: {matchLabels: {app: redlock}}}"},
		{"app: redlockd-bootstrap}}}]", "app: redlockd-bootstraps}}}]"},
		{"restartPolicy: OnFailure", "restartpolicy: OnFailure"},
		{"minAvailable: 1", "minAvailable: 2"},
		{"limits: {memory: 512Mi}", "limits: {memory: 256Mi}"},
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		{"jobLabel: job", "jobLabel: jop"},
		{"password: {name: redlockd-scraper, key: password}", "password: {name: redlockd-scraper, key: pass}"},
	} {
		texts := []string{strings.Replace(shipped, change[0], change[1], 1), strings.Replace(monitor, change[0], change[1], 1)}
		if texts[0] == shipped && texts[1] == monitor {
			t.Errorf("no shipped file has %s", change[0])
			continue
		}
		if c, err := decodeObjects(texts...); err == nil && len(wrongObjects(c, kubeSecrets(t))) == 0 {
			t.Errorf("%s in place of %s is not noticed", change[1], change[0])
		}
	}
}

// A manifest is kept in repositories and shown by kubectl.
func TestKubernetes_HoldsNoSecret(t *testing.T) {
	if strings.Contains(file(t, kubernetesFile), "kind: Secret\n") {
		t.Errorf("a Secret stands in %s", kubernetesFile)
	}
	c := kubernetes(t)
	for _, name := range []string{"redlockd", "redlockd-master"} {
		if policy, there := c.policies[name]; !there || !slices.Contains(policy.Spec.PolicyTypes, "Ingress") {
			t.Errorf("there is no NetworkPolicy/%s for Ingress", name)
		}
	}
}

func TestKubernetes_NeverTakesAQuorumAway(t *testing.T) {
	c := kubernetes(t)
	wantQuorumKept(t, c)
	if got := c.configs["redlockd-master"].Data["master.conf"]; strings.TrimSpace(string(got)) != strings.TrimSpace(file(t, "master-durable.conf")) {
		t.Error("the ConfigMap does not hold master-durable.conf")
	}
}

func wantQuorumKept(t *testing.T, c *cluster) {
	t.Helper()
	n := c.sets["redlockd-master"].Spec.Replicas
	if gone := c.budgets["redlockd-master"].Spec.MaxUnavailable; gone < 1 || n-gone < pool.Quorum(n) {
		t.Errorf("%d of %d masters may be evicted at once", gone, n)
	}
	if c.budgets["redlockd"].Spec.MinAvailable < 1 {
		t.Error("all daemons may be evicted at once")
	}
}

const (
	clientBytes = 16 << 10 // of a client that are not counted: commands/ACCESS.md
	waiterBytes = 1 << 10  // of a waiter, by the advice of --max-waiters
)

// What the options bound fits into the memory, twice: the heap may grow by as much as is in
// use before Go collects garbage (commands/ACCESS.md). Operations in flight come on top.
func wantMemoryFits(t *testing.T, one *container, config configs.Config) {
	t.Helper()
	limit := one.Resources.Limits["memory"].bytes()
	bounded := int64(config.MaxClients)*clientBytes + int64(config.MaxMemoryClients+config.UnauthenticatedMemory) + int64(config.MaxWaiters)*waiterBytes
	if 2*bounded > limit {
		t.Errorf("clients and waiters may use %d bytes, and as much before garbage is collected: the limit is %d", bounded, limit)
	}
}

// A master forks to rewrite its file; then it needs up to twice its memory.
func TestKubernetes_GivesMastersTheMemoryThatTheyMayUse(t *testing.T) {
	c := kubernetes(t)
	match := regexp.MustCompile(`(?m)^maxmemory (\d+)mb$`).FindStringSubmatch(string(c.configs["redlockd-master"].Data["master.conf"]))
	if match == nil {
		t.Fatal("no maxmemory")
	}
	mb, err := strconv.ParseInt(match[1], 10, 32)
	resources := c.sets["redlockd-master"].Spec.Template.Spec.Containers[0].Resources
	if bytes := mb << 20; err != nil || resources.Requests["memory"].bytes() < bytes || resources.Limits["memory"].bytes() < 2*bytes {
		t.Errorf("maxmemory is %s MB, requests and limits are %v", match[1], resources)
	}
}

// kubectl stands in for the program: it keeps Secrets as directories of their files.
const kubectl = `set -e
kubectl() {
	case "$*" in
	"create namespace locks"|"-n locks exec deploy/redlockd -- /redlockd check") return ;;
	"-n locks apply -k "*) test -f "$5/kustomization.yaml"; return ;;
	"-n locks create secret "*) ;;
	*) echo "kubectl $*: unknown" >&2; return 1 ;;
	esac
	name=$6; shift 6
	mkdir -p "secrets/$name"
	for option; do
		value=${option#*=}
		case $option in
		--from-file=*) cp "$value" "secrets/$name/" ;;
		--from-literal=*) printf %s "${value#*=}" >"secrets/$name/${value%%=*}" ;;
		--cert=*) cp "$value" "secrets/$name/tls.crt" ;;
		--key=*) cp "$value" "secrets/$name/tls.key" ;;
		*) echo "$option: unknown" >&2; return 1 ;;
		esac
	done
}
`

// prepared runs the commands at the head of kubernetes.yaml beside copies of the shipped files
// and returns where the Secrets are.
func prepared(t *testing.T) (secrets string) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("no openssl on this machine: the commands of kubernetes.yaml are not run")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("configs")); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("sh", "-c", kubectl+kubeCommands(t))
	shell.Dir = dir
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, kubeCommands(t))
	}
	for name, keys := range kubeSecrets(t) {
		for _, key := range keys {
			if _, err := os.Stat(filepath.Join(dir, "secrets", name, key)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, left := range []string{"users.acl", "masters", "users.toml", "tls.key"} {
		if _, err := os.Stat(filepath.Join(dir, left)); err == nil {
			t.Errorf("%s is left behind", left)
		}
	}
	return filepath.Join(dir, "secrets")
}

// pods are the containers of kubernetes.yaml as processes of this machine.
type pods struct {
	*cluster
	secrets string // directory
	keys    map[string][]string
	master  *container
	daemon  *container
}

func newPods(t *testing.T, c *cluster) *pods {
	t.Helper()
	return &pods{c, prepared(t), kubeSecrets(t), &c.sets["redlockd-master"].Spec.Template.Spec.Containers[0], &c.deployments["redlockd"].Spec.Template.Spec.Containers[0]}
}

// local returns the file of this machine that a pod has at a path.
func (p *pods) local(t *testing.T, workload, file string) string {
	t.Helper()
	w := p.workloads()[workload]
	name, key, ok := p.mounted(&w.Template.Spec, &w.Template.Spec.Containers[0], p.claims(workload), p.keys, file)
	if !ok {
		t.Fatalf("%s has no %s", workload, file)
	}
	if text, there := p.configs[name].Data[key]; there {
		local := filepath.Join(t.TempDir(), key)
		if err := os.WriteFile(local, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return local
	}
	return filepath.Join(p.secrets, name, key)
}

func (p *pods) secret(t *testing.T, name, key string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.secrets, name, key))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startMasters runs the masters' command on ports of this machine and writes those into the
// Secret.
func (p *pods) startMasters(t *testing.T) {
	t.Helper()
	const at = "StatefulSet/redlockd-master"
	list := p.secret(t, "redlockd-masters", "masters")
	password := regexp.MustCompile(`redlockd:([0-9a-f]{64}|trial)@`).FindStringSubmatch(list)
	if password == nil {
		t.Fatalf("neither a password of 64 digits nor that of the trial in %s", list)
	}
	set := p.sets["redlockd-master"].Spec
	for i := range set.Replicas {
		name := fmt.Sprintf("redlockd-master-%d.%s:6379", i, set.ServiceName)
		if strings.Count(list, "@"+name+"\n") != 1 {
			t.Fatalf("the Secret does not name %s once:\n%s", name, list)
		}
		server := startShipped(t, words(p.master.Command), "redlockd", password[1], func(file string) string { return p.local(t, at, file) })
		list = strings.Replace(list, name, server.Addr(), 1)
	}
	if strings.Contains(list, "@redlockd-master-") {
		t.Errorf("the Secret names more masters than run:\n%s", list)
	}
	if err := os.WriteFile(filepath.Join(p.secrets, "redlockd-masters", "masters"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
}

func words(texts []kubeText) (all []string) {
	for _, text := range texts {
		all = append(all, string(text))
	}
	return all
}

// environment sets the container's variables, with files of this machine.
func (p *pods) environment(t *testing.T) {
	t.Helper()
	for _, v := range p.daemon.Env {
		value := string(v.Value)
		if strings.HasPrefix(value, "/") {
			value = p.local(t, "Deployment/redlockd", value)
		}
		t.Setenv(string(v.Name), value)
	}
}

// arguments are the container's, with files of this machine.
func (p *pods) arguments(t *testing.T) (args []string) {
	t.Helper()
	for _, arg := range words(p.daemon.Args) {
		if strings.HasPrefix(arg, "/") {
			arg = p.local(t, "Deployment/redlockd", arg)
		}
		args = append(args, arg)
	}
	return args
}

// onLoopback are the arguments with free ports of this machine.
func onLoopback(args []string) (here []string) {
	port := regexp.MustCompile(`^(tls:)?[\d.]*:\d+$`)
	for _, arg := range args {
		here = append(here, port.ReplaceAllString(arg, "${1}127.0.0.1:0"))
	}
	return here
}

// admin returns a client of the admin endpoint that trusts the certificate of the Secret.
func (p *pods) admin(t *testing.T, name string) *http.Client {
	t.Helper()
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(p.secret(t, "redlockd-tls", "tls.crt"))) {
		t.Fatal("tls.crt holds no certificate")
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: name}}
	return &http.Client{Transport: transport, Timeout: testTimeout}
}

func TestKubernetes_RunsAsShipped(t *testing.T) {
	if version, _ := exec.Command("redis-server", "--version").Output(); strings.Contains(string(version), "v=6.") {
		t.Skip("kubernetes.yaml runs Redis 7.2: its users have PEXPIRETIME, which this redis-server lacks")
	}
	c := kubernetes(t)
	p := newPods(t, c)
	p.startMasters(t)
	p.environment(t)
	pod, args := c.deployments["redlockd"].Spec.Template.Spec, p.arguments(t)
	named := map[kubeText]string{}
	for _, port := range p.daemon.Ports {
		named[port.Name] = string(port.ContainerPort)
	}
	config := wantServes(t, args, os.Environ(), named["clients"], named["admin"])
	wantMemoryFits(t, p.daemon, config)
	if grace := time.Duration(pod.Grace) * time.Second; grace <= config.DrainGrace+config.DrainTimeout || config.DrainGrace == 0 {
		t.Errorf("%s to end, %s of grace and %s to drain", grace, config.DrainGrace, config.DrainTimeout)
	}
	for name, target := range map[string]kubePort{"redlockd": "clients", "redlockd-admin": "admin"} {
		if got := c.services[name].Spec.Ports[0].TargetPort; got != target {
			t.Errorf("the service %s leads to %q", name, got)
		}
	}
	if live, ready := p.daemon.Live.Get.Path, p.daemon.Ready.Get.Path; live != "/healthz" || ready != "/readyz" {
		t.Errorf("alive is %s and ready is %s", live, ready)
	}
	if acl := p.secret(t, "redlockd-master-users", "users.acl"); !strings.HasPrefix(acl, "user default off\nuser redlockd on >"+string(config.Masters[0].Password)+" ") {
		t.Errorf("users of the masters:\n%s", acl)
	}
	t.Setenv("REDLOCKD_MAX_TTL", "5s")
	o := operateAs(t, onLoopback(args))
	p.wantProbed(t, o, p.daemon.Live)
	if code, output := typed(t, nil, "check"); code != 0 {
		t.Errorf("check in the daemon's container: code %d:\n%s", code, output)
	}
	p.wantBootstrapped(t)
	p.wantProbed(t, o, p.daemon.Ready)
	client := dial(t, o.port)
	if got := client.ask(t, "DLOCK invoices 30000"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("without a login: %s", got)
	}
	if got := client.ask(t, "AUTH %s", p.secret(t, "redlockd-app", "password")); got != "+OK" {
		t.Fatalf("with the password of redlockd-app: %s", got)
	}
	last := ""
	eventually(t, "a lock is granted", func() bool { last = client.ask(t, "DLOCK invoices 5000"); return last == "*3" }, func() string { return last })
	p.wantScraped(t, o)
	o.stop(t)
}

// wantBootstrapped runs the Job twice.
func (p *pods) wantBootstrapped(t *testing.T) {
	t.Helper()
	job := p.jobs["redlockd-bootstrap"].Spec.Template.Spec.Containers[0]
	if job.Image != p.daemon.Image || len(job.Env) != 1 || job.Env[0] != p.daemon.Env[0] {
		t.Errorf("the Job runs %s with %v, the daemons %s with %v", job.Image, job.Env, p.daemon.Image, p.daemon.Env)
	}
	for _, want := range []string{"may vote", "nothing to do"} {
		if code, output := typed(t, nil, words(job.Args)...); code != 0 || !strings.Contains(output, want) {
			t.Errorf("%q: code %d, want 0 and %q:\n%s", job.Args, code, want, output)
		}
	}
}

// wantProbed waits until a probe of the container succeeds. The kubelet sends it as this does,
// and accepts any certificate.
func (p *pods) wantProbed(t *testing.T, o *operated, probe *probe) {
	t.Helper()
	if want := strings.ToLower(string(probe.Get.Scheme)) + "://"; !strings.HasPrefix(o.url, want) {
		t.Fatalf("probes use %s, the daemon serves %s", want, o.url)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: testTimeout}
	last := ""
	eventually(t, string(probe.Get.Path)+" succeeds", func() bool {
		response, err := client.Get(o.url + string(probe.Get.Path))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		last = response.Status + " " + string(text)
		return response.StatusCode >= 200 && response.StatusCode < 400
	}, func() string { return last })
}

// wantScraped scrapes as the ServiceMonitor describes.
func (p *pods) wantScraped(t *testing.T, o *operated) {
	t.Helper()
	scrape := p.monitors["redlockd"].Spec.Endpoints[0]
	if !strings.HasPrefix(o.url, string(scrape.Scheme)+"://") {
		t.Errorf("the monitor uses %s, the daemon serves %s", scrape.Scheme, o.url)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", o.url+string(scrape.Path), nil)
	if err != nil {
		t.Fatal(err)
	}
	login := scrape.BasicAuth
	request.SetBasicAuth(p.secret(t, string(login.Username.Name), string(login.Username.Key)), p.secret(t, string(login.Password.Name), string(login.Password.Key)))
	response, err := p.admin(t, string(scrape.TLS.ServerName)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || readMetrics(string(text))["redlockd_locks_acquired_total"] == nil {
		t.Errorf("%s, %v:\n%s", response.Status, err, text)
	}
}

// The alerts compare the label job of what is scraped.
func TestAlerts_UseTheJobOfTheMonitor(t *testing.T) {
	c := kubernetes(t)
	job := c.services["redlockd-admin"].Metadata.Labels[string(c.monitors["redlockd"].Spec.JobLabel)]
	for _, match := range regexp.MustCompile(`job="(.*?)"`).FindAllStringSubmatch(file(t, "alerts.yaml"), -1) {
		if match[1] != string(job) {
			t.Errorf("alerts.yaml compares the job %q, the ServiceMonitor makes %q", match[1], job)
		}
	}
}
