package main

import (
	"context"
	"fmt"
	"strconv"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// registerNumbers registers the handlers of Kopf's documentation. They check a list of numbers, which has a default and
// may contain texts when the object is created.
func registerNumbers(examples kopf.Selection[*kopf.Unstructured]) {
	examples.Mutate("ensure_default_numbers", ensureDefaultNumbers)
	examples.Mutate("convert_numbers_if_possible", convertNumbersIfPossible, kopf.Operations("CREATE"))
	examples.Validate("say_hello", sayHello)
	examples.Validate("check_numbers", checkNumbers)
	examples.Validate("convertible_numbers", convertibleNumbers)
	examples.Validate("numbers_range", numbersRange)
}

// numbersOf returns the list of the object. Its error denies the request.
func numbersOf(o *kopf.Unstructured) ([]any, error) {
	spec, _ := o.Object["spec"].(map[string]any)
	switch given := spec["numbers"].(type) {
	case nil:
		return nil, nil
	case []any:
		return given, nil
	default:
		return nil, fmt.Errorf("numbers must be a list if present, not %v", given)
	}
}

// number converts an item of the list.
func number(value any) (converted float64, is bool, err error) {
	switch value := value.(type) {
	case int64:
		return float64(value), true, nil
	case float64:
		return value, true, nil
	default:
		converted, err = strconv.ParseFloat(fmt.Sprint(value), 64)
		return converted, false, err
	}
}

func ensureDefaultNumbers(_ context.Context, a *Admission) error {
	numbers, err := numbersOf(a.Object)
	if err != nil || numbers != nil {
		return err
	}
	return kopf.SetField(a.Object, "spec.numbers", []any{1, 2, 3})
}

func convertNumbersIfPossible(_ context.Context, a *Admission) error {
	numbers, err := numbersOf(a.Object)
	if err != nil || numbers == nil {
		return err
	}
	converted := make([]any, 0, len(numbers))
	for _, one := range numbers {
		if as, is, err := number(one); !is && err == nil {
			one = as
		}
		converted = append(converted, one)
	}
	return kopf.SetField(a.Object, "spec.numbers", converted)
}

func sayHello(_ context.Context, a *Admission) error {
	a.Warning("Verified with the operator's hook.")
	return nil
}

func checkNumbers(_ context.Context, a *Admission) error {
	_, err := numbersOf(a.Object)
	return err
}

func convertibleNumbers(_ context.Context, a *Admission) error {
	numbers, _ := numbersOf(a.Object)
	for _, one := range numbers {
		switch _, is, err := number(one); {
		case err != nil:
			return kopf.Deny(0, "cannot convert %q to a number", fmt.Sprint(one))
		case !is:
			a.Warning("%q is not a number but can be converted.", one)
		}
	}
	return nil
}

func numbersRange(_ context.Context, a *Admission) error {
	numbers, _ := numbersOf(a.Object)
	for _, one := range numbers {
		if value, _, err := number(one); err == nil && (value < 0 || value > 100) {
			return kopf.Deny(499, "numbers must be within 0..100, not %v", value)
		}
	}
	return nil
}
