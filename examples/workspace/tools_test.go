package workspace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples holds full and minimal arguments for each application's create tool.
var samples = map[Kind][]string{
	Database: {`{"name":"d","owner":"tx-1","size_gb":20}`, `{"name":"d","owner":"tx-1"}`},
	Compute:  {`{"name":"c","database":"db_1","owner":"tx-1","image":"debian"}`, `{"name":"c","database":"db_1","owner":"tx-1"}`},
	Routing:  {`{"workspace":"w","name":"r","target":"vm_1","owner":"tx-1","description":"x","token":"s3"}`, route},
	Frontend: {`{"name":"f","route":"rt_1","owner":"tx-1","version":"1.2"}`, `{"name":"f","route":"rt_1","owner":"tx-1"}`},
}

func TestResourceLivesFromCreateToDelete(t *testing.T) {
	for _, app := range Apps() {
		for i, args := range samples[app.Kind] {
			t.Run(fmt.Sprintf("%s %d", app.Kind, i), func(t *testing.T) {
				p := startApp(t, app.Kind)
				created := call(t.Context(), p.URL(), app.Create, args)
				made := created.resource(t)
				assert.True(t, strings.HasPrefix(made.ID, app.prefix), made.ID)
				assert.Equal(t, "tx-1", made.Owner)
				assert.False(t, made.CreatedAt.IsZero())
				for name, value := range decode(t, args) {
					assert.Equal(t, value, decode(t, string(created.structured(t)))[name], name)
				}
				if app.Kind == Routing {
					assert.Equal(t, made.ID, made.Text("route_id"))
				}

				byID := fmt.Sprintf(`{"id":%q}`, made.ID)
				want := decode(t, string(created.structured(t)))
				want["count"] = 1.0
				for _, by := range []string{byID, fmt.Sprintf(`{"name":%q}`, made.Name), fmt.Sprintf(`{"name":%q,"owner":"tx-1"}`, made.Name)} {
					assert.Equal(t, want, decode(t, string(call(t.Context(), p.URL(), app.Get, by).structured(t))), by)
				}
				assert.Equal(t, []Resource{made}, resources(t, p))

				gone := call(t.Context(), p.URL(), app.Delete, byID).structured(t)
				assert.JSONEq(t, fmt.Sprintf(`{"id":%q,"deleted":true}`, made.ID), string(gone))
				assert.Equal(t, "NOT_FOUND", call(t.Context(), p.URL(), app.Get, byID).code(t))
				assert.Equal(t, "NOT_FOUND", call(t.Context(), p.URL(), app.Delete, byID).code(t))
				assert.JSONEq(t, `{"items":[],"count":0}`, string(call(t.Context(), p.URL(), app.List, `{}`).structured(t)))
			})
		}
	}
}

func decode(t testing.TB, raw string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(raw), &v))
	return v
}

func TestCreatingTwiceMakesTwoAndGetShowsIt(t *testing.T) {
	p := startApp(t, Routing)
	first := call(t.Context(), p.URL(), "create_route", route).resource(t)
	second := call(t.Context(), p.URL(), "create_route", route).resource(t)
	other := call(t.Context(), p.URL(), "create_route", strings.Replace(route, "tx-1", "tx-2", 1)).resource(t)

	for _, row := range []struct {
		args   string
		newest Resource
		count  string
	}{
		{`{"name":"w-route"}`, other, "3"},
		{`{"name":"w-route","owner":"tx-1"}`, second, "2"},
		{`{"id":"` + first.ID + `"}`, first, "1"},
		{`{"route_id":"` + first.ID + `"}`, first, "1"},
		{`{"id":"` + first.ID + `","owner":"tx-1"}`, first, "1"},
	} {
		got := call(t.Context(), p.URL(), "get_route", row.args).resource(t)
		assert.Equal(t, row.newest.ID, got.ID, row.args)
		assert.Equal(t, row.count, string(got.Fields["count"]), row.args)
	}
	for _, absent := range []string{`{"name":"W-ROUTE"}`, `{"name":"w-route","owner":"tx-3"}`, `{"id":"` + first.ID + `","owner":"tx-2"}`} {
		assert.Equal(t, "NOT_FOUND", call(t.Context(), p.URL(), "get_route", absent).code(t), absent)
	}

	var listed listing
	require.NoError(t, json.Unmarshal(call(t.Context(), p.URL(), "list_routes", `{"owner":"tx-1"}`).structured(t), &listed))
	assert.Equal(t, listing{Items: []Resource{first, second}, Count: 2}, listed)
	call(t.Context(), p.URL(), "delete_route", `{"route_id":"`+second.ID+`"}`).structured(t)
	assert.Equal(t, []Resource{first, other}, resources(t, p))
}

func TestInvalidArgumentsAreRefusedAndChangeNothing(t *testing.T) {
	running := map[Kind]*Process{}
	for _, app := range Apps() {
		running[app.Kind] = startApp(t, app.Kind)
	}
	for _, row := range []struct {
		kind       Kind
		tool, args string
	}{
		{Database, "create_database", `{"owner":"o"}`},
		{Database, "create_database", `{"name":"","owner":"o"}`},
		{Database, "create_database", `{"name":"d"}`},
		{Database, "create_database", `{"name":"d","owner":null}`},
		{Database, "create_database", `{"name":"d","owner":"o","color":"red"}`},
		{Database, "create_database", `{"name":"d","Owner":"o"}`},
		{Database, "create_database", `{"name":"d","owner":"o","owner":"p"}`},
		{Database, "create_database", `{"name":7,"owner":"o"}`},
		{Database, "create_database", `{"name":"d","owner":"o","size_gb":"10"}`},
		{Database, "create_database", `{"name":"d","owner":"o","size_gb":0}`},
		{Database, "create_database", `{"name":"d","owner":"o","size_gb":1.5}`},
		{Database, "create_database", `{"name":"d","owner":"o","size_gb":9223372036854775808}`},
		{Database, "create_database", `{"name":"d","owner":"` + strings.Repeat("ü", maxText+1) + `"}`},
		{Database, "create_database", `[]`},
		{Database, "create_database", `"d"`},
		{Database, "create_database", `null`},
		{Database, "get_database", `{}`},
		{Database, "get_database", `{"owner":"o"}`},
		{Database, "get_database", `{"name":"d","id":"db_1"}`},
		{Database, "get_database", `{"database_id":"db_1"}`},
		{Database, "delete_database", `{}`},
		{Database, "delete_database", `{"name":"d"}`},
		{Database, "delete_database", `{"id":""}`},
		{Database, "list_databases", `{"name":"d"}`},
		{Compute, "create_instance", `{"name":"c","owner":"o"}`},
		{Routing, "create_route", `{"name":"r","target":"t","owner":"o"}`},
		{Routing, "create_route", `{"workspace":"w","name":"r","owner":"o"}`},
		{Routing, "delete_route", `{"id":"rt_1","route_id":"rt_1"}`},
		{Frontend, "deploy", `{"name":"f","owner":"o"}`},
	} {
		t.Run(row.tool+" "+row.args[:min(len(row.args), 60)], func(t *testing.T) {
			p := running[row.kind]
			before := counted(t, p, row.tool)
			assert.Equal(t, "INVALID", call(t.Context(), p.URL(), row.tool, row.args).code(t))
			assert.Empty(t, resources(t, p))
			assert.Equal(t, before+1, counted(t, p, row.tool))
		})
	}
}

func TestNumbersAndNamesAreExactEndToEnd(t *testing.T) {
	for _, row := range []struct{ args, size, name string }{
		{`{"name":"d","owner":"o","size_gb":9007199254740993}`, "9007199254740993", "d"},
		{`{"name":"d","owner":"o","size_gb":9223372036854775807}`, "9223372036854775807", "d"},
		{`{"name":"d","owner":"o","size_gb":10.0}`, "10", "d"},
		{`{"name":"d","owner":"o","size_gb":1e3}`, "1000", "d"},
		{`{"name":"größe 数据库 😀 \u202e<>&\"\\","owner":"o","size_gb":1}`, "1", "größe 数据库 😀 \u202e<>&\"\\"},
		{`{"name":"e\u0301","owner":"o","size_gb":1}`, "1", "e\u0301"},
	} {
		t.Run(row.args, func(t *testing.T) {
			p := startApp(t, Database)
			made := call(t.Context(), p.URL(), "create_database", row.args).resource(t)
			assert.Equal(t, row.size, string(made.Fields["size_gb"]))
			assert.Equal(t, row.name, made.Name)
			restart(t, p)

			byName, err := json.Marshal(map[string]string{"name": row.name})
			require.NoError(t, err)
			got := call(t.Context(), p.URL(), "get_database", string(byName)).resource(t)
			assert.Equal(t, row.size, string(got.Fields["size_gb"]))
			assert.Equal(t, made.ID, got.ID)
			assert.Equal(t, row.size, string(resources(t, p)[0].Fields["size_gb"]))
			var listed listing
			require.NoError(t, json.Unmarshal(call(t.Context(), p.URL(), "list_databases", `{}`).structured(t), &listed))
			assert.Equal(t, []Resource{made}, listed.Items)
		})
	}
}

func TestConcurrentCreatesAllSucceed(t *testing.T) {
	const n = 50
	p := startApp(t, Routing)
	arrived := make(chan seen, n)
	for range n {
		go func() { arrived <- call(t.Context(), p.URL(), "create_route", route) }()
	}
	ids := map[string]bool{}
	for range n {
		ids[(<-arrived).resource(t).ID] = true
	}
	assert.Len(t, ids, n)
	assert.Len(t, resources(t, p), n)
	assert.Equal(t, int64(n), counted(t, p, "create_route"))
}
