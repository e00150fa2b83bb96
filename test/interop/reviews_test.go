package interop_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/test/genuine"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// reviewsPlayed is how many random reviews both sides answer.
const reviewsPlayed = 1000

type object = map[string]any

// Both sides answer the same reviews with handlers that do the same.
func TestReviews(t *testing.T) {
	folder, err := genuine.Folder()
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	cases := make([]object, reviewsPlayed)
	for i := range cases {
		cases[i] = randomReview(dice)
	}
	theirs := answeredByKopf(t, folder, cases)
	denied, patched := 0, 0
	for i, one := range cases {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		want, got := withPatchedObject(t, one, theirs[i]), withPatchedObject(t, one, answeredByUs(t, one))
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("review %d: %s\n-Kopf, +ours:\n%s", i, text, d)
		}
		verdict, _ := want["response"].(object)
		if verdict["allowed"] == false {
			denied++
		}
		if verdict["patch"] != nil {
			patched++
		}
	}
	if denied < reviewsPlayed/10 || patched < reviewsPlayed/10 {
		t.Errorf("hardly anything happens: %d are denied, and %d patched", denied, patched)
	}
}

// randomReview is a case: handlers, and a request that some of them are for.
func randomReview(dice *rand.Rand) object {
	asked := object{
		"uid": fmt.Sprint(dice.Int()), "operation": oneOf(dice, "CREATE", "UPDATE", "DELETE", "CONNECT"),
		"resource": object{"group": "kopf.dev", "version": "v1", "resource": oneOf(
			dice, "kopfexamples", "kopfexamples", "kopfexamples", "kopfexamples", "others",
		)},
		"userInfo": object{"username": "ann"}, "dryRun": dice.IntN(2) == 0,
	}
	if subresource := oneOf(dice, "", "", "status"); subresource != "" {
		asked["subResource"] = subresource
	}
	for _, key := range []string{"object", "oldObject"} {
		if key == "object" && asked["operation"] != "DELETE" || key == "oldObject" && asked["operation"] == "DELETE" ||
			dice.IntN(2) == 0 {
			asked[key] = randomObject(dice)
		}
	}
	if resource, _ := asked["resource"].(object); resource["resource"] == "kopfexamples" && dice.IntN(20) == 0 {
		delete(asked, "userInfo") // with two mistakes, either may be reported
	}
	all := []any{}
	for i := range dice.IntN(4) + 1 {
		all = append(all, randomHandler(dice, string(rune('a'+i))))
	}
	one := object{"handlers": all, "request": object{
		"apiVersion": oneOf(dice, "admission.k8s.io/v1", "admission.k8s.io/v1beta1"), "kind": "AdmissionReview",
		"request": asked,
	}}
	if hint := oneOf(dice, "none", "none", "", "a", "b", "c/spec.x"); hint != "none" {
		one["hint"] = hint
	}
	return one
}

func randomObject(dice *rand.Rand) object {
	spec := object{}
	for _, key := range []string{"x", "y", "z"} {
		if dice.IntN(2) == 0 {
			spec[key] = dice.IntN(3)
		}
	}
	return object{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "spec": spec, "unknown": []any{object{"a": nil}},
		"metadata": object{"name": "kex1", "uid": "uid1", "labels": object{"l": oneOf(dice, "a", "b")}},
	}
}

func randomHandler(dice *rand.Rand, id string) object {
	h := object{"on": oneOf(dice, "validate", "mutate"), "id": id, "fn": id}
	if dice.IntN(4) == 0 {
		h["labels"] = object{"l": oneOf(dice, "a", "b")}
	}
	if dice.IntN(4) == 0 {
		h["field"], h["value"] = "spec.x", dice.IntN(2)
	}
	if subresource := oneOf(dice, "", "", "status", "*"); subresource != "" {
		h["subresource"] = subresource
	}
	behave := object{}
	if dice.IntN(2) == 0 {
		behave["patch"] = object{oneOf(dice, "x", "y", "new"): []any{1, "text", nil, []any{1}}[dice.IntN(4)]}
	}
	if dice.IntN(3) == 0 {
		behave["warn"] = []any{"careful", id}
	}
	if raise := oneOf(dice, "", "", "", "admission", "permanent", "temporary", "arbitrary"); raise != "" {
		behave["raise"], behave["message"] = raise, "no, says "+id
		if raise == "admission" && dice.IntN(2) == 0 {
			behave["code"] = 400 + dice.IntN(100)
		}
	}
	h["behave"] = behave
	return h
}

func oneOf(dice *rand.Rand, all ...string) string { return all[dice.IntN(len(all))] }

// answeredByKopf has genuine Kopf answer all of them.
func answeredByKopf(t *testing.T, folder string, cases []object) (all []object) {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), filepath.Join(folder, "bin", "python"), filepath.Join(
		"testdata", "reviews.py",
	))
	run.Stdin, run.Stderr = bytes.NewReader(in), os.Stderr
	out, err := run.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// answeredByUs has ours answer one.
func answeredByUs(t *testing.T, one object) (out object) {
	t.Helper()
	served := review.ServedResource{Resource: declared.Resource(t, nil)}
	plain, _ := roundTrip(t, one["handlers"]).([]any)
	all, err := declared.Handlers(t, plain, served.Resource)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		d.Handler.Call = behaviorFunc(t, d.Options.Mapping("behave"))
		served.Handlers = append(served.Handlers, adapters.New(d.Handler, nil))
	}
	in := review.EndpointRequest{}
	if in.Body, err = json.Marshal(one["request"]); err != nil {
		t.Fatal(err)
	}
	if hint, is := one["hint"].(string); is {
		in.HandlerID = &hint
	}
	reviewer := review.Reviewer{
		ServedResources: func() []review.ServedResource { return []review.ServedResource{served} },
	}
	response, err := reviewer.Review(t.Context(), in)
	if err != nil {
		classes := map[int]string{400: "MissingDataError", 404: "UnknownResourceError"}
		return object{"error": classes[review.StatusOf(err)]}
	}
	out, _ = roundTrip(t, response).(object)
	return out
}

// behaviorFunc does what the function of the other side does.
func behaviorFunc(t *testing.T, behave vectors.Fields) handlers.Func {
	return func(_ context.Context, call *handlers.Invocation) error {
		if patch := behave.Mapping("patch"); patch != nil {
			call.Admission.AddMergePatch(object{"spec": object(patch)})
		}
		for _, text := range behave.List("warn") {
			call.Admission.AddWarning(fmt.Sprint(text))
		}
		if code := vectors.Number(t, behave, "code"); code != nil {
			return kopf.Deny(int(*code), "%s", behave.Text("message", ""))
		}
		if behave["raise"] == "admission" {
			return kopf.Deny(0, "%s", behave.Text("message", ""))
		}
		return declared.Raise(t, behave)
	}
}

// roundTrip is a value as it is in JSON, with integers as objects have them.
func roundTrip(t *testing.T, value any) (out any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withPatchedObject is an answer with the object as its patch makes it, in place of the patch: operations may differ.
func withPatchedObject(t *testing.T, one, answer object) object {
	t.Helper()
	out, _ := roundTrip(t, answer).(object)
	verdict, _ := out["response"].(object)
	encoded, patched := verdict["patch"].(string)
	if !patched {
		return out
	}
	operations, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := one["request"].(object)
	asked, _ := whole["request"].(object)
	before := asked["object"]
	if before == nil {
		before = asked["oldObject"]
	}
	text, err := json.Marshal(before)
	if err == nil {
		text, err = patch.Apply(text)
	}
	if err != nil {
		t.Fatalf("applying %s: %v", operations, err)
	}
	verdict["patch"] = string(text)
	return out
}
