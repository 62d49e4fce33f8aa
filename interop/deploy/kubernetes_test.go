// Package deploy tests the recipes in deploy/. It is a module of its own, so that programs
// need not download Kubernetes.
package deploy

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are those of one kustomization.
type manifests struct {
	jobs     map[string]batch.Job // by step
	settings core.ConfigMap
	accounts []core.ServiceAccount
	claims   []core.PersistentVolumeClaim
}

// decode returns the manifests of a kustomization. Unknown fields, fields that are there
// twice, and other kinds are errors.
func decode(t *testing.T, dir string) manifests {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{jobs: map[string]batch.Job{}}
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		strict := func(into any) {
			object, err := yaml.YAMLToJSONStrict(text)
			if err != nil {
				t.Fatal(err)
			}
			// Unlike encoding/json, this one does not take readOnlyRootFileSystem for readOnlyRootFilesystem.
			wrong, err := json.UnmarshalStrict(object, into)
			if wrong = append(wrong, err); errors.Join(wrong...) != nil {
				t.Errorf("%s: %s %s: %v", dir, r.GetKind(), r.GetName(), errors.Join(wrong...))
			}
		}
		switch id := r.GetApiVersion() + " " + r.GetKind(); id {
		case "batch/v1 Job":
			var j batch.Job
			strict(&j)
			m.jobs[j.Labels["step"]] = j
		case "v1 ConfigMap":
			strict(&m.settings)
		case "v1 ServiceAccount":
			var a core.ServiceAccount
			strict(&a)
			m.accounts = append(m.accounts, a)
		case "v1 PersistentVolumeClaim":
			var c core.PersistentVolumeClaim
			strict(&c)
			m.claims = append(m.claims, c)
		default:
			t.Errorf("%s: unexpected %s", dir, id)
		}
	}
	return m
}

// exitCodes returns the exit codes of the command by the names of its constants.
func exitCodes(t *testing.T) map[string]int32 {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../cmd/bloomjoin/internal/session/exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]int32{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Exit") && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				code, err := strconv.ParseInt(lit.Value, 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				codes[v.Names[0].Name] = int32(code)
			}
		}
		return true
	})
	return codes
}

// The manifests decode strictly, and say what the recipes rely on.
func TestKubernetes(t *testing.T) {
	codes := exitCodes(t)
	again := []int32{codes["ExitFailed"], codes["ExitGate"], codes["ExitUsage"]} // these would fail again
	if codes["ExitTryAgain"] == 0 || slices.Contains(again, 0) {
		t.Fatalf("the exit codes of the command: %v", codes)
	}
	for _, dir := range []string{"../../deploy/kubernetes/s3", "../../deploy/kubernetes/volume"} {
		m := decode(t, dir)
		if len(m.jobs) != 4 || len(m.accounts) != 1 {
			t.Fatalf("%s: %d jobs and %d accounts", dir, len(m.jobs), len(m.accounts))
		}
		for _, step := range []string{"build", "merge", "scan", "commit"} {
			j := m.jobs[step]
			checkJob(t, dir+" "+step, j, m, again)
			c := j.Spec.Template.Spec.Containers[0]
			if c.Args[0] != step || j.Name != "bloomjoin-"+step {
				t.Errorf("%s: job %s runs %q", dir, j.Name, c.Args)
			}
			if array := step == "build" || step == "scan"; array {
				checkArray(t, dir+" "+step, j)
			} else if j.Spec.CompletionMode != nil || j.Spec.BackoffLimit == nil {
				t.Errorf("%s %s: an array, or no limit on attempts", dir, step)
			}
		}
	}
}

// checkJob checks what all jobs have.
func checkJob(t *testing.T, name string, j batch.Job, m manifests, again []int32) {
	t.Helper()
	pod := j.Spec.Template.Spec
	if pod.RestartPolicy != core.RestartPolicyNever { // the API server refuses a failure policy otherwise
		t.Errorf("%s: restart policy %q", name, pod.RestartPolicy)
	}
	if len(pod.Containers) != 1 || pod.Containers[0].Name != "bloomjoin" || len(pod.Containers[0].Command) > 0 {
		t.Fatalf("%s: containers %v", name, pod.Containers)
	}
	if pod.ServiceAccountName != m.accounts[0].Name || j.Labels["app"] != "bloomjoin" {
		t.Errorf("%s: account %q, labels %v", name, pod.ServiceAccountName, j.Labels)
	}
	if j.Spec.PodFailurePolicy == nil || len(j.Spec.PodFailurePolicy.Rules) != 2 {
		t.Fatalf("%s: want two rules about failures", name)
	}
	fail, ignore := j.Spec.PodFailurePolicy.Rules[0], j.Spec.PodFailurePolicy.Rules[1]
	if on := fail.OnExitCodes; fail.Action != batch.PodFailurePolicyActionFailJob || on == nil || on.Operator != batch.PodFailurePolicyOnExitCodesOpIn || !slices.Equal(on.Values, again) || *on.ContainerName != "bloomjoin" {
		t.Errorf("%s: %+v, want exit codes %v to fail the job", name, fail, again)
	}
	if on := ignore.OnPodConditions; ignore.Action != batch.PodFailurePolicyActionIgnore || len(on) != 1 || on[0].Type != core.DisruptionTarget || on[0].Status != core.ConditionTrue {
		t.Errorf("%s: %+v, want disruptions not to count", name, ignore)
	}
	checkPod(t, name, pod, m)
}

// checkPod checks rights, volumes and variables.
func checkPod(t *testing.T, name string, pod core.PodSpec, m manifests) {
	t.Helper()
	c := pod.Containers[0]
	if s := pod.SecurityContext; s == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.FSGroup != *s.RunAsGroup {
		t.Errorf("%s: security of the pod %+v", name, s)
	}
	if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 {
		t.Errorf("%s: security of the container %+v", name, s)
	}
	if c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s: no limit from which the memory budget follows", name)
	}
	volumes := map[string]core.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
		if p := v.PersistentVolumeClaim; p != nil && !slices.ContainsFunc(m.claims, func(c core.PersistentVolumeClaim) bool { return c.Name == p.ClaimName }) {
			t.Errorf("%s: no claim %s", name, p.ClaimName)
		}
	}
	mounts := map[string]bool{}
	for _, v := range c.VolumeMounts {
		mounts[v.MountPath] = true
		if _, ok := volumes[v.Name]; !ok {
			t.Errorf("%s: no volume %s", name, v.Name)
		}
	}
	lake := m.settings.Data["LAKE"]
	if !mounts["/tmp"] || !strings.Contains(lake, "://") && !mounts[lake] || len(mounts) != len(volumes) {
		t.Errorf("%s: mounts %v for the data at %q", name, mounts, lake)
	}
	// The kubelet replaces $(NAME) in arguments where NAME is a variable of the container.
	if e := c.Env; len(e) != 1 || e[0].Name != "LAKE" || e[0].ValueFrom.ConfigMapKeyRef.Name != m.settings.Name || e[0].ValueFrom.ConfigMapKeyRef.Key != "LAKE" {
		t.Errorf("%s: variables %v", name, e)
	}
	for _, a := range c.Args {
		if strings.Contains(strings.ReplaceAll(a, "$(LAKE)", ""), "$") {
			t.Errorf("%s: unknown variable in %q", name, a)
		}
	}
}

// checkArray checks that the workers of an array job cover all shards.
func checkArray(t *testing.T, name string, j batch.Job) {
	t.Helper()
	s := j.Spec
	if s.CompletionMode == nil || *s.CompletionMode != batch.IndexedCompletion || s.BackoffLimitPerIndex == nil || s.BackoffLimit != nil || *s.MaxFailedIndexes != 0 {
		t.Errorf("%s: want an indexed job with a limit on attempts by index, got %+v", name, s)
	}
	if args := s.Template.Spec.Containers[0].Args; !slices.Contains(args, fmt.Sprintf("--shard=auto/%d", *s.Completions)) {
		t.Errorf("%s: %d completions, %q", name, *s.Completions, args)
	}
}
