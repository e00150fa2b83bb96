package keys_test

import (
	"fmt"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

func ExampleNames() {
	fmt.Println(keys.Names("databases.example.org", "create/users", false))
	for _, name := range keys.Names(keys.KopfPrefix, "handler_fn/spec.nested.nested.nested.nested.nested", true) {
		fmt.Println(name)
	}
	// Output:
	// [databases.example.org/create.users]
	// kopf.zalando.org/handler_fn.spec.nested.nested.nested.nested.nested
	// kopf.zalando.org/handler_fn.spec.nested.nested.nested.ne-1NsAGQ
}

func ExampleMarkedPrefixes() {
	annotations := map[string]any{
		"other.example.org/kopf-managed": "yes",
		"other.example.org/create":       `{"retries":1}`,
		"example.org/contact":            "someone",
	}
	marked := keys.MarkedPrefixes(annotations)
	fmt.Println(marked)
	fmt.Println(marked.Cover("other.example.org/create"), marked.Cover("example.org/contact"))
	// Output:
	// [other.example.org]
	// true false
}

func ExampleValidateID() {
	fmt.Println(keys.ValidateID("outer.<locals>.fn"))
	fmt.Println(strings.ReplaceAll(keys.ValidateID("my fn").Error(), "; ", "\n"))
	// Output:
	// <nil>
	// invalid handler id "my fn": it cannot be an annotation: the name "my fn" has ' ' at position 2
	// choose an id of letters, digits, "-", "_", ".", "/"
}
