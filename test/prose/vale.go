package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// alert is a finding of Vale.
type alert struct {
	File     string `json:"-"`
	Line     int
	Check    string
	Message  string
	Severity string
}

// runVale checks the texts with the rules of this folder.
func runVale(texts []text) ([]alert, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	for _, t := range texts {
		path := filepath.Join(dir, t.file+".md")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(t.markdown), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command("go", "tool", "vale", "--config=vale.ini", "--no-exit", "--output=JSON", dir)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running vale: %w: %s%s", err, out.String(), problem.String())
	}
	found := map[string][]alert{}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("reading what vale printed: %w: %s", err, out.String())
	}
	var alerts []alert
	for path, list := range found {
		file := strings.TrimSuffix(strings.TrimPrefix(path, dir+string(filepath.Separator)), ".md")
		for _, a := range list {
			a.File = file
			alerts = append(alerts, a)
		}
	}
	slices.SortFunc(alerts, func(a, b alert) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Check, b.Check))
	})
	return alerts, nil
}
