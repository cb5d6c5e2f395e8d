package workspace

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names one of the four applications.
type Kind string

// The applications, in the order in which a workspace is built from them.
const (
	Database Kind = "database"
	Compute  Kind = "compute"
	Routing  Kind = "routing"
	Frontend Kind = "frontend"
)

// App describes one application: what it owns and where it listens unless it
// is told otherwise.
type App struct {
	Kind Kind
	// Summary says in one sentence what the application owns.
	Summary string
	// Port is the default TCP port on loopback.
	Port int
	// Create, Get, Delete and List are the names of the application's tools.
	Create, Get, Delete, List string

	noun    string
	prefix  string
	idAlias string
	fields  []field
}

// Tools returns the application's tool names: create, get, delete, list.
func (a App) Tools() []string { return []string{a.Create, a.Get, a.Delete, a.List} }

// Addr returns the default listening address, on loopback.
func (a App) Addr() string { return fmt.Sprintf("127.0.0.1:%d", a.Port) }

var (
	nameField  = field{name: "name", required: true, nonEmpty: true, doc: "Name of the resource. Names need not be unique."}
	ownerField = field{name: "owner", required: true, nonEmpty: true, doc: "Who the resource is created for: an opaque string, stored as it is."}
)

var apps = []App{
	{
		Kind: Database, Port: 9101, noun: "database", prefix: "db_",
		Summary: "Owns the databases of the workspaces.",
		Create:  "create_database", Get: "get_database", Delete: "delete_database", List: "list_databases",
		fields: []field{
			{name: "size_gb", integer: true, doc: "Size in gigabytes, at least 1."},
		},
	},
	{
		Kind: Compute, Port: 9102, noun: "instance", prefix: "vm_",
		Summary: "Owns the instances that run the workspaces.",
		Create:  "create_instance", Get: "get_instance", Delete: "delete_instance", List: "list_instances",
		fields: []field{
			{name: "database", required: true, nonEmpty: true, doc: "Identifier of the database that the instance uses. Not checked: it lives in another application."},
			{name: "image", doc: "Image that the instance boots from."},
		},
	},
	{
		Kind: Routing, Port: 9103, noun: "route", prefix: "rt_", idAlias: "route_id",
		Summary: "Owns the routes that lead traffic to the instances.",
		Create:  "create_route", Get: "get_route", Delete: "delete_route", List: "list_routes",
		fields: []field{
			{name: "workspace", required: true, nonEmpty: true, doc: "Workspace that the route belongs to."},
			{name: "target", required: true, nonEmpty: true, doc: "Where the route leads to. Not checked: it lives in another application."},
			{name: "description", doc: "Free text for people."},
			{name: "token", doc: "Secret that the route presents to its target. Stored and returned as it is."},
		},
	},
	{
		Kind: Frontend, Port: 9104, noun: "deployment", prefix: "dep_",
		Summary: "Owns the deployments of the workspaces' frontends.",
		Create:  "deploy", Get: "get_deployment", Delete: "delete_deployment", List: "list_deployments",
		fields: []field{
			{name: "route", required: true, nonEmpty: true, doc: "Identifier of the route that serves the deployment. Not checked: it lives in another application."},
			{name: "version", doc: "Version to deploy."},
		},
	},
}

// Apps returns the four applications in the order in which a workspace is
// built from them.
func Apps() []App { return slices.Clone(apps) }

// AppOf returns the description of the application of that kind. The error
// names the valid kinds.
func AppOf(kind Kind) (App, error) {
	for _, a := range apps {
		if a.Kind == kind {
			return a, nil
		}
	}
	return App{}, fmt.Errorf("no application %q: use one of %s", kind, strings.Join(kindNames(), ", "))
}

func kindNames() []string {
	names := make([]string, len(apps))
	for i, a := range apps {
		names[i] = string(a.Kind)
	}
	return names
}
