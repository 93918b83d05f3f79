package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// ask is a question to the process itself, not to its sessions: JSON both ways.
// A nil question has no body.
func (p *process) ask(ctx context.Context, method, path string, question, reply any) error {
	var body io.Reader
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path, body)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	return json.Unmarshal(text, reply)
}
