package workspace

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each row: what the client of the struck call sees, and what then exists.
// Whatever happens, the call is counted once, and the next one is answered.
func TestFaultDecidesWhatTheClientSeesAndWhatExists(t *testing.T) {
	noAnswer := func(t *testing.T, s seen) { assert.Error(t, s.err) }
	created := func(t *testing.T, s seen) {
		assert.Equal(t, http.StatusOK, s.status)
		assert.Equal(t, "w-route", s.resource(t).Name)
		assert.Equal(t, "7", string(s.reply(t).ID))
	}
	for _, row := range []struct {
		name   string
		fault  Fault
		sees   func(*testing.T, seen)
		exists int
		dies   bool
	}{
		{name: "none", sees: created, exists: 1},
		{name: "lose_ack", fault: Fault{Fault: LoseAck}, exists: 1, sees: func(t *testing.T, s seen) {
			assert.ErrorIs(t, s.err, io.EOF)
		}},
		{name: "reject", fault: Fault{Fault: Reject}, exists: 0, sees: func(t *testing.T, s seen) {
			assert.Equal(t, "REJECTED", s.code(t))
		}},
		{name: "crash_before", fault: Fault{Fault: CrashBefore}, exists: 0, dies: true, sees: noAnswer},
		{name: "crash_after", fault: Fault{Fault: CrashAfter}, exists: 1, dies: true, sees: noAnswer},
		{name: "late_commit", fault: Fault{Fault: LateCommit, MS: 20}, exists: 1, sees: noAnswer},
		{name: "slow", fault: Fault{Fault: Slow, MS: 20}, exists: 1, sees: created},
		{name: "wrong_reply", fault: Fault{Fault: WrongReply}, exists: 1, sees: func(t *testing.T, s seen) {
			r := s.reply(t)
			assert.Equal(t, http.StatusOK, s.status)
			assert.NotEqual(t, "7", string(r.ID))
			assert.NotEmpty(t, r.ID)
			assert.False(t, r.Result.IsError)
		}},
		{name: "error_after", fault: Fault{Fault: ErrorAfter}, exists: 1, sees: func(t *testing.T, s seen) {
			r := s.reply(t)
			assert.True(t, r.Result.IsError)
			require.Len(t, r.Result.Content, 1)
			assert.Equal(t, "fetch failed", r.Result.Content[0].Text)
			assert.Empty(t, r.Result.StructuredContent)
		}},
		{name: "refuse_status", fault: Fault{Fault: RefuseStatus}, exists: 0, sees: func(t *testing.T, s seen) {
			assert.Equal(t, http.StatusServiceUnavailable, s.status)
			assert.Empty(t, s.header.Get("Retry-After"))
		}},
		{name: "refuse_status with a delay", fault: Fault{Fault: RefuseStatus, MS: 1500}, exists: 0, sees: func(t *testing.T, s seen) {
			assert.Equal(t, http.StatusServiceUnavailable, s.status)
			assert.Equal(t, "2", s.header.Get("Retry-After"))
		}},
		{name: "garbage", fault: Fault{Fault: Garbage}, exists: 1, sees: func(t *testing.T, s seen) {
			assert.NoError(t, s.err)
			assert.Equal(t, http.StatusOK, s.status)
			assert.Contains(t, s.header.Get("Content-Type"), "application/json")
			assert.NotEmpty(t, s.body)
			assert.False(t, json.Valid(s.body))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := startApp(t, Routing)
			if row.fault.Fault != "" {
				row.fault.Tool = "create_route"
				arm(t, p, row.fault)
			}
			row.sees(t, call(t.Context(), p.URL(), "create_route", route))
			if row.dies {
				<-p.Done()
				restart(t, p)
			}
			eventually(t, "what exists", func() bool { return len(resources(t, p)) == row.exists })
			assert.Equal(t, int64(1), counted(t, p, "create_route"))

			created(t, call(t.Context(), p.URL(), "create_route", route))
			assert.Len(t, resources(t, p), row.exists+1)
			assert.Equal(t, int64(2), counted(t, p, "create_route"))
		})
	}
}

func TestHungCallHasCommittedAndIsNeverAnswered(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: Hang})
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan seen, 1)
	go func() { answered <- call(ctx, p.URL(), "create_route", route) }()
	eventually(t, "the commit", func() bool { return len(resources(t, p)) == 1 })
	assert.Empty(t, answered)
	leave()
	assert.ErrorIs(t, (<-answered).err, context.Canceled)
	assert.Equal(t, int64(1), counted(t, p, "create_route"))
}

func TestHungCallEndsWithoutAnswerWhenTheApplicationStops(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: Hang})
	answered := make(chan seen, 1)
	go func() { answered <- call(t.Context(), p.URL(), "create_route", route) }()
	eventually(t, "the commit", func() bool { return len(resources(t, p)) == 1 })
	require.NoError(t, p.Stop(t.Context()))
	assert.Error(t, (<-answered).err)
}

func TestSlowCallCommitsAlthoughItsClientHasLeft(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: Slow, MS: 200})
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan seen, 1)
	go func() { answered <- call(ctx, p.URL(), "create_route", route) }()
	eventually(t, "the arrival", func() bool { return counted(t, p, "create_route") == 1 })
	leave()
	<-answered
	eventually(t, "the commit", func() bool { return len(resources(t, p)) == 1 })
}

func TestLateCommitIsNotThereBeforeItsTime(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: LateCommit, MS: maxFaultDelay.Milliseconds()})
	assert.ErrorIs(t, call(t.Context(), p.URL(), "create_route", route).err, io.EOF)
	assert.Equal(t, int64(1), counted(t, p, "create_route"))
	assert.Equal(t, "NOT_FOUND", call(t.Context(), p.URL(), "get_route", `{"name":"w-route"}`).code(t))
}

func TestResetAbandonsDelayedAndHeldCalls(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: LateCommit, MS: maxFaultDelay.Milliseconds()})
	arm(t, p, Fault{Tool: "create_route", Fault: Slow, MS: maxFaultDelay.Milliseconds()})
	arm(t, p, Fault{Tool: "create_route", Fault: Hang})
	arm(t, p, Fault{Tool: "create_route", Fault: Reject, Calls: 9})
	require.Error(t, call(t.Context(), p.URL(), "create_route", route).err)
	answered := make(chan seen, 2)
	for n := range 2 {
		go func() { answered <- call(t.Context(), p.URL(), "create_route", route) }()
		eventually(t, "the arrival", func() bool { return counted(t, p, "create_route") == int64(n+2) })
	}
	eventually(t, "the faults' use", func() bool {
		armed, err := p.Client().Faults(t.Context())
		return err == nil && len(armed) == 1
	})

	require.NoError(t, p.Client().Reset(t.Context()))
	for range 2 {
		assert.Error(t, (<-answered).err)
	}
	assert.Empty(t, resources(t, p))
	counts, err := p.Client().Calls(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"create_route": 0, "get_route": 0, "delete_route": 0, "list_routes": 0}, counts)
	armed, err := p.Client().Faults(t.Context())
	require.NoError(t, err)
	assert.Empty(t, armed)
}

func TestFaultStrikesReadingAndDeletingTools(t *testing.T) {
	p := startApp(t, Routing)
	made := call(t.Context(), p.URL(), "create_route", route).resource(t)
	byID := `{"id":"` + made.ID + `"}`

	arm(t, p, Fault{Tool: "get_route", Fault: LoseAck})
	assert.Error(t, call(t.Context(), p.URL(), "get_route", byID).err)
	arm(t, p, Fault{Tool: "list_routes", Fault: Garbage})
	assert.False(t, json.Valid(call(t.Context(), p.URL(), "list_routes", `{}`).body))

	arm(t, p, Fault{Tool: "delete_route", Fault: Reject})
	assert.Equal(t, "REJECTED", call(t.Context(), p.URL(), "delete_route", byID).code(t))
	assert.Len(t, resources(t, p), 1)
	arm(t, p, Fault{Tool: "delete_route", Fault: LoseAck})
	assert.Error(t, call(t.Context(), p.URL(), "delete_route", byID).err)
	assert.Empty(t, resources(t, p))

	counts, err := p.Client().Calls(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"create_route": 1, "get_route": 1, "delete_route": 2, "list_routes": 1}, counts)
}

func TestFaultsStrikeTheNextCallsOfTheirToolInOrder(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: Reject, Calls: 2})
	arm(t, p, Fault{Tool: "create_route", Fault: LoseAck})
	assert.Equal(t, "NOT_FOUND", call(t.Context(), p.URL(), "get_route", `{"name":"w-route"}`).code(t))
	for range 2 {
		assert.Equal(t, "REJECTED", call(t.Context(), p.URL(), "create_route", route).code(t))
	}
	armed, err := p.Client().Faults(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []Fault{{Tool: "create_route", Fault: LoseAck, Calls: 1}}, armed)
	assert.Error(t, call(t.Context(), p.URL(), "create_route", route).err)
	call(t.Context(), p.URL(), "create_route", route).resource(t)
	assert.Len(t, resources(t, p), 2)
}

func TestClearedAndRestartedApplicationsHaveNoFaults(t *testing.T) {
	p := startApp(t, Routing)
	arm(t, p, Fault{Tool: "create_route", Fault: Reject, Calls: 5})
	require.NoError(t, p.Client().ClearFaults(t.Context()))
	call(t.Context(), p.URL(), "create_route", route).resource(t)

	arm(t, p, Fault{Tool: "create_route", Fault: Reject, Calls: 5})
	restart(t, p)
	call(t.Context(), p.URL(), "create_route", route).resource(t)
}

func TestWrongFaultIsRefusedWithTheFieldAndItsValidValues(t *testing.T) {
	p := startApp(t, Routing)
	for _, row := range []struct{ name, body, field, says string }{
		{"unknown tool", `{"tool":"create_database","fault":"hang"}`, "tool", "create_route"},
		{"missing tool", `{"fault":"hang"}`, "tool", "delete_route"},
		{"unknown fault", `{"tool":"create_route","fault":"explode"}`, "fault", "lose_ack"},
		{"missing fault", `{"tool":"create_route"}`, "fault", "refuse_status"},
		{"negative calls", `{"tool":"create_route","fault":"hang","calls":-1}`, "calls", "1 or more"},
		{"zero calls", `{"tool":"create_route","fault":"hang","calls":0}`, "calls", "1 or more"},
		{"calls as text", `{"tool":"create_route","fault":"hang","calls":"2"}`, "calls", "calls"},
		{"negative delay", `{"tool":"create_route","fault":"slow","ms":-1}`, "ms", "milliseconds"},
		{"endless delay", `{"tool":"create_route","fault":"slow","ms":9223372036854775807}`, "ms", "3600000"},
		{"delay without meaning", `{"tool":"create_route","fault":"hang","ms":5}`, "ms", "late_commit"},
		{"unknown member", `{"tool":"create_route","fault":"hang","time":5}`, "time", "tool"},
		{"wrong case", `{"Tool":"create_route","fault":"hang"}`, "Tool", "tool"},
		{"not JSON", `tool=create_route`, "", "JSON"},
		{"empty", ``, "", "JSON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			response, err := http.Post(p.Client().BaseURL+"/faults", "application/json", strings.NewReader(row.body))
			require.NoError(t, err)
			defer func() { assert.NoError(t, response.Body.Close()) }()
			assert.Equal(t, http.StatusBadRequest, response.StatusCode)
			raw, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			var answer struct {
				Error struct {
					Field   string
					Message string
				}
			}
			require.NoError(t, json.Unmarshal(raw, &answer), "%s", raw)
			assert.Equal(t, row.field, answer.Error.Field)
			assert.NotEmpty(t, answer.Error.Message)
			assert.Contains(t, string(raw), row.says)
		})
	}
	armed, err := p.Client().Faults(t.Context())
	require.NoError(t, err)
	assert.Empty(t, armed)
	assert.ErrorContains(t, p.Client().SetFault(t.Context(), Fault{Tool: "create_route", Fault: "explode"}), "lose_ack")
}
