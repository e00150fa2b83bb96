package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const manifestName = "manifest.json"

// manifest says what the cache folder holds. A program without an entry is not there, whatever the folder shows: the
// entry is written last, so it is the proof of a complete write.
type manifest struct {
	Binaries map[string]entry `json:"binaries"`
}

type entry struct {
	Version  string    `json:"version"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

// readManifest never fails: an unreadable manifest is an empty one, which makes the cache heal.
func readManifest(dir string) manifest {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil || json.Unmarshal(data, &m) != nil || m.Binaries == nil {
		return manifest{Binaries: map[string]entry{}}
	}
	return m
}

func (m manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cache's manifest: %w", err)
	}
	temporary, err := os.CreateTemp(dir, incompletePrefix+"*")
	if err != nil {
		return fmt.Errorf("writing the cache's manifest: %w", err)
	}
	_, err = temporary.Write(append(data, '\n'))
	if closing := temporary.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), 0o644) // other users may share the cache
	}
	if err == nil {
		err = os.Rename(temporary.Name(), filepath.Join(dir, manifestName))
	}
	if err != nil {
		return fmt.Errorf("writing the cache's manifest: %w", err)
	}
	return nil
}

// describe makes the entry of a verified program.
func describe(file, version string) (entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return entry{}, err
	}
	sum, err := digest(file)
	if err != nil {
		return entry{}, err
	}
	return entry{Version: version, Size: info.Size(), Modified: info.ModTime(), SHA256: sum}, nil
}

// holds says whether file is still the program that was described. Size and time are enough as a rule; an archive that
// was restored has another time, and then the content decides.
func (e entry) holds(file string) bool {
	info, err := os.Stat(file)
	if err != nil || !executable(file) || info.Size() != e.Size {
		return false
	}
	if info.ModTime().Equal(e.Modified) {
		return true
	}
	sum, err := digest(file)
	return err == nil && sum == e.SHA256
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
