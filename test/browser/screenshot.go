package browser

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "store the pictures of pages under testdata, and compare nothing")

// awaitPaintScript is when what a page shows is painted: its fonts are there, and two frames have passed. A caret that
// blinks is hidden, by a sheet that no content security policy forbids.
const awaitPaintScript = `(async () => {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync('* { caret-color: transparent !important }');
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
	await document.fonts.ready;
	const frame = () => new Promise(requestAnimationFrame);
	await frame();
	await frame();
	return true;
})()`

// Screenshot compares what the window shows with the picture testdata/NAME.png of the test's package, within
// [ToleratedShare]. If it differs, the test fails, and says where the actual picture is and one that shows the
// differences. With the flag -update the picture is stored. On other systems than Linux, which paint otherwise, nothing
// is compared.
func (p *Page) Screenshot(name string) {
	p.t.Helper()
	var ready bool
	p.Read(awaitPaintScript, &ready)
	var shot []byte
	p.do("taking a picture", chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		shot, err = chromedp.CaptureScreenshot()(ctx, t)
		return err
	}))
	if !paintsAlike() {
		p.t.Logf("the picture %s is not compared: pictures of Linux are stored", name)
		return
	}
	actual, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatalf("decoding the picture of %s: %v", p.url, err)
	}
	if err := compareStored(filepath.Join("testdata", name+".png"), actual); err != nil {
		p.t.Errorf("the picture of %s: %v", p.url, err)
	}
}

func compareStored(path string, actual image.Image) error {
	stored, err := readPicture(path)
	if *update {
		if err == nil && stored.Bounds() == actual.Bounds() && Compare(stored, actual).Pixels == 0 {
			return nil // nothing to store
		}
		return writePicture(path, actual)
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w; look at the page, and store its picture with -update", err)
	}
	if err != nil {
		return err
	}
	difference := Compare(stored, actual)
	if difference.Tolerable() {
		return nil
	}
	dir, err := os.MkdirTemp("", "kopf-runtime-picture-")
	if err != nil {
		return fmt.Errorf("%s: %s", path, difference)
	}
	told := fmt.Errorf("%s: %s; see actual.png and difference.png in %s; -update stores it", path, difference, dir)
	return errors.Join(told,
		writePicture(filepath.Join(dir, "actual.png"), actual),
		writePicture(filepath.Join(dir, "difference.png"), difference.Picture))
}

func readPicture(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the stored picture: %w", err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("decoding the stored picture %s: %w", path, err)
	}
	return picture, nil
}

func writePicture(path string, picture image.Image) error {
	var encoded bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&encoded, picture); err != nil {
		return fmt.Errorf("encoding the picture %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of a picture: %w", err)
	}
	if err := os.WriteFile(path, encoded.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing a picture: %w", err)
	}
	return nil
}
