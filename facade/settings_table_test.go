package kopf_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// settingRow is a row of docs/settings.md: a setting of Kopf, of kopf-runtime, or of both.
type settingRow struct{ key, field, kopfDefault, ownDefault, state string }

// settingsTable reads both tables. The second one does not have Kopf's defaults.
func settingsTable(t *testing.T) (rows []settingRow) {
	t.Helper()
	text, err := os.ReadFile("../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, row := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !row || strings.HasPrefix(line, "--") || strings.HasPrefix(line, " Kopf |") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "|"), "|")
		for i, cell := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cell), "`")
		}
		switch len(cells) {
		case 5:
			rows = append(rows, settingRow{cells[0], cells[1], cells[2], cells[3], cells[4]})
		case 4:
			rows = append(rows, settingRow{field: cells[1], ownDefault: cells[2], state: cells[3]})
		default:
			t.Errorf("a row has %d cells: %s", len(cells), line)
		}
	}
	return rows
}

// TestSettingsOfKopf shows that the table has all settings of Kopf, with their recorded defaults.
func TestSettingsOfKopf(t *testing.T) {
	vectors.Run(t, "settings", func(t *testing.T, _ vectors.Fields, want vectors.Expected) {
		defaults, ok := want.Value.(map[string]any)
		if !ok {
			t.Fatalf("no mapping: %v", want.Value)
		}
		told := map[string]bool{}
		for _, row := range settingsTable(t) {
			// Two settings are deprecated, so they were not recorded.
			recorded, known := defaults[row.key]
			unknown := row.key != "" && !known
			if unknown && row.key != "queueing.batch_window" && row.key != "execution.max_workers" {
				t.Errorf("Kopf has no setting %q", row.key)
			}
			if got := strings.TrimSuffix(row.kopfDefault, " s"); known && got != kopfValue(recorded) {
				t.Errorf("the default of %s in Kopf is %s, not %s", row.key, kopfValue(recorded), got)
			}
			told[row.key] = true
		}
		for key := range defaults {
			if !told[key] {
				t.Errorf("docs/settings.md does not have the setting %s", key)
			}
		}
	})
}

// kopfValue returns a recorded value in the form of the table.
func kopfValue(value any) string {
	switch value := value.(type) {
	case nil:
		return "none"
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case []any:
		texts := make([]string, len(value))
		for i, item := range value {
			texts[i] = kopfValue(item)
		}
		return strings.Join(texts, " ")
	case map[string]any:
		return fmt.Sprint(value["class"])
	default:
		return fmt.Sprint(value)
	}
}

// TestSettingsTable shows that the table has all fields of Settings, with their defaults.
func TestSettingsTable(t *testing.T) {
	op := kopf.New("test.example.org")
	engineOptions(t, op)
	resolved := kopf.ResolvedSettings(op)
	fields := fieldsOf(reflect.ValueOf(&resolved).Elem(), "")
	var told []string
	for _, row := range settingsTable(t) {
		value, known := fields[row.field]
		switch {
		case row.field == "" && strings.HasPrefix(row.state, "no meaning: "):
			continue
		case !known:
			t.Errorf("kopf.Settings has no field %q for %s", row.field, row.key)
			continue
		case slices.Contains(told, row.field):
			t.Errorf("docs/settings.md has the field %s twice", row.field)
		}
		told = append(told, row.field)
		if want := ourValue(value); row.ownDefault == "" || want != "" && row.ownDefault != want {
			t.Errorf("the default of %s is %q, not %q as docs/settings.md says", row.field, want, row.ownDefault)
		}
	}
	for field := range fields {
		if !slices.Contains(told, field) {
			t.Errorf("docs/settings.md does not have the field %s", field)
		}
	}
}

// fieldsOf returns the settings by the names that users write.
func fieldsOf(section reflect.Value, prefix string) map[string]reflect.Value {
	all := map[string]reflect.Value{}
	for i := range section.NumField() {
		field, name := section.Field(i), prefix+section.Type().Field(i).Name
		if field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[kopf.Lifecycle]() {
			for inner, value := range fieldsOf(field, name+".") {
				all[inner] = value
			}
			continue
		}
		all[name] = field
	}
	return all
}

// ourValue returns a default in the form of the table, or an empty text if the table explains zero in words.
func ourValue(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case bool:
		return fmt.Sprint(v)
	case kopf.Lifecycle:
		return v.String()
	case []time.Duration:
		texts := make([]string, len(v))
		for i, delay := range v {
			texts[i] = fmt.Sprint(delay.Seconds())
		}
		return strings.TrimPrefix(strings.Join(texts, " ")+" s", " s")
	case time.Duration:
		if v != 0 {
			return fmt.Sprint(v.Seconds(), " s")
		}
	case string:
		return strings.ReplaceAll(v, "test.example.org", "<name>")
	case int:
		if v != 0 {
			return strconv.Itoa(v)
		}
	}
	if value.Kind() == reflect.Interface && !value.IsNil() {
		return value.Elem().Type().String()
	}
	return ""
}
