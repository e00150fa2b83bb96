package children

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

const (
	// packingThreshold is the length above which a record is packed. Smaller records stay readable for people.
	packingThreshold = 32 << 10
	// maxUnpackedBytes limits the size of an unpacked record. Any client that may annotate the parent can write a small
	// text that unpacks to gigabytes.
	maxUnpackedBytes = 8 << 20
	// maxPackedChildren limits the children of a packed record, because each one takes memory.
	maxPackedChildren = 20_000
)

// retainedMark follows the name of a child that is never deleted.
const retainedMark = "retained"

// packChildren encodes children in a few bytes each: their sorted names, compressed, without uids. A line is the name,
// a mark for retained children, and the run of a child with UntilDone:
//
//	v1/ConfigMap/default/settings
//	v1/Secret/default/login retained
//	batch/v1/Job/default/backup - <digest> <outcome>
func packChildren(children childSet) (string, error) {
	if len(children) > maxPackedChildren {
		return "", &limitError{children: len(children)}
	}
	var text bytes.Buffer
	compressor, err := zlib.NewWriterLevel(&text, zlib.BestCompression)
	if err != nil {
		return "", err
	}
	size := 0
	// The stable order makes equal sets have equal texts, which [pass.isRecordCurrent] compares. It also improves the
	// compression.
	for _, child := range children.sortedIdentities() {
		known := children[child]
		line := formatChild(child, known.version)
		if known.isRetained || known.run.digest != "" {
			// The dash keeps the positions of the fields for a child that is not retained.
			mark := "-"
			if known.isRetained {
				mark = retainedMark
			}
			line = strings.TrimSpace(line + " " + mark + " " + known.run.String())
		}
		size += len(line) + 1
		if _, err := io.WriteString(compressor, line+"\n"); err != nil {
			return "", err
		}
	}
	// A record that [unpackChildren] would refuse must not be written.
	if size > maxUnpackedBytes {
		return "", &limitError{len(children), size, size, maxUnpackedBytes}
	}
	if err := compressor.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(text.Bytes()), nil
}

// unpackChildren adds the children of a text that [packChildren] returned to the set.
func unpackChildren(packed string, all childSet) error {
	if packed == "" {
		return nil
	}
	text, err := zlib.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed)))
	if err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	// One byte more than the limit is read, to detect that the limit is exceeded.
	lines, err := io.ReadAll(io.LimitReader(text, maxUnpackedBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("unpacking it: %w", err)
	case len(lines) > maxUnpackedBytes:
		return fmt.Errorf("unpacking it: it has more than %d bytes", maxUnpackedBytes)
	// The children are counted before they are decoded into a set.
	case bytes.Count(lines, []byte("\n")) > maxPackedChildren:
		return fmt.Errorf("unpacking it: it has more than %d children", maxPackedChildren)
	}
	for line := range strings.Lines(string(lines)) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		mark, ran, _ := strings.Cut(rest, " ")
		// Names of Kubernetes objects contain no spaces, so the parts are unambiguous.
		child, version, err := parseChild(name)
		if err != nil {
			return err
		}
		all[child] = childEntry{version: version, isRetained: mark == retainedMark, run: parseRun(ran)}
	}
	return nil
}

// limitError reports that the record of the children does not fit into the annotations of the parent.
type limitError struct{ children, recordSize, totalSize, limit int }

// Error names the sizes and the remedy.
func (e *limitError) Error() string {
	if e.children > maxPackedChildren {
		return fmt.Sprintf("the record has %d children, which is more than the limit of %d: declare fewer children "+
			"for one object", e.children, maxPackedChildren)
	}
	return fmt.Sprintf("the record of %d children takes %d bytes, and all annotations of the object %d bytes, "+
		"which is more than the limit of %d bytes: declare fewer children for one object",
		e.children, e.recordSize, e.totalSize, e.limit)
}

// Permanent returns true: the next attempt would fail as well.
func (*limitError) Permanent() bool { return true }

// checkFits returns an error if the API server would refuse the annotations of the body because of their total size.
// The error names the share of this record.
func checkFits(body map[string]any, name string, children int) error {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil {
		return err
	}
	all := storage.AnnotationsSize(annotations, nil)
	if all <= storage.AnnotationsLimit {
		return nil
	}
	text, _ := annotations[name].(string)
	return &limitError{children, len(name) + len(text), all, storage.AnnotationsLimit}
}
