package documents_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// recorded is what genuine Kopf says about its names: decorators, their options, and the arguments of handlers.
type recorded struct {
	Cases []struct {
		Input    struct{ Module, Name string }
		Expected struct {
			Names, Kwargs []string
			Params        []struct{ Name string }
		}
	}
}

func readRecorded(t *testing.T, family string) (all recorded) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors/" + family + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// portable returns how docs/porting.md writes the names of Kopf.
func portable(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, one := range readRecorded(t, "public_api").Cases {
		for _, name := range one.Expected.Names {
			switch {
			case one.Input.Module == "kopf.on":
				names["`@kopf.on."+name+"`"] = true
			case one.Input.Module == "kopf" && name != "on":
				names["kopf."+name+"`"] = true
			case one.Input.Module == "kopf.testing":
				names["`kopf.testing."+name+"`"] = true
			}
		}
		for _, param := range one.Expected.Params {
			// The resource has three arguments without names of their own; register has the function itself.
			if one.Input.Module == "kopf.on" && !strings.HasPrefix(param.Name, "arg") && param.Name != "fn" {
				names["`"+param.Name+"=`"] = true
			}
		}
	}
	for _, one := range readRecorded(t, "kwargs").Cases {
		for _, name := range one.Expected.Kwargs {
			names["`"+name+"`"] = true
		}
	}
	return names
}

// TestPorting checks that docs/porting.md has the Go form of every public name of Kopf.
func TestPorting(t *testing.T) {
	text, names := read(t, "docs/porting.md"), portable(t)
	if len(names) < 180 {
		t.Fatalf("found %d names: the test would pass for nothing", len(names))
	}
	for name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("docs/porting.md does not have %s", name)
		}
	}
}
