package toolclient

import (
	"slices"
	"sync"
)

// lateReplies keeps the replies that came after their callers had gone. It is bounded in number and in bytes: the
// oldest go first.
type lateReplies struct {
	maxCount, maxBytes int

	mu    sync.Mutex
	byID  map[string]Reply
	order []string
	bytes int
}

func newLateReplies(maxCount, maxBytes int) *lateReplies {
	return &lateReplies{maxCount: maxCount, maxBytes: maxBytes, byID: map[string]Reply{}}
}

// put keeps a reply and says whether it did: calls without an id, and replies larger than everything that may be kept,
// are not.
func (l *lateReplies) put(id string, r Reply) bool {
	size := sizeOf(id, r)
	if id == "" || size > l.maxBytes || l.maxCount < 1 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.byID[id]; ok {
		l.bytes -= sizeOf(id, old)
		l.order = slices.DeleteFunc(l.order, func(other string) bool { return other == id })
	}
	l.byID[id] = r
	l.bytes += size
	l.order = append(l.order, id)
	for len(l.order) > l.maxCount || l.bytes > l.maxBytes {
		oldest := l.order[0]
		l.order = l.order[1:]
		l.bytes -= sizeOf(oldest, l.byID[oldest])
		delete(l.byID, oldest)
	}
	return true
}

func (l *lateReplies) get(id string) (Reply, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.byID[id]
	return r, ok
}

func sizeOf(id string, r Reply) int {
	size := len(id) + len(r.Result) + len(r.Why)
	if r.Error != nil {
		size += len(r.Error.Message) + len(r.Error.Data)
	}
	return size
}
