package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifest are the objects of the Kubernetes manifest by kind and name, each read strictly
// as the type that the API has for it.
func manifest(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../cmd/headgate/install/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for _, doc := range bytes.Split(text, []byte("\n---\n")) {
		var head struct {
			APIVersion string
			Kind       string
			Metadata   struct{ Name string }
		}
		if err := yaml.Unmarshal(doc, &head); err != nil {
			t.Fatal(err)
		}
		into := map[string]any{
			"v1/ConfigMap": new(core.ConfigMap), "v1/Service": new(core.Service), "apps/v1/Deployment": new(apps.Deployment),
			"policy/v1/PodDisruptionBudget":           new(policy.PodDisruptionBudget),
			"monitoring.coreos.com/v1/ServiceMonitor": new(monitoring.ServiceMonitor),
		}[head.APIVersion+"/"+head.Kind]
		if into == nil {
			t.Fatalf("%s %s is no kind of the API", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict(doc, into); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		objects[head.Kind+" "+head.Metadata.Name] = into
	}
	return objects
}

// manifestFile is the edge's file in it.
func manifestFile(t *testing.T) string {
	t.Helper()
	config, _ := manifest(t)["ConfigMap headgate-edge"].(*core.ConfigMap)
	if config == nil || config.Data["edge.yaml"] == "" {
		t.Fatal("no file in the manifest")
	}
	return config.Data["edge.yaml"]
}

func TestTheManifestIsOfTheAPIAndHoldsTogether(t *testing.T) {
	need(t)
	objects := manifest(t)
	deployment := objects["Deployment headgate-edge"].(*apps.Deployment)
	pod := deployment.Spec.Template
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Spec.Containers))
	}
	edge := pod.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range edge.Ports {
		ports[p.Name] = p.ContainerPort
	}
	if edge.ReadinessProbe == nil || edge.LivenessProbe == nil || edge.ReadinessProbe.HTTPGet.Path != "/readyz" || edge.LivenessProbe.HTTPGet.Path != "/livez" {
		t.Errorf("probes %v and %v", edge.ReadinessProbe, edge.LivenessProbe)
	}
	for _, probe := range []*core.Probe{edge.ReadinessProbe, edge.LivenessProbe} {
		if _, ok := ports[probe.HTTPGet.Port.String()]; !ok {
			t.Errorf("a probe of port %s, which there is not", probe.HTTPGet.Port.String())
		}
	}
	if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas < 2 || !*pod.Spec.SecurityContext.RunAsNonRoot || *edge.SecurityContext.AllowPrivilegeEscalation || !*edge.SecurityContext.ReadOnlyRootFilesystem {
		t.Error("one replica, or a container that may more than it needs")
	}
	selected := func(what string, selector map[string]string) {
		t.Helper()
		if len(selector) == 0 {
			t.Errorf("%s selects everything", what)
		}
		for k, v := range selector {
			if pod.Labels[k] != v {
				t.Errorf("%s selects %s=%s, the pods have %q", what, k, v, pod.Labels[k])
			}
		}
	}
	selected("the deployment", deployment.Spec.Selector.MatchLabels)
	selected("the budget", objects["PodDisruptionBudget headgate-edge"].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels)
	for _, name := range []string{"edge", "headgate-edge-admin"} {
		service := objects["Service "+name].(*core.Service)
		selected("service "+name, service.Spec.Selector)
		for _, p := range service.Spec.Ports {
			if _, ok := ports[p.TargetPort.String()]; !ok {
				t.Errorf("service %s leads to port %s, which there is not", name, p.TargetPort.String())
			}
		}
	}
	monitorFindsItsService(t, objects)
}

func monitorFindsItsService(t *testing.T, objects map[string]any) {
	t.Helper()
	monitor := objects["ServiceMonitor headgate-edge"].(*monitoring.ServiceMonitor)
	admin := objects["Service headgate-edge-admin"].(*core.Service)
	for k, v := range monitor.Spec.Selector.MatchLabels {
		if admin.Labels[k] != v {
			t.Errorf("the monitor selects %s=%s, the service has %q", k, v, admin.Labels[k])
		}
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != admin.Spec.Ports[0].Name || monitor.Spec.Endpoints[0].Path != "/metrics" {
		t.Errorf("the monitor reads %+v", monitor.Spec.Endpoints)
	}
}

// What the manifest mounts is a file that the command takes, and its ports are those that
// the container says.
func TestTheCommandTakesTheManifestsFile(t *testing.T) {
	need(t)
	path := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.WriteFile(path, []byte(manifestFile(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(build(t, "../cmd/headgate"), "check", "-config", path).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(":8080, admin :9180")) {
		t.Errorf("%v\n%s", err, out)
	}
}
