package monitoring_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// panel is what matters of one.
type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

type dashboard struct {
	Title      string  `json:"title"`
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

// unitOf is the unit that panels have whose expression has a metric of this name; "" is any number of things.
func unitOf(expression string) string {
	switch {
	case strings.Contains(expression, "increase("):
		return "short"
	case strings.Contains(expression, "_seconds"):
		return "s"
	case strings.Contains(expression, "kopf_api_requests_total"):
		return "reqps"
	case strings.Contains(expression, "rate("):
		return "ops"
	default:
		return "short"
	}
}

// The dashboard has every metric, by names, labels and units that there are, and its panels lie beside each other.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, folder+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	families, text := table(t), read(t, page)
	shown, ids, taken := map[string]bool{}, map[int]bool{}, map[string]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has the number %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[fmt.Sprint(x, ",", y)]; other != "" || x >= 24 {
					t.Fatalf("panel %q covers %q, or leaves the page", p.Title, other)
				}
				taken[fmt.Sprint(x, ",", y)] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("panel %q shows nothing, or does not say what", p.Title)
		}
		for _, target := range p.Targets {
			check(t, p.Title, target.Expr, families, text)
			if unit := unitOf(target.Expr); p.FieldConfig.Defaults.Unit != unit {
				t.Errorf("panel %q has the unit %q, want %q", p.Title, p.FieldConfig.Defaults.Unit, unit)
			}
			if !strings.Contains(target.Expr, `operator=~"$operator"`) || target.LegendFormat == "" {
				t.Errorf("panel %q takes no operator, or names no series: %s", p.Title, target.Expr)
			}
			for _, one := range metricName.FindAllString(target.Expr, -1) {
				shown[strings.TrimSuffix(one, "_bucket")] = true
			}
		}
	}
	for family := range families {
		if !shown[family] {
			t.Errorf("no panel has %s", family)
		}
	}
	variables := map[string]bool{}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" {
			check(t, "variable "+v.Name, v.Definition, families, text)
		}
	}
	if !variables["datasource"] || !variables["operator"] || !variables["kind"] {
		t.Errorf("the variables are %v", variables)
	}
}
