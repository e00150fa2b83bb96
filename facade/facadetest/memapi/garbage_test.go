package memapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// garbageCase is a sequence of requests about config maps that own each other, with the remaining objects.
type garbageCase struct {
	reason   string
	requests []request
	want     []string
}

// garbageCases returns the stories. They run without a real server here, and beside kube-controller-manager in
// playGarbage.
func garbageCases() map[string]garbageCase {
	made := func(name, finalizers string, owners ...string) request {
		var refs []string
		for _, one := range owners {
			one, blocks := strings.CutPrefix(one, "!")
			refs = append(refs, fmt.Sprintf(
				`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":"{uid of %s}","blockOwnerDeletion":%t}`,
				one, one, blocks,
			))
		}
		return request{method: "POST", kind: configmaps, contentType: jsonContentType, body: fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"finalizers":[%s],"ownerReferences":[%s]}}`,
			name, finalizers, strings.Join(refs, ","),
		)}
	}
	gone := func(name, policy string) request {
		return request{method: "DELETE", kind: configmaps, name: name, query: "propagationPolicy=" + policy}
	}
	free := func(name string) request {
		return request{
			method: "PATCH", kind: configmaps, name: name, contentType: mergePatchType,
			body: `{"metadata":{"finalizers":null}}`,
		}
	}
	hold := `"example.org/hold"`
	return map[string]garbageCase{
		"Background": {
			reason:   "background deletion removes dependents and their dependents",
			requests: []request{made("a", ""), made("b", "", "a"), made("c", "", "b"), gone("a", "Background")},
		},
		"Held": {
			reason:   "an owner held by a finalizer keeps its dependents",
			requests: []request{made("a", hold), made("b", "", "a"), gone("a", "Background")},
			want:     []string{"a dying [example.org/hold] of []", "b [] of [a]"},
		},
		"Foreground": {
			reason:   "foreground deletion of an owner waits for a blocking dependent",
			requests: []request{made("a", ""), made("b", hold, "!a"), made("c", "", "a"), gone("a", "Foreground")},
			want:     []string{"a dying [foregroundDeletion] of []", "b dying [example.org/hold] of [a]"},
		},
		"ForegroundFreed": {
			reason: "an owner is removed after its last blocking dependent",
			requests: []request{
				made("a", ""), made("b", hold, "!a"), made("c", "", "!b"), gone("a", "Foreground"), free("b"),
			},
		},
		"ForegroundUnblocked": {
			reason:   "foreground deletion does not wait for dependents that do not block",
			requests: []request{made("a", ""), made("b", hold, "a"), gone("a", "Foreground")},
			want:     []string{"b dying [example.org/hold] of [a]"},
		},
		"ForegroundChain": {
			reason: "an owner waits while a dependent waits for its own dependents",
			requests: []request{
				made("a", ""), made("b", "", "!a"), made("c", hold, "!b"), gone("a", "Foreground"),
			},
			want: []string{
				"a dying [foregroundDeletion] of []", "b dying [foregroundDeletion] of [a]",
				"c dying [example.org/hold] of [b]",
			},
		},
		"Orphan": {
			reason:   "orphaned dependents stay, without the owner reference",
			requests: []request{made("a", ""), made("b", "", "!a"), made("c", "", "b"), gone("a", "Orphan")},
			want:     []string{"b [] of []", "c [] of [b]"},
		},
		"TwoOwners": {
			reason:   "a dependent with a second owner stays and loses the first reference",
			requests: []request{made("a", ""), made("z", ""), made("b", "", "a", "z"), gone("a", "Background")},
			want:     []string{"b [] of [z]", "z [] of []"},
		},
		"TwoOwnersForeground": {
			reason:   "foreground deletion does not wait for a dependent with a second owner",
			requests: []request{made("a", ""), made("z", ""), made("b", "", "!a", "!z"), gone("a", "Foreground")},
			want:     []string{"b [] of [z]", "z [] of []"},
		},
		"Absent": {
			reason:   "a dependent is removed if its owner never existed",
			requests: []request{made("b", "", "a")},
		},
		"Successor": {
			reason:   "an object with the owner's name and another uid is not the owner",
			requests: []request{made("a", ""), gone("a", "Background"), made("a", ""), made("b", "", "former a")},
			want:     []string{"a [] of []"},
		},
	}
}

// playStory sends the requests of a story.
func (p *player) playStory(s garbageCase) {
	p.t.Helper()
	for _, r := range s.requests {
		for _, name := range []string{"a", "b", "z"} {
			id := p.identities[configmaps+"/"+name]
			r.body = strings.ReplaceAll(r.body, "{uid of "+name+"}", orNone(id.uid))
			r.body = strings.ReplaceAll(r.body, "{uid of former "+name+"}", orNone(id.oldUID))
		}
		r.body = strings.ReplaceAll(r.body, `"name":"former a"`, `"name":"a"`)
		if code := p.play(r).Code; code >= 300 {
			p.t.Fatalf("%s %s: %d", r.method, r.name, code)
		}
	}
}

func orNone(uid string) string {
	if uid == "" {
		return "11111111-1111-4111-8111-111111111111"
	}
	return uid
}

// remainingObjects returns the remaining config maps with their finalizers and owners.
func (p *player) remainingObjects() []string {
	p.t.Helper()
	var all []string
	for _, item := range p.list(configmaps) {
		metadata, _ := item["metadata"].(map[string]any)
		if metadata["name"] == "kube-root-ca.crt" {
			continue
		}
		owners := []any{}
		refs, _ := metadata["ownerReferences"].([]any)
		for _, ref := range refs {
			owners = append(owners, ref.(map[string]any)["name"])
		}
		finalizers, _ := metadata["finalizers"].([]any)
		dying := ""
		if metadata["deletionTimestamp"] != nil {
			dying = " dying"
		}
		all = append(all, fmt.Sprintf("%s%s %v of %v", metadata["name"], dying, finalizers, owners))
	}
	slices.Sort(all)
	return all
}

func TestCollectGarbage(t *testing.T) {
	for name, s := range garbageCases() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.CollectGarbage(time.Second)
				p := newPlayer(t, "http://mem", server)
				for i := range s.requests {
					p.playStory(garbageCase{requests: s.requests[i : i+1]})
					if i < len(s.requests)-1 && s.requests[i+1].method == "PATCH" {
						time.Sleep(time.Minute) // the collector runs before the finalizer is removed
					}
				}
				time.Sleep(time.Minute)
				if d := cmp.Diff(s.want, p.remainingObjects()); d != "" {
					t.Errorf("%s: remaining objects: -want, +got:\n%s", s.reason, d)
				}
			})
			server := memapi.New()
			server.CollectGarbage(0)
			p := newPlayer(t, "http://mem", server)
			p.playStory(s)
			if d := cmp.Diff(s.want, p.remainingObjects()); d != "" {
				t.Errorf("with collection at once: %s: remaining objects: -want, +got:\n%s", s.reason, d)
			}
		})
	}
}

func TestNoCollectionByDefault(t *testing.T) {
	p := newPlayer(t, "http://mem", memapi.New())
	p.playStory(garbageCases()["Background"])
	if d := cmp.Diff([]string{"b [] of [a]", "c [] of [b]"}, p.remainingObjects()); d != "" {
		t.Errorf("without CollectGarbage, dependents must stay: -want, +got:\n%s", d)
	}
}
