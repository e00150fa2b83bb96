package asciijson_test

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
)

func ExampleMarshal() {
	text, err := asciijson.Marshal(map[string]any{
		"spec":     map[string]any{"title": "<Ünïcode> & Co.", "replicas": int64(3), "ratio": 1.0},
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
	})
	fmt.Println(text, err)
	// Output:
	// {"metadata":{"labels":{"app":"web"}},"spec":{"ratio":1.0,"replicas":3,"title":"<\u00dcn\u00efcode> & Co."}} <nil>
}
