package workspace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the database driver "sqlite"
)

// errAbsent says that no resource matches.
var errAbsent = errors.New("no such resource")

const tables = `
CREATE TABLE IF NOT EXISTS resources (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT,
	id         TEXT NOT NULL UNIQUE,
	name       TEXT NOT NULL,
	owner      TEXT NOT NULL,
	created_at TEXT NOT NULL,
	fields     TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS calls (
	tool TEXT PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT;`

// store keeps an application's resources and call counters in one SQLite file.
// Every write is on disk when its method returns.
type store struct{ db *sql.DB }

func openStore(ctx context.Context, path string) (*store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	dsn := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	// SQLite has one writer; one connection makes calls queue in Go instead of
	// failing with SQLITE_BUSY.
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the tables of %s: %w", path, err), db.Close())
	}
	return &store{db: db}, nil
}

func (s *store) close() error { return s.db.Close() }

func (s *store) ping(ctx context.Context) error { return s.db.PingContext(ctx) }

func (s *store) insert(ctx context.Context, r Resource) error {
	fields, err := json.Marshal(r.Fields)
	if err != nil {
		return fmt.Errorf("encode the fields of %s: %w", r.ID, err)
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO resources (id, name, owner, created_at, fields) VALUES (?, ?, ?, ?, ?)`,
		r.ID, r.Name, r.Owner, r.CreatedAt.UTC().Format(time.RFC3339Nano), string(fields))
	if err != nil {
		return fmt.Errorf("store %s: %w", r.ID, err)
	}
	return nil
}

// filter selects resources; an empty member selects all.
type filter struct{ id, name, owner string }

func (s *store) find(ctx context.Context, f filter) (found []Resource, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id, name, owner, created_at, fields FROM resources
		WHERE (?1 = '' OR id = ?1) AND (?2 = '' OR name = ?2) AND (?3 = '' OR owner = ?3) ORDER BY seq`, f.id, f.name, f.owner)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = []Resource{}
	for rows.Next() {
		var r Resource
		var created, fields string
		if err := rows.Scan(&r.ID, &r.Name, &r.Owner, &created, &fields); err != nil {
			return nil, fmt.Errorf("read a resource: %w", err)
		}
		if r.CreatedAt, err = time.Parse(time.RFC3339Nano, created); err != nil {
			return nil, fmt.Errorf("read created_at of %s: %w", r.ID, err)
		}
		if err := json.Unmarshal([]byte(fields), &r.Fields); err != nil {
			return nil, fmt.Errorf("read the fields of %s: %w", r.ID, err)
		}
		found = append(found, r)
	}
	return found, rows.Err()
}

// remove deletes a resource, or returns errAbsent.
func (s *store) remove(ctx context.Context, id string) error {
	result, err := s.db.ExecContext(ctx, `DELETE FROM resources WHERE id = ?`, id)
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	if n == 0 {
		return errAbsent
	}
	return nil
}

// count records that one call of the tool has arrived.
func (s *store) count(ctx context.Context, tool string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO calls (tool, n) VALUES (?, 1) ON CONFLICT (tool) DO UPDATE SET n = n + 1`, tool)
	if err != nil {
		return fmt.Errorf("count a call of %s: %w", tool, err)
	}
	return nil
}

func (s *store) calls(ctx context.Context) (counts map[string]int64, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT tool, n FROM calls`)
	if err != nil {
		return nil, fmt.Errorf("read the call counters: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	counts = map[string]int64{}
	for rows.Next() {
		var tool string
		var n int64
		if err := rows.Scan(&tool, &n); err != nil {
			return nil, fmt.Errorf("read a call counter: %w", err)
		}
		counts[tool] = n
	}
	return counts, rows.Err()
}

// clear deletes every resource and counter, in one transaction.
func (s *store) clear(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("clear the store: %w", err)
	}
	for _, statement := range []string{`DELETE FROM resources`, `DELETE FROM calls`} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("clear the store: %w", err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("clear the store: %w", err)
	}
	return nil
}
