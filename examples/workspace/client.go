package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Client reaches the fault switch, counters and resources of one running
// application. It does not call tools: that is MCP's part.
type Client struct {
	// BaseURL is where the application listens, such as http://127.0.0.1:9103.
	BaseURL string
	// HTTP carries the requests. Nil means [http.DefaultClient].
	HTTP *http.Client
}

// NewClient returns a client for the application at a URL: its base, or its
// MCP endpoint.
func NewClient(url string) *Client {
	return &Client{BaseURL: strings.TrimSuffix(strings.TrimRight(url, "/"), mcpPath)}
}

// SetFault arms a fault after those already armed. The application's objection
// to it is in the error.
func (c *Client) SetFault(ctx context.Context, fault Fault) error {
	return c.do(ctx, http.MethodPost, "/faults", fault, nil)
}

// Faults returns the armed faults, oldest first, with the calls they have left.
func (c *Client) Faults(ctx context.Context) ([]Fault, error) {
	var list faultList
	err := c.do(ctx, http.MethodGet, "/faults", nil, &list)
	return list.Faults, err
}

// ClearFaults disarms every fault. Calls that a fault already holds stay held.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/faults", nil, nil)
}

// Calls returns how many calls of each tool have reached the application since
// its data was made or reset, restarts included. Tools never called count 0.
func (c *Client) Calls(ctx context.Context) (map[string]int64, error) {
	var counts map[string]int64
	err := c.do(ctx, http.MethodGet, "/calls", nil, &counts)
	return counts, err
}

// Resources returns everything the application owns, oldest first.
func (c *Client) Resources(ctx context.Context) ([]Resource, error) {
	var list listing
	err := c.do(ctx, http.MethodGet, "/resources", nil, &list)
	return list.Items, err
}

// Reset deletes the resources and counters, disarms the faults, and abandons
// the calls that a fault still delays or holds.
func (c *Client) Reset(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/reset", nil, nil)
}

// Health returns nil if the application is up and can reach its data.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/healthz", nil, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) (err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, body)
	if err != nil {
		return fmt.Errorf("make the request %s %s: %w", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("reach the application: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer to %s %s%s: %w", method, c.BaseURL, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s%s answered %s: %s", method, c.BaseURL, path, response.Status, bytes.TrimSpace(raw))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("decode the answer to %s %s%s: %w", method, c.BaseURL, path, err)
	}
	return nil
}
