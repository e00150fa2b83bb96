package patching

import (
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

const statusPointer = "/status"

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// operations returns the JSON-patch (RFC 6902) that makes the first body the second, nil if they are equal; in order of
// paths. Lists are replaced as a whole: every user of these operations knows the exact list they are applied to.
//
// The differ of the jsonpatch module reads numbers as floats, so it overlooks changes of large integers and rounds
// those it copies. Only its type is used here.
func operations(before, after map[string]any) []jsonpatch.Operation {
	return appendOperations(nil, "", before, after)
}

func appendOperations(ops []jsonpatch.Operation, at string, before, after map[string]any) []jsonpatch.Operation {
	for _, key := range unionOfKeys(before, after) {
		pointer := at + "/" + pointerEscapes.Replace(key)
		held, had := before[key]
		fresh, has := after[key]
		from, wasMapping := held.(map[string]any)
		into, isMapping := fresh.(map[string]any)
		switch {
		case !has:
			ops = append(ops, jsonpatch.NewOperation("remove", pointer, nil))
		case !had:
			ops = append(ops, jsonpatch.NewOperation("add", pointer, fresh))
		case wasMapping && isMapping:
			ops = appendOperations(ops, pointer, from, into)
		case !diff.Equal(held, fresh):
			ops = append(ops, jsonpatch.NewOperation("replace", pointer, fresh))
		}
	}
	return ops
}

func unionOfKeys(a, b map[string]any) []string {
	keys := slices.AppendSeq(make([]string, 0, len(a)+len(b)), maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// splitOperations takes apart what belongs to the status and what does not.
func splitOperations(ops []jsonpatch.Operation) (status, main []jsonpatch.Operation) {
	for _, op := range ops {
		if op.Path == statusPointer || strings.HasPrefix(op.Path, statusPointer+"/") {
			status = append(status, op)
		} else {
			main = append(main, op)
		}
	}
	return status, main
}

// testingVersion puts the guard before the operations: the server refuses all of them if it has another version.
func testingVersion(version string, ops []jsonpatch.Operation) []jsonpatch.Operation {
	test := jsonpatch.NewOperation("test", "/metadata/resourceVersion", version)
	return append([]jsonpatch.Operation{test}, ops...)
}
