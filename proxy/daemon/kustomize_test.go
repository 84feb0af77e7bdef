package daemon

// Tests of the kustomizations: what they name exists, and the objects that they make keep
// what the tests of kubernetes.yaml demand. A small part of kustomize is written here, so that
// this is checked without it; where kubectl is installed, both must make the same objects.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v2"
)

const overlay = "kubernetes/production"

// kustomization is what a kustomization.yaml of ours may have.
type kustomization struct {
	APIVersion kubeText `yaml:"apiVersion"`
	Kind       kubeText
	Namespace  kubeText
	Resources  []kubeText
	Images     []struct {
		Name, Digest kubeText
		NewName      kubeText `yaml:"newName"`
		NewTag       kubeText `yaml:"newTag"`
	}
	Replicas []struct {
		Name  kubeText
		Count int
	}
	Patches []struct {
		Path, Patch kubeText
		Target      struct{ Kind, Name kubeText }
	}
}

// jsonStep is one step of a patch by paths.
type jsonStep struct {
	Op, Path kubeText
	Value    any
}

// tree is an object as YAML has it.
type tree = map[any]any

// kustomized returns the objects that a directory makes.
func kustomized(dir string) (objects []tree, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		return nil, err
	}
	if k.APIVersion != "kustomize.config.k8s.io/v1beta1" || k.Kind != "Kustomization" {
		return nil, fmt.Errorf("%s: %s %s is no kustomization", dir, k.APIVersion, k.Kind)
	}
	for _, resource := range k.Resources {
		more, err := resourceObjects(filepath.Join(dir, string(resource)))
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	if err := k.apply(dir, objects); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return objects, nil
}

// resourceObjects reads a file, or the kustomization of a directory.
func resourceObjects(path string) (objects []tree, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return kustomized(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, document := range documents(string(text)) {
		var object tree
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (k *kustomization) apply(dir string, objects []tree) error {
	for _, p := range k.Patches {
		if err := patchObjects(dir, string(p.Path), string(p.Patch), string(p.Target.Kind), string(p.Target.Name), objects); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if k.Namespace != "" {
			object["metadata"].(tree)["namespace"] = string(k.Namespace)
		}
	}
	for _, r := range k.Replicas {
		found := false
		for _, object := range objects {
			spec, _ := object["spec"].(tree)
			if _, has := spec["replicas"]; has && object["metadata"].(tree)["name"] == string(r.Name) {
				spec["replicas"], found = r.Count, true
			}
		}
		if !found {
			return fmt.Errorf("replicas of %s: it has none", r.Name)
		}
	}
	for _, i := range k.Images {
		found := false
		for _, one := range containersOf(objects) {
			if name, tag, _ := strings.Cut(one["image"].(string), ":"); name == string(i.Name) {
				one["image"], found = imageName(name, tag, string(i.NewName), string(i.NewTag), string(i.Digest)), true
			}
		}
		if !found {
			return fmt.Errorf("image %s: no container has it", i.Name)
		}
	}
	return nil
}

func imageName(name, tag, newName, newTag, digest string) string {
	if newName != "" {
		name = newName
	}
	switch {
	case digest != "":
		return name + "@" + digest
	case newTag != "":
		tag = newTag
	}
	return name + ":" + tag
}

func containersOf(objects []tree) (all []tree) {
	for _, object := range objects {
		spec, _ := object["spec"].(tree)
		template, _ := spec["template"].(tree)
		pod, _ := template["spec"].(tree)
		list, _ := pod["containers"].([]any)
		for _, one := range list {
			all = append(all, one.(tree))
		}
	}
	return all
}

// patchObjects applies one patch, of a file or in place, to the one object that it is for.
func patchObjects(dir, path, text, kind, name string, objects []tree) error {
	if (path == "") == (text == "") {
		return fmt.Errorf("a patch has a path or a text")
	}
	if path != "" {
		content, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		text = string(content)
	}
	var steps []jsonStep
	if err := yaml.UnmarshalStrict([]byte(text), &steps); err == nil {
		target, err := findObject(objects, kind, name)
		for _, step := range steps {
			if err == nil {
				err = step.apply(target)
			}
		}
		return err
	}
	var changed tree
	if err := yaml.UnmarshalStrict([]byte(text), &changed); err != nil {
		return err
	}
	kind, _ = changed["kind"].(string)
	name, _ = changed["metadata"].(tree)["name"].(string)
	target, err := findObject(objects, kind, name)
	if err != nil {
		return err
	}
	return mergeTree(target, changed, kind+"/"+name)
}

func findObject(objects []tree, kind, name string) (tree, error) {
	for _, object := range objects {
		if object["kind"] == kind && object["metadata"].(tree)["name"] == name {
			return object, nil
		}
	}
	return nil, fmt.Errorf("a patch is for %s/%s, which there is not", kind, name)
}

// apply sets the value at the path. All but the last word of the path must exist, and the
// last one, too, unless it is added.
func (s jsonStep) apply(at tree) error {
	parts := strings.Split(strings.TrimPrefix(string(s.Path), "/"), "/")
	var here any = at
	for _, part := range parts[:len(parts)-1] {
		switch node := here.(type) {
		case tree:
			here = node[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(node) {
				return fmt.Errorf("path %s: there is no %s", s.Path, part)
			}
			here = node[i]
		}
	}
	parent, ok := here.(tree)
	_, there := parent[parts[len(parts)-1]]
	if !ok || s.Op != "add" && s.Op != "replace" || s.Op == "replace" && !there {
		return fmt.Errorf("%s of the path %s: it leads nowhere", s.Op, s.Path)
	}
	parent[parts[len(parts)-1]] = s.Value
	return nil
}

// namedLists are lists whose entries a patch changes by their names; it replaces others.
var namedLists = []string{"containers", "env", "volumes"}

func mergeTree(into, from tree, at string) error {
	for key, value := range from {
		at := at + "/" + fmt.Sprint(key)
		inner, isTree := value.(tree)
		list, isList := value.([]any)
		switch old := into[key].(type) {
		case tree:
			if !isTree {
				return fmt.Errorf("%s has fields, the patch has %v", at, value)
			}
			if err := mergeTree(old, inner, at); err != nil {
				return err
			}
		case []any:
			if !isList || !slices.Contains(namedLists, fmt.Sprint(key)) {
				return fmt.Errorf("%s: only lists with names are merged here: %q", at, namedLists)
			}
			merged, err := mergeList(old, list, at)
			if err != nil {
				return err
			}
			into[key] = merged
		default:
			into[key] = value
		}
	}
	return nil
}

// mergeList changes entries by name. Those of the patch come first, as kustomize puts them.
func mergeList(old, changes []any, at string) (merged []any, err error) {
	rest := slices.Clone(old)
	for _, change := range changes {
		i := slices.IndexFunc(rest, func(one any) bool { return one.(tree)["name"] == change.(tree)["name"] })
		if i < 0 && strings.HasSuffix(at, "/containers") {
			return nil, fmt.Errorf("%s: there is no %v", at, change.(tree)["name"])
		}
		if i >= 0 {
			present := rest[i].(tree)
			if err := mergeTree(present, change.(tree), at); err != nil {
				return nil, err
			}
			change, rest = present, slices.Delete(rest, i, i+1)
		}
		merged = append(merged, change)
	}
	return append(merged, rest...), nil
}

// production are the objects of the overlay.
func production(t *testing.T, dir string) *cluster {
	t.Helper()
	objects, err := kustomized(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(objects))
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	c, err := decodeObjects(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestKustomize_TheBaseIsTheShippedFile(t *testing.T) {
	shipped, err := decodeObjects(file(t, kubernetesFile))
	if err != nil {
		t.Fatal(err)
	}
	if base := production(t, "configs/kubernetes/base"); !reflect.DeepEqual(base, shipped) {
		t.Errorf("the base makes %+v", base)
	}
}

func TestKustomize_TheExampleKeepsWhatTheBasePromises(t *testing.T) {
	c := production(t, filepath.Join("configs", overlay))
	for _, wrong := range wrongObjects(c, kubeSecrets(t)) {
		t.Error(wrong)
	}
	wantQuorumKept(t, c)
	if n, base := c.sets["redlockd-master"].Spec.Replicas, kubernetes(t).sets["redlockd-master"].Spec.Replicas; n != base {
		t.Errorf("%d masters run, the commands list %d", n, base)
	}
	pods := newPods(t, c)
	pods.environment(t)
	config := wantServes(t, pods.arguments(t), os.Environ(), "7379", "9379")
	wantMemoryFits(t, pods.daemon, config)
	if base := kubernetes(t).deployments["redlockd"].Spec.Template.Spec.Containers[0]; pods.daemon.Image == base.Image || pods.master.Image == "redis:7.2" {
		t.Errorf("the example leaves the images %s and %s", pods.daemon.Image, pods.master.Image)
	}
}

// The trial needs no commands: its Secrets are files. All of it runs on ports of this machine.
func TestKustomize_TheTrialRunsByItself(t *testing.T) {
	if version, _ := exec.Command("redis-server", "--version").Output(); strings.Contains(string(version), "v=6.") {
		t.Skip("kubernetes.yaml runs Redis 7.2: its users have PEXPIRETIME, which this redis-server lacks")
	}
	c := production(t, "configs/kubernetes/trial")
	p := &pods{cluster: c, secrets: t.TempDir(), keys: map[string][]string{}, master: &c.sets["redlockd-master"].Spec.Template.Spec.Containers[0], daemon: &c.deployments["redlockd"].Spec.Template.Spec.Containers[0]}
	for name, secret := range c.secrets {
		for key, text := range secret.StringData {
			p.keys[name] = append(p.keys[name], key)
			if err := os.MkdirAll(filepath.Join(p.secrets, name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(p.secrets, name, key), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, wrong := range wrongObjects(c, p.keys) {
		t.Error(wrong)
	}
	if acl := strings.Replace(file(t, "master-acl.txt"), ">change-me ", ">trial ", 1); p.secret(t, "redlockd-master-users", "users.acl") != "user default off\n"+acl {
		t.Error("users.acl is not master-acl.txt with the trial's password")
	}
	if strings.HasSuffix(string(p.daemon.Image), ":latest") {
		t.Errorf("the image %s is pulled, also where it was loaded", p.daemon.Image)
	}
	p.startMasters(t)
	p.environment(t)
	args := p.arguments(t)
	config := wantServes(t, args, os.Environ(), "7379", "9379")
	if grace := time.Duration(c.deployments["redlockd"].Spec.Template.Spec.Grace) * time.Second; grace <= config.DrainGrace+config.DrainTimeout {
		t.Errorf("%s to end, %s of grace and %s to drain", grace, config.DrainGrace, config.DrainTimeout)
	}
	o := operateAs(t, onLoopback(args))
	p.wantBootstrapped(t)
	p.wantProbed(t, o, p.daemon.Ready)
	client := dial(t, o.port)
	if got := client.ask(t, "AUTH trial"); got != "+OK" {
		t.Fatalf("AUTH: %s", got)
	}
	client.lock(t, "invoices")
	o.stop(t)
}

func TestWrongKustomizations_AreFound(t *testing.T) {
	for _, change := range [][3]string{
		{"kustomization.yaml", "resources: [../base]", "resources: [../bases]"},
		{"kustomization.yaml", "resources:", "resource:"},
		{"kustomization.yaml", "path: daemons.yaml", "path: daemon.yaml"},
		{"kustomization.yaml", "{name: redis,", "{name: reddis,"},
		{"kustomization.yaml", "{name: redlockd, count: 3}", "{name: redlock, count: 3}"},
		{"kustomization.yaml", "newTag: 7.2.5", "newTag: 7.2"},
		{"kustomization.yaml", "target: {kind: StatefulSet,", "target: {kind: Deployment,"},
		{"kustomization.yaml", "volumeClaimTemplates/0", "volumeClaimTemplates/1"},
		{"kustomization.yaml", "requests/storage", "requests/store"},
		{"daemons.yaml", "metadata: {name: redlockd}", "metadata: {name: redlock}"},
		{"daemons.yaml", "- name: redlockd", "- name: redlock"},
		{"daemons.yaml", "      containers:", "      containers: []\n      containers:"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("configs/kubernetes")); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "production", change[0])
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), change[1]) {
			t.Fatalf("%s has no %s: %v", change[0], change[1], err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[1], change[2], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := kustomized(filepath.Join(dir, "production")); err == nil {
			t.Errorf("%s in place of %s is not noticed", change[2], change[1])
		}
	}
}

// kubectl needs no cluster for this, and gets no configuration for one.
func TestKustomize_MakesTheSameObjects(t *testing.T) {
	command := exec.Command("kustomize", "build", filepath.Join("configs", overlay))
	if _, err := exec.LookPath("kustomize"); err != nil {
		if _, err := exec.LookPath("kubectl"); err != nil {
			t.Skip("neither kustomize nor kubectl on this machine: only the tests' own part of kustomize was run")
		}
		command = exec.Command("kubectl", "kustomize", filepath.Join("configs", overlay))
	}
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+os.DevNull)
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	theirs, err := decodeObjects(strings.TrimPrefix(string(output), "---\n"))
	if err != nil {
		t.Fatal(err)
	}
	if ours := production(t, filepath.Join("configs", overlay)); !reflect.DeepEqual(ours, theirs) {
		t.Errorf("kustomize makes\n%+v\nand the tests make\n%+v", theirs, ours)
	}
}
