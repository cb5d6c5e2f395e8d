package toolclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

var errTooLarge = errors.New("the message is larger than this client accepts")

// eventReader reads server-sent events. It remembers what resuming the stream would need.
type eventReader struct {
	r   *bufio.Reader
	max int

	lastID string        // of the last whole event
	retry  time.Duration // as the server asked; 0: it did not
}

func newEventReader(r io.Reader, max int) *eventReader {
	br := bufio.NewReaderSize(r, 32<<10)
	if bom, err := br.Peek(3); err == nil && string(bom) == "\uFEFF" {
		_, _ = br.Discard(3)
	}
	return &eventReader{r: br, max: max}
}

// next returns the data of the next event that has any. Where the stream ends, or breaks, the data of an event
// that was not finished is returned too, before the error: it may be the reply.
func (e *eventReader) next() ([]byte, error) {
	var data []byte
	hasData, id, hasID := false, "", false
	for {
		line, err := readLine(e.r, e.max)
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			if hasData && !errors.Is(err, errTooLarge) {
				return data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if hasID {
				e.lastID = id
			}
			if hasData {
				return data, nil
			}
			id, hasID = "", false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if hasData {
				data = append(data, '\n')
			}
			if len(data)+len(value) > e.max {
				return nil, errTooLarge
			}
			data, hasData = append(data, value...), true
		case "id":
			if !bytes.ContainsRune(value, 0) {
				id, hasID = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// readLine reads one line of any length up to max, without its line end. A last line without one is returned with
// io.EOF.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > max {
			return nil, errTooLarge
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil {
			line = line[:len(line)-1]
		}
		return bytes.TrimSuffix(line, []byte{'\r'}), err
	}
}
