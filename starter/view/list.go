package view

import (
	"time"

	"github.com/mcpx-go/mcpx/contract"
	"github.com/mcpx-go/mcpx/starter/screen"
)

// Row is one transaction of a list.
type Row struct {
	ID             string
	Plan           string
	State          contract.TxState
	Started, Ended time.Time
}

// List shows transactions, one a line.
func List(s *screen.Screen, rows []Row, now time.Time) string {
	columns := []screen.Column{{Title: "ID"}, {Title: "STATE"}, {Title: "STARTED"}, {Title: "TOOK"}}
	cells := make([][]screen.Cell, len(rows))
	for i, row := range rows {
		end := row.Ended
		if end.IsZero() {
			end = now
		}
		took := ""
		if !row.Started.IsZero() {
			took = span(end.Sub(row.Started))
		}
		cells[i] = []screen.Cell{screen.Text(ShortID(row.ID)), txCell(row.State), screen.Text(moment(row.Started)), screen.Text(took)}
	}
	return s.Table(columns, cells)
}
