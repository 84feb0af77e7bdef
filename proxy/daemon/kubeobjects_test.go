package daemon

// kubeobjects_test.go contains the objects of Kubernetes that the shipped files may use, field
// by field as its API has them. The decoder refuses every other field, a value of another
// type, and a key that is given twice.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"
)

// kubeText is a text. Kubernetes refuses numbers and truth values in its place.
type kubeText string

func (v *kubeText) UnmarshalYAML(decode func(any) error) error {
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%v is a %T and no text", value, value)
	}
	*v = kubeText(text)
	return nil
}

// kubePort is the number of a port, or the name of a container's port.
type kubePort string

func (v *kubePort) UnmarshalYAML(decode func(any) error) error {
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		if _, err := strconv.Atoi(value); err == nil {
			return fmt.Errorf("port %q is a number in quotes", value)
		}
	case int:
		if value < 1 || value > 65535 {
			return fmt.Errorf("%d is no port", value)
		}
	default:
		return fmt.Errorf("%v is a %T and no port", value, value)
	}
	*v = kubePort(fmt.Sprint(value))
	return nil
}

// quantity is an amount of a resource, in thousandths.
type quantity int64

var (
	quantityForm  = regexp.MustCompile(`^(\d+)(m|Ki|Mi|Gi)?$`)
	quantityUnits = map[string]quantity{"m": 1, "": 1000, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}
)

func (v *quantity) UnmarshalYAML(decode func(any) error) error {
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	match := quantityForm.FindStringSubmatch(fmt.Sprint(value))
	if match == nil {
		return fmt.Errorf("%v is no quantity", value)
	}
	n, err := strconv.ParseInt(match[1], 10, 32)
	*v = quantity(n) * quantityUnits[match[2]]
	return err
}

// bytes is the amount without thousandths.
func (v quantity) bytes() int64 { return int64(v / 1000) }

type (
	kubeLabels map[string]kubeText
	kubeMeta   struct {
		Name, Namespace kubeText
		Labels          kubeLabels
	}
	kubeSelector struct {
		MatchLabels kubeLabels `yaml:"matchLabels"`
	}
	kubeObject[S any] struct {
		APIVersion kubeText `yaml:"apiVersion"`
		Kind       kubeText
		Metadata   kubeMeta
		Spec       S
	}
	configMap struct {
		APIVersion kubeText `yaml:"apiVersion"`
		Kind       kubeText
		Metadata   kubeMeta
		Data       map[string]kubeText
	}
	serviceSpec struct {
		ClusterIP                kubeText `yaml:"clusterIP"`
		PublishNotReadyAddresses bool     `yaml:"publishNotReadyAddresses"`
		Selector                 kubeLabels
		Ports                    []struct {
			Name, Protocol kubeText
			Port           kubePort
			TargetPort     kubePort `yaml:"targetPort"`
		}
	}
	deploymentSpec struct {
		workload `yaml:",inline"`
		Strategy struct {
			RollingUpdate struct {
				MaxUnavailable int `yaml:"maxUnavailable"`
				MaxSurge       int `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
	}
	statefulSetSpec struct {
		workload            `yaml:",inline"`
		ServiceName         kubeText      `yaml:"serviceName"`
		PodManagementPolicy kubeText      `yaml:"podManagementPolicy"`
		MinReadySeconds     int           `yaml:"minReadySeconds"`
		Claims              []volumeClaim `yaml:"volumeClaimTemplates"`
	}
	jobSpec struct {
		workload `yaml:",inline"`
		Backoff  int `yaml:"backoffLimit"`
	}
	kubeSecret struct {
		APIVersion kubeText `yaml:"apiVersion"`
		Kind       kubeText
		Metadata   kubeMeta
		StringData map[string]kubeText `yaml:"stringData"`
	}
	workload struct {
		Replicas int
		Selector kubeSelector
		Template struct {
			Metadata kubeMeta
			Spec     podSpec
		}
	}
	podSpec struct {
		Token    *bool    `yaml:"automountServiceAccountToken"`
		Grace    int      `yaml:"terminationGracePeriodSeconds"`
		Restart  kubeText `yaml:"restartPolicy"`
		Affinity struct {
			Apart struct {
				Required  []affinityTerm `yaml:"requiredDuringSchedulingIgnoredDuringExecution"`
				Preferred []struct {
					Weight int
					Term   affinityTerm `yaml:"podAffinityTerm"`
				} `yaml:"preferredDuringSchedulingIgnoredDuringExecution"`
			} `yaml:"podAntiAffinity"`
		}
		Security struct {
			NonRoot bool                    `yaml:"runAsNonRoot"`
			User    int                     `yaml:"runAsUser"`
			Group   int                     `yaml:"fsGroup"`
			Seccomp struct{ Type kubeText } `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []volume
	}
	affinityTerm struct {
		TopologyKey kubeText     `yaml:"topologyKey"`
		Selector    kubeSelector `yaml:"labelSelector"`
	}
	container struct {
		Name, Image   kubeText
		Command, Args []kubeText
		Env           []struct{ Name, Value kubeText }
		Ports         []struct {
			Name          kubeText
			ContainerPort kubePort `yaml:"containerPort"`
		}
		Ready     *probe `yaml:"readinessProbe"`
		Live      *probe `yaml:"livenessProbe"`
		Resources struct{ Requests, Limits map[string]quantity }
		Security  struct {
			Escalation   *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnly     bool  `yaml:"readOnlyRootFilesystem"`
			Capabilities struct{ Drop []kubeText }
		} `yaml:"securityContext"`
		Mounts []struct {
			Name     kubeText
			Path     kubeText `yaml:"mountPath"`
			ReadOnly bool     `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	probe struct {
		Get *struct {
			Path, Scheme kubeText
			Port         kubePort
		} `yaml:"httpGet"`
		Socket   *struct{ Port kubePort } `yaml:"tcpSocket"`
		Period   int                      `yaml:"periodSeconds"`
		Timeout  int                      `yaml:"timeoutSeconds"`
		Failures int                      `yaml:"failureThreshold"`
	}
	volume struct {
		Name   kubeText
		Secret *struct {
			Name kubeText `yaml:"secretName"`
			Mode int      `yaml:"defaultMode"`
		}
		ConfigMap *struct{ Name kubeText } `yaml:"configMap"`
	}
	volumeClaim struct {
		Metadata kubeMeta
		Spec     struct {
			AccessModes []kubeText `yaml:"accessModes"`
			Class       kubeText   `yaml:"storageClassName"`
			Resources   struct{ Requests map[string]quantity }
		}
	}
	budgetSpec struct {
		MinAvailable   int `yaml:"minAvailable"`
		MaxUnavailable int `yaml:"maxUnavailable"`
		Selector       kubeSelector
	}
	policySpec struct {
		PodSelector kubeSelector `yaml:"podSelector"`
		PolicyTypes []kubeText   `yaml:"policyTypes"`
		Ingress     []struct {
			From  []policyPeer
			Ports []policyPort
		}
		Egress []struct {
			To    []policyPeer
			Ports []policyPort
		}
	}
	policyPeer struct {
		Pods       kubeSelector  `yaml:"podSelector"`
		Namespaces *kubeSelector `yaml:"namespaceSelector"` // nil: the policy's own namespace
	}
	policyPort struct {
		Port     kubePort
		Protocol kubeText
	}
	secretKey   struct{ Name, Key kubeText }
	monitorSpec struct {
		JobLabel  kubeText `yaml:"jobLabel"`
		Selector  kubeSelector
		Endpoints []struct {
			Port, Scheme, Path kubeText
			BasicAuth          struct{ Username, Password secretKey } `yaml:"basicAuth"`
			TLS                struct {
				ServerName kubeText `yaml:"serverName"`
				CA         struct{ Secret secretKey }
			} `yaml:"tlsConfig"`
		}
	}
)

// cluster has the objects of some files, by name.
type cluster struct {
	configs     map[string]configMap
	secrets     map[string]kubeSecret
	jobs        map[string]kubeObject[jobSpec]
	services    map[string]kubeObject[serviceSpec]
	deployments map[string]kubeObject[deploymentSpec]
	sets        map[string]kubeObject[statefulSetSpec]
	budgets     map[string]kubeObject[budgetSpec]
	policies    map[string]kubeObject[policySpec]
	monitors    map[string]kubeObject[monitorSpec]
}

// decodeObjects reads files of Kubernetes objects.
func decodeObjects(files ...string) (*cluster, error) {
	c := &cluster{
		map[string]configMap{}, map[string]kubeSecret{}, map[string]kubeObject[jobSpec]{}, map[string]kubeObject[serviceSpec]{}, map[string]kubeObject[deploymentSpec]{}, map[string]kubeObject[statefulSetSpec]{},
		map[string]kubeObject[budgetSpec]{}, map[string]kubeObject[policySpec]{}, map[string]kubeObject[monitorSpec]{},
	}
	for _, text := range files {
		for _, object := range documents(text) {
			if err := c.add(object); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// documents are the parts of a file, each with the line feed at its end.
func documents(text string) (all [][]byte) {
	for _, part := range strings.Split(text, "\n---\n") {
		all = append(all, []byte(strings.TrimRight(part, "\n")+"\n"))
	}
	return all
}

func (c *cluster) add(object []byte) (err error) {
	var head struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
	}
	if err := yaml.Unmarshal(object, &head); err != nil {
		return err
	}
	name := head.Metadata.Name
	switch head.APIVersion + " " + head.Kind {
	case "v1 ConfigMap":
		err = addObject(object, name, c.configs)
	case "v1 Secret":
		err = addObject(object, name, c.secrets)
	case "batch/v1 Job":
		err = addObject(object, name, c.jobs)
	case "v1 Service":
		err = addObject(object, name, c.services)
	case "apps/v1 Deployment":
		err = addObject(object, name, c.deployments)
	case "apps/v1 StatefulSet":
		err = addObject(object, name, c.sets)
	case "policy/v1 PodDisruptionBudget":
		err = addObject(object, name, c.budgets)
	case "networking.k8s.io/v1 NetworkPolicy":
		err = addObject(object, name, c.policies)
	case "monitoring.coreos.com/v1 ServiceMonitor":
		err = addObject(object, name, c.monitors)
	default:
		err = fmt.Errorf("the apiVersion and kind are in no file of ours; add them to cluster")
	}
	if err != nil {
		return fmt.Errorf("%s %s %q: %w", head.APIVersion, head.Kind, name, err)
	}
	return nil
}

var kubeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func addObject[T any](object []byte, name string, all map[string]T) error {
	var one T
	if err := yaml.UnmarshalStrict(object, &one); err != nil {
		return err
	}
	if _, twice := all[name]; twice || !kubeName.MatchString(name) {
		return fmt.Errorf("the name is given twice or is no name")
	}
	all[name] = one
	return nil
}

// workloads are what runs pods, by kind and name.
func (c *cluster) workloads() map[string]workload {
	all := map[string]workload{}
	for name, d := range c.deployments {
		all["Deployment/"+name] = d.Spec.workload
	}
	for name, j := range c.jobs {
		all["Job/"+name] = j.Spec.workload
	}
	for name, s := range c.sets {
		all["StatefulSet/"+name] = s.Spec.workload
	}
	return all
}

// selected returns the workload whose pods have the labels, "" unless there is exactly one.
func (c *cluster) selected(labels kubeLabels) (found string) {
	for name, w := range c.workloads() {
		if !labels.within(w.Template.Metadata.Labels) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

func (l kubeLabels) within(all kubeLabels) bool {
	for name, value := range l {
		if has, there := all[name]; !there || has != value {
			return false
		}
	}
	return len(l) > 0
}

// port returns the number of a container's port, given its number or its name.
func (w *workload) port(wanted kubePort) (number kubePort, ok bool) {
	for _, one := range w.Template.Spec.Containers {
		for _, p := range one.Ports {
			if wanted == p.ContainerPort || string(wanted) == string(p.Name) {
				return p.ContainerPort, true
			}
		}
	}
	return "", false
}
