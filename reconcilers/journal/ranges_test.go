package journal_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// sharedState is an operator whose replicas share the objects.
type sharedState journal.OperatorState

func (s sharedState) OperatorState() journal.OperatorState { return journal.OperatorState(s) }

// manyReplicas returns replicas that all hold a range.
func manyReplicas(n int) (all []sharding.Replica) {
	for i := range n {
		all = append(all, sharding.Replica{Identity: fmt.Sprintf("pod-%d_1", i), Count: n, Ranges: []int{i}})
	}
	return all
}

// TestRangeFacts shows that an explanation names the replica that holds the range of the object, says how to get the
// explanation there, and says so if no replica holds it or if the uid is not known.
func TestRangeFacts(t *testing.T) {
	const uid = "u1"
	index := sharding.IndexOf(uid, 4)
	other := []int{(index + 1) % 4}
	replicas := func(first, second []int) []sharding.Replica {
		return []sharding.Replica{
			{Identity: "pod-a_1", Count: 4, Ranges: first}, {Identity: "pod-b_2", Count: 4, Ranges: second},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		shared *sharding.Status
		object string
		want   string
		not    string
	}{
		"NotShared": {"an operator without sharding says nothing of ranges", nil, "known", "", "range"},
		"Own": {"the own range is said", &sharding.Status{Count: 4, Identity: "pod-a_1", Own: []int{index},
			Open: []int{index}, Replicas: replicas([]int{index}, other)}, "known", "This replica holds the range",
			"exec"},
		"Closed": {"a range with a closed gate is being moved", &sharding.Status{Count: 4, Identity: "pod-a_1",
			Own: []int{index}, Replicas: replicas([]int{index}, other)}, "known", "acquiring or leaving", ""},
		"Other": {"the holder is named with the command", &sharding.Status{Count: 4, Identity: "pod-a_1", Own: other,
			Open: other, Replicas: replicas(other, []int{index})}, "known",
			"Replica pod-b_2 holds the range, so this one does not handle the object. Repeat the command explain " +
				"there, such as by kubectl exec pod-b.", ""},
		"Unowned": {"a range without an owner", &sharding.Status{Count: 4, Identity: "pod-a_1", Own: other, Open: other,
			Unowned:  []sharding.Unowned{{Index: index, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
			Replicas: replicas(other, nil)}, "known", "No replica has held this range since 2026-01-02", ""},
		"Waits": {"ranges of another layout are not those of this replica", &sharding.Status{Count: 4,
			Identity: "pod-a_1", AwaitsLayout: true, Own: []int{index}, Open: []int{index},
			Replicas: replicas(nil, []int{index})}, "known", "Replica pod-b_2 holds the range", ""},
		"Elected": {"an elected replica handles all objects", &sharding.Status{Elected: "pod-x_1"}, "known",
			"Replica pod-x_1 handles all objects", ""},
		"Unknown": {"without a uid, the other replicas are listed", &sharding.Status{Count: 4, Identity: "pod-a_1",
			Own: other, Open: other, Replicas: replicas(other, []int{index})}, "unknown",
			"Repeat the command explain there, such as by kubectl exec: pod-b.", ""},
		"UnknownAmongMany": {"as many other replicas as fit are all listed", &sharding.Status{Count: 12,
			Identity: "pod-0_1", Replicas: manyReplicas(11)}, "unknown", "pod-9, pod-10.", "others"},
		"UnknownAmongTooMany": {"of too many replicas, the first are listed", &sharding.Status{Count: 12,
			Identity: "pod-0_1", Replicas: manyReplicas(12)}, "unknown",
			"pod-10 and others; the command top lists them.", "pod-11"},
		"NoPod": {"an identity without the name of a pod is shown as it is", &sharding.Status{Elected: "_1"}, "known",
			"Repeat the command explain there, such as by kubectl exec _1.", ""},
		"UnknownAlone": {"a lone replica holds all", &sharding.Status{Count: 4, Identity: "pod-a_1",
			Replicas: replicas([]int{0, 1, 2, 3}, nil)}, "unknown", "This replica holds all 4 ranges", "exec"},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal.New(journal.RetentionLimits{})
			widget := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
			kind := j.ForKind(widget.GroupKind(), nil)
			served := kind.ServedKind(discovery.Resource{
				GroupVersionKind: widget, Plural: "widgets", Namespaced: true,
			}, nil)
			served.Namespaces = []string{""}
			j.SetLive(sharedState{Running: true, Kinds: []journal.ServedKind{served}, Sharing: tc.shared})
			kind.ForObject(types.NamespacedName{Namespace: "ns", Name: "known"}, uid).RecordEvent("ADDED", "7")
			found, err := j.Explain("widget", types.NamespacedName{Namespace: "ns", Name: tc.object})
			if err != nil {
				t.Fatal(err)
			}
			facts := strings.Join(found.Facts, "\n")
			if !strings.Contains(facts, tc.want) || tc.not != "" && strings.Contains(facts, tc.not) {
				t.Errorf("%s: want %q and not %q in %q", tc.reason, tc.want, tc.not, facts)
			}
		})
	}
}
