package defaults

import "fmt"

// ProgramOnly returns an error for a setting that only a program of its own can have, with what others do instead.
func ProgramOnly(name string, isSet bool, instead string) error {
	if !isSet {
		return nil
	}
	return fmt.Errorf("%s: it is for kopf.Main; here, %s", name, instead)
}
