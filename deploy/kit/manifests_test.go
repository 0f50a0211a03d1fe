package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// cluster holds the objects of the manifests, by kind and name.
type cluster struct {
	deployments map[string]*apps.Deployment // and stateful sets, with their claims as volumes
	services    map[string]*core.Service
	configs     map[string]*core.ConfigMap
	secrets     map[string]*core.Secret
	budgets     map[string]*policy.PodDisruptionBudget
	networks    map[string]*networking.NetworkPolicy
}

// aSigningLine begins a line that an installation with signatures takes in.
const aSigningLine = "# signing: "

// decode reads every manifest with the strict validation of an API server: an unknown field is an error.
func decode(t *testing.T, signed bool) cluster {
	t.Helper()
	c := cluster{
		map[string]*apps.Deployment{},
		map[string]*core.Service{},
		map[string]*core.ConfigMap{},
		map[string]*core.Secret{},
		map[string]*policy.PodDisruptionBudget{},
		map[string]*networking.NetworkPolicy{},
	}
	files, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if signed {
			text = []byte(strings.ReplaceAll(string(text), aSigningLine, ""))
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var kind struct {
				APIVersion, Kind string
				Metadata         struct{ Name, Namespace string }
			}
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name := kind.Metadata.Name
			if kind.Kind != "Namespace" && kind.Metadata.Namespace != "gridcast" {
				t.Errorf("%s: %s %s is in the namespace %q", file, kind.Kind, name, kind.Metadata.Namespace)
			}
			var into any
			switch kind.APIVersion + " " + kind.Kind {
			case "apps/v1 Deployment":
				c.deployments[name] = &apps.Deployment{}
				into = c.deployments[name]
			case "apps/v1 StatefulSet":
				into = &apps.StatefulSet{}
			case "v1 Service":
				c.services[name] = &core.Service{}
				into = c.services[name]
			case "v1 ConfigMap":
				c.configs[name] = &core.ConfigMap{}
				into = c.configs[name]
			case "v1 Secret":
				c.secrets[name] = &core.Secret{}
				into = c.secrets[name]
			case "v1 Namespace":
				into = &core.Namespace{}
			case "policy/v1 PodDisruptionBudget":
				c.budgets[name] = &policy.PodDisruptionBudget{}
				into = c.budgets[name]
			case "networking.k8s.io/v1 NetworkPolicy":
				c.networks[name] = &networking.NetworkPolicy{}
				into = c.networks[name]
			default:
				t.Errorf("%s: %s %s is read by nobody here", file, kind.APIVersion, kind.Kind)
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %s %s: %v", file, kind.Kind, name, err)
			}
			if set, ok := into.(*apps.StatefulSet); ok {
				c.deployments[name] = &apps.Deployment{Spec: apps.DeploymentSpec{Replicas: set.Spec.Replicas, Selector: set.Spec.Selector, Template: set.Spec.Template}}
				if set.Spec.ServiceName != "gridcast-edges" {
					t.Errorf("%s: its pods have names of the service %s", name, set.Spec.ServiceName)
				}
				pod := &c.deployments[name].Spec.Template.Spec
				for _, claim := range set.Spec.VolumeClaimTemplates {
					pod.Volumes = append(pod.Volumes, core.Volume{Name: claim.Name})
				}
			}
		}
	}
	return c
}

// The strict decoding finds a misspelt field.
func TestManifestsAreReadStrictly(t *testing.T) {
	if err := yaml.UnmarshalStrict([]byte("apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 2}\n"), &apps.Deployment{}); err == nil {
		t.Error("replica is taken for a field of a deployment")
	}
}

// Every name in a manifest refers to an existing object, and every process runs without rights.
func TestKubernetes(t *testing.T) {
	t.Run("unsigned", func(t *testing.T) { checkCluster(t, decode(t, false)) })
	t.Run("signed", func(t *testing.T) {
		c := decode(t, true)
		checkCluster(t, c)
		if c.secrets["gridcast-signing"] == nil || c.configs["gridcast"].Data["GRIDCAST_TRUST"] == "" {
			t.Error("no manifest has a place for the signing keys")
		}
	})
}

func checkCluster(t *testing.T, c cluster) {
	t.Helper()
	known := variables(t)
	ports := map[string]map[string]int32{} // of each app
	for name, d := range c.deployments {
		pod := d.Spec.Template.Spec
		app := d.Spec.Template.Labels["app"]
		if !matches(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
			t.Errorf("%s does not select its own pods", name)
		}
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser != nobody || s.SeccompProfile == nil {
			t.Errorf("%s: runs with rights: %+v", name, s)
		}
		ports[app] = map[string]int32{}
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
			if v.Secret != nil && c.secrets[v.Secret.SecretName] == nil {
				t.Errorf("%s: no secret %s", name, v.Secret.SecretName)
			}
		}
		for _, container := range pod.Containers {
			if s := container.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
				t.Errorf("%s: runs with rights: %+v", name, s)
			}
			for _, p := range container.Ports {
				ports[app][p.Name] = p.ContainerPort
			}
			for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
				if probe == nil || probe.HTTPGet == nil || ports[app][probe.HTTPGet.Port.StrVal] == 0 {
					t.Errorf("%s: a probe asks at no port of the container: %+v", name, probe)
				}
			}
			if path := container.ReadinessProbe.HTTPGet.Path; path != "/readyz" {
				t.Errorf("%s is ready by %s", name, path)
			}
			for _, from := range container.EnvFrom {
				if from.ConfigMapRef != nil && c.configs[from.ConfigMapRef.Name] == nil || from.SecretRef != nil && c.secrets[from.SecretRef.Name] == nil {
					t.Errorf("%s: takes its environment from nowhere: %+v", name, from)
				}
			}
			for _, e := range container.Env {
				knows(t, known, container.Args[0], e.Name)
				if e.Name != "GRIDCAST_EDGES" {
					continue
				}
				for i, url := range strings.Split(e.Value, ",") {
					if want := fmt.Sprintf("http://gridcast-edge-%d.gridcast-edges:9100", i); url != want {
						t.Errorf("%s: asks the edge %s, want %s", name, url, want)
					}
				}
				if n := strings.Count(e.Value, "http"); n != int(*c.deployments["gridcast-edge"].Spec.Replicas) || c.services["gridcast-edges"] == nil || c.services["gridcast-edges"].Spec.ClusterIP != core.ClusterIPNone {
					t.Errorf("%s: asks %d edges, want every replica, by a service without an address", name, n)
				}
			}
			for _, m := range container.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: mounts %s, which is no volume", name, m.Name)
				}
			}
		}
	}
	for _, config := range c.configs {
		for variable := range config.Data {
			knows(t, known, "edge", variable)
		}
	}
	for name, s := range c.services {
		for _, p := range s.Spec.Ports {
			if ports[s.Spec.Selector["app"]][p.TargetPort.StrVal] == 0 {
				t.Errorf("service %s: port %v of %v is nobody's", name, p.TargetPort, s.Spec.Selector)
			}
		}
	}
	for name, b := range c.budgets {
		if ports[b.Spec.Selector.MatchLabels["app"]] == nil {
			t.Errorf("budget %s is for nobody", name)
		}
	}
	for name, n := range c.networks {
		app := n.Spec.PodSelector.MatchLabels["app"]
		if app != "" && ports[app] == nil {
			t.Errorf("policy %s is for nobody", name)
		}
		for _, rule := range n.Spec.Ingress {
			for _, p := range rule.Ports {
				if p.Port.StrVal != "" && ports[app][p.Port.StrVal] == 0 {
					t.Errorf("policy %s: %s has no port %s", name, app, p.Port.StrVal)
				}
			}
		}
	}
	if len(c.deployments) != 2 || len(c.networks) != 3 || len(c.services) != 2 {
		t.Errorf("got %d deployments, %d policies, %d services, want 2, 3, 2", len(c.deployments), len(c.networks), len(c.services))
	}
}

func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// The library of Docker Compose accepts compose.yaml, and every file and variable in it exists.
func TestCompose(t *testing.T) {
	t.Run("unsigned", func(t *testing.T) { checkCompose(t, "../compose/compose.yaml") })
	t.Run("signed", func(t *testing.T) {
		folder, err := filepath.Abs("../compose") // its paths are relative
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.CreateTemp(folder, "signed-*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(file.Name()) })
		text := strings.ReplaceAll(readText(t, "../compose/compose.yaml"), aSigningLine, "")
		if _, err := file.WriteString(text); err != nil || file.Close() != nil || !strings.Contains(text, "\n      GRIDCAST_SIGN:") {
			t.Fatalf("no service signs, or %v", err)
		}
		checkCompose(t, file.Name())
	})
}

func checkCompose(t *testing.T, file string) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv([]string{"GRIDCAST_VERSION=v1.2.3", "S3_SECRET=secret", "GRAFANA_PASSWORD=secret", "SMTP_PASSWORD=secret"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	known := variables(t)
	for name, service := range project.Services {
		if service.Image == "gridcast:v1.2.3" {
			if !service.ReadOnly || service.User != "65532:65532" || !slices.Equal(service.CapDrop, []string{"ALL"}) || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("%s runs with rights", name)
			}
			for variable := range service.Environment {
				if strings.HasPrefix(variable, "GRIDCAST_") {
					knows(t, known, service.Command[0], variable)
				}
			}
		}
		for _, v := range service.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range service.Ports {
			if name != "balancer" && p.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the world", name, p.Published)
			}
		}
	}
	want := []string{"alertmanager", "balancer", "edge-1", "edge-2", "grafana", "prometheus", "redis", "s3", "scheduler"}
	if got := project.ServiceNames(); !slices.Equal(got, want) {
		t.Errorf("got the services %v, want %v", got, want)
	}
	scrapes := readText(t, "../compose/prometheus.yaml")
	for _, target := range []string{"edge-1:9100", "edge-2:9100", "scheduler:9100"} {
		if !strings.Contains(scrapes, `"`+target+`"`) {
			t.Errorf("Prometheus does not scrape %s", target)
		}
	}
	for _, file := range []string{"../compose/grafana/datasource.yaml", "../compose/grafana/dashboards.yaml"} {
		var v map[string]any
		if err := yaml.UnmarshalStrict([]byte(readText(t, file)), &v); err != nil || v["apiVersion"] == nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	var dashboard struct{ Panels []any }
	if err := json.Unmarshal([]byte(readText(t, "../grafana/gridcast.json")), &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Errorf("the dashboard has %d panels, %v", len(dashboard.Panels), err)
	}
}

// nobody is the user of the image. It is not root and has no other rights on any host.
const nobody = 65532

// TestDockerfile checks what a build without Docker can: the compiler has the version of go.mod, the build is that of
// make, and the user, the paths and the port are those that the other files expect.
func TestDockerfile(t *testing.T) {
	text := readText(t, "../Dockerfile")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readText(t, "../../go.mod"))
	for _, want := range []string{
		"FROM golang:" + version[1] + "-", "RUN make build ", fmt.Sprintf("USER %d:%d", nobody, nobody), "WORKDIR /var/lib/gridcast",
		"GRIDCAST_LISTEN=0.0.0.0:8080", "EXPOSE 8080", `ENTRYPOINT ["/usr/local/bin/gridcast"]`, "/etc/ssl/certs/ca-certificates.crt",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("deploy/Dockerfile has no %q", want)
		}
	}
}

// nginx and Prometheus read the configurations that ship for them.
func TestConfigurations(t *testing.T) {
	folder := t.TempDir()
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Log("nginx is not on this machine: its configurations are not read")
	} else {
		for _, file := range []string{"../nginx/gridcast.conf", "../compose/nginx.conf"} {
			// Only the containers resolve the names of the services.
			text := regexp.MustCompile(`edge-\d:8080`).ReplaceAllString(readText(t, file), "127.0.0.1:8080")
			all := "pid nginx.pid; events {} http { client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n" + text + "\n}\n"
			if err := os.WriteFile(filepath.Join(folder, "nginx.conf"), []byte(all), 0o600); err != nil {
				t.Fatal(err)
			}
			if output, err := exec.Command("nginx", "-t", "-p", folder, "-c", "nginx.conf", "-e", "error.log").CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", file, err, output)
			}
		}
	}
	for program, arguments := range map[string][]string{
		"amtool": {"check-config", "../alertmanager/alertmanager.yaml"},
		"caddy":  {"validate", "--adapter", "caddyfile", "--config", "../caddy/Caddyfile"},
	} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not on this machine: its configuration is not read", program)
			continue
		}
		if output, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", program, err, output)
		}
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Log("promtool is not on this machine: its configurations are not read")
		return
	}
	for _, file := range []string{"../prometheus/prometheus.yaml", "../prometheus/one-machine.yaml", "../compose/prometheus.yaml"} {
		for name, from := range map[string]string{"prometheus.yaml": file, "alerts.yaml": "../prometheus/alerts.yaml"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(readText(t, from)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if output, err := exec.Command("promtool", "check", "config", filepath.Join(folder, "prometheus.yaml")).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, output)
		}
	}
}

// systemd reads the units and rates their protection.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not on this machine: the units are not read")
	}
	known := variables(t)
	folder := t.TempDir()
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../systemd/*")
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, file := range files {
		// The test machine has no installed binary.
		text := strings.ReplaceAll(readText(t, file), "/usr/local/bin/gridcast", program)
		for _, match := range regexp.MustCompile(`GRIDCAST_[A-Z_]+`).FindAllString(text, -1) {
			knows(t, known, "edge", match)
		}
		unit := filepath.Join(folder, strings.Replace(filepath.Base(file), "@", "@1", 1))
		if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, unit)
	}
	if output, err := exec.Command("systemd-analyze", append([]string{"verify", "--man=no"}, units...)...).CombinedOutput(); err != nil || len(bytes.TrimSpace(output)) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
	for _, unit := range []string{"gridcast.service", "gridcast-edge@1.service", "gridcast-scheduler.service", "gridcast-nightly.service"} {
		// Exposure in tenths, from 0 to 100.
		if output, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", filepath.Join(folder, unit)).CombinedOutput(); err != nil {
			t.Errorf("%s is exposed: %v\n%s", unit, err, output)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// help returns the help of each role, from the binary of this checkout.
var help = sync.OnceValues(func() (map[string]string, error) {
	binary, err := program()
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, role := range []string{"edge", "scheduler", "serve"} {
		output, err := exec.Command(binary, role, "--help").Output()
		if err != nil {
			return nil, fmt.Errorf("%s --help: %w", role, err)
		}
		said[role] = string(output)
	}
	return said, nil
})

// variables returns the environment variables in the help of each role.
func variables(t *testing.T) map[string]string {
	t.Helper()
	said, err := help()
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func knows(t *testing.T, known map[string]string, role, variable string) {
	t.Helper()
	if !regexp.MustCompile(`\$` + variable + `\b`).MatchString(known[role]) {
		t.Errorf("%s does not know %s", role, variable)
	}
}
