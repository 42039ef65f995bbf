package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of bootstrap/deploy/k8s.
type manifests struct {
	settings   corev1.ConfigMap
	secret     corev1.Secret
	deployment appsv1.Deployment
	migrate    batchv1.Job
	services   []corev1.Service
	budget     policyv1.PodDisruptionBudget
	scaler     autoscalingv2.HorizontalPodAutoscaler
	network    networkingv1.NetworkPolicy
}

// read decodes every document into its type; a field that the type does not have fails the test.
func read(t *testing.T) manifests {
	t.Helper()
	files, err := filepath.Glob("../k8s/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	var m manifests
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "kustomization.yaml" {
			everyResourceIsThere(t, text)
			continue
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			m.take(t, name, document)
		}
	}
	return m
}

func (m *manifests) take(t *testing.T, name string, document []byte) {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var into any
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Namespace":
		into = &corev1.Namespace{}
	case "v1 ConfigMap":
		into = &m.settings
	case "v1 Secret":
		into = &m.secret
	case "v1 Service":
		m.services = append(m.services, corev1.Service{})
		into = &m.services[len(m.services)-1]
	case "apps/v1 Deployment":
		into = &m.deployment
	case "batch/v1 Job":
		into = &m.migrate
	case "policy/v1 PodDisruptionBudget":
		into = &m.budget
	case "autoscaling/v2 HorizontalPodAutoscaler":
		into = &m.scaler
	case "networking.k8s.io/v1 NetworkPolicy":
		into = &m.network
	default:
		t.Fatalf("%s holds a %s of %s, which nobody checks", name, kind.Kind, kind.APIVersion)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func everyResourceIsThere(t *testing.T, text []byte) {
	t.Helper()
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	for _, resource := range kustomization.Resources {
		if resource == "secret.yaml" { // the operator's own, never committed
			resource = "secret.example.yaml"
		}
		if _, err := os.Stat(filepath.Join("../k8s", resource)); err != nil {
			t.Error(err)
		}
	}
}

func TestSelectorsMeetThePodsOfTheService(t *testing.T) {
	t.Parallel()
	m := read(t)
	pod, job := labels.Set(m.deployment.Spec.Template.Labels), labels.Set(m.migrate.Spec.Template.Labels)
	selectors := map[string]*metav1.LabelSelector{"deployment": m.deployment.Spec.Selector, "budget": m.budget.Spec.Selector,
		"network policy": &m.network.Spec.PodSelector}
	for _, service := range m.services {
		selectors[service.Name] = &metav1.LabelSelector{MatchLabels: service.Spec.Selector}
	}
	for name, selector := range selectors {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil || !s.Matches(pod) || s.Matches(job) {
			t.Errorf("%s: error %v, meets the service %v, the migration %v", name, err, s.Matches(pod), s.Matches(job))
		}
	}
	if target := m.scaler.Spec.ScaleTargetRef; target.Kind != "Deployment" || target.Name != m.deployment.Name {
		t.Errorf("the autoscaler scales %+v", target)
	}
	if *m.deployment.Spec.Replicas != 3 || *m.scaler.Spec.MinReplicas != 3 {
		t.Error("there are to be three instances at least")
	}
}

func TestNamedPortsAreThoseOfTheContainer(t *testing.T) {
	t.Parallel()
	m := read(t)
	ports := map[string]bool{}
	container := m.deployment.Spec.Template.Spec.Containers[0]
	for _, p := range container.Ports {
		ports[p.Name] = true
	}
	for _, service := range m.services {
		for _, p := range service.Spec.Ports {
			if !ports[p.TargetPort.StrVal] {
				t.Errorf("%s asks for port %q", service.Name, p.TargetPort.StrVal)
			}
		}
	}
	for _, rule := range m.network.Spec.Ingress {
		for _, p := range rule.Ports {
			if !ports[p.Port.StrVal] {
				t.Errorf("the network policy names port %q", p.Port.StrVal)
			}
		}
	}
	for name, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe.HTTPGet.Path != name || !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("the probe of %s asks %+v", name, probe.HTTPGet)
		}
	}
}

// restricted is what a namespace under the restricted standard demands of a pod.
func TestPodsAreRestrictedAndHaveTheirSecrets(t *testing.T) {
	t.Parallel()
	m := read(t)
	for name, pod := range map[string]corev1.PodSpec{"deployment": m.deployment.Spec.Template.Spec, "migration": m.migrate.Spec.Template.Spec} {
		c := pod.Containers[0]
		switch s := c.SecurityContext; {
		case !*pod.SecurityContext.RunAsNonRoot, !*s.ReadOnlyRootFilesystem, *s.AllowPrivilegeEscalation, s.Capabilities.Drop[0] != "ALL",
			*pod.EnableServiceLinks, *pod.AutomountServiceAccountToken:
			t.Errorf("the pod of the %s may do more than it needs", name)
		}
		if c.EnvFrom[0].ConfigMapRef.Name != m.settings.Name || pod.Volumes[0].Secret.SecretName != m.secret.Name {
			t.Errorf("the %s takes its settings from %+v, its secrets from %+v", name, c.EnvFrom, pod.Volumes)
		}
		for setting, value := range m.settings.Data {
			file, isFile := strings.CutPrefix(value, c.VolumeMounts[0].MountPath+"/")
			if _, there := m.secret.StringData[file]; isFile && !there {
				t.Errorf("%s names %s, which is not in the secret", setting, value)
			}
		}
	}
}

// The pod's patience has to outlast the ordered stop, or a rollout tears purchases.
func TestAPodIsGivenTheTimeToStop(t *testing.T) {
	t.Parallel()
	m := read(t)
	pod := m.deployment.Spec.Template.Spec
	const grace = 25 // SECKILL_STOP__GRACE
	if got := m.settings.Data["SECKILL_STOP__GRACE"]; got != "25s" {
		t.Fatalf("stop.grace is %s", got)
	}
	if most := *pod.TerminationGracePeriodSeconds; most < pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds+grace+2 {
		t.Errorf("killed after %d s", most)
	}
}
