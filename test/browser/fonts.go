package browser

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-fonts/dejavu/dejavusans"
	"github.com/go-fonts/dejavu/dejavusansbold"
	"github.com/go-fonts/dejavu/dejavusansboldoblique"
	"github.com/go-fonts/dejavu/dejavusansmono"
	"github.com/go-fonts/dejavu/dejavusansmonobold"
	"github.com/go-fonts/dejavu/dejavusansoblique"
)

// fontRules lets the browser see the fonts of one folder only, by every generic name that style sheets use, and painted
// without hints, which depend on the version of the library.
const fontRules = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>%[1]s/fonts</dir>
  <cachedir>%[1]s/fonts-cache</cachedir>
  <match target="pattern"><test name="family" qual="any"><string>monospace</string></test>
    <edit name="family" mode="assign" binding="strong"><string>DejaVu Sans Mono</string></edit></match>
  <match target="pattern"><test name="family" qual="any"><string>ui-monospace</string></test>
    <edit name="family" mode="assign" binding="strong"><string>DejaVu Sans Mono</string></edit></match>
  <match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
  <match target="font">
    <edit name="antialias" mode="assign"><bool>true</bool></edit>
    <edit name="hinting" mode="assign"><bool>false</bool></edit>
    <edit name="hintstyle" mode="assign"><const>hintnone</const></edit>
    <edit name="rgba" mode="assign"><const>none</const></edit>
  </match>
</fontconfig>
`

// installFonts puts the DejaVu fonts below a folder, and gives the environment in which a program sees these and no
// others. They have the arrows, marks and boxes that pages use in the place of icons; there is no serif among them.
func installFonts(home string) (env []string, err error) {
	fonts := filepath.Join(home, "fonts")
	if err := os.Mkdir(fonts, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for fonts: %w", err)
	}
	for name, content := range map[string][]byte{
		"sans.ttf":              dejavusans.TTF,
		"sans-bold.ttf":         dejavusansbold.TTF,
		"sans-oblique.ttf":      dejavusansoblique.TTF,
		"sans-bold-oblique.ttf": dejavusansboldoblique.TTF,
		"mono.ttf":              dejavusansmono.TTF,
		"mono-bold.ttf":         dejavusansmonobold.TTF,
	} {
		if err := os.WriteFile(filepath.Join(fonts, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a font: %w", err)
		}
	}
	rules := filepath.Join(home, "fonts.conf")
	if err := os.WriteFile(rules, fmt.Appendf(nil, fontRules, home), 0o600); err != nil {
		return nil, fmt.Errorf("writing the rules for fonts: %w", err)
	}
	return []string{"FONTCONFIG_FILE=" + rules}, nil
}
