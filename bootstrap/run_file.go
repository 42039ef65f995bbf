package bootstrap

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RunFile is how commands on the same machine find a running embedded service: run.json in
// its data folder, mode 0600, there while the service runs.
type RunFile struct {
	PID       int    `json:"pid"`
	Buyers    string `json:"buyers"`    // address of the buyers' door, with scheme
	Operators string `json:"operators"` // address of the operators' door, with scheme
	Token     string `json:"token"`     // a bearer token with every operator's scope
}

func runFilePath(folder string) string { return filepath.Join(folder, "run.json") }

func writeRunFile(folder string, r RunFile) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := runFilePath(folder)
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("run file: %w", err)
	}
	return os.Rename(tmp, path)
}

func removeRunFile(folder string) { _ = os.Remove(runFilePath(folder)) }

// readRunFile gives nil where no service left one; a service that was killed leaves its own behind.
func readRunFile(folder string) (*RunFile, error) {
	b, err := os.ReadFile(runFilePath(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run file: %w", err)
	}
	var r RunFile
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("run file: %w", err)
	}
	return &r, nil
}

// folderKey is the signing key that an embedded service makes for itself on its first start.
func folderKey(folder string) (Secret, error) {
	path := filepath.Join(folder, "auth.key")
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) >= authKeyMin {
		return Secret(strings.TrimSpace(string(b))), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("signing key: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("data folder: %w", err)
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:])
	key := hex.EncodeToString(raw[:])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return folderKey(folder)
	}
	if err != nil {
		return "", fmt.Errorf("signing key: %w", err)
	}
	_, err = f.WriteString(key + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("signing key: %w", err)
	}
	return Secret(key), nil
}
