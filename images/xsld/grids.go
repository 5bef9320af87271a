package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strconv"
)

// States of a grid, beside online.
const (
	created = "Created"
	failing = "Error"
)

// gridFields are a grid's as they are sent: numbers as strings, booleans as booleans. What is left out has a default.
type gridFields struct {
	Description        *string `json:"description,omitempty"`
	GridType           *string `json:"gridType,omitempty"`
	TemplateName       *string `json:"templateName,omitempty"`
	OwnerName          *string `json:"ownerName,omitempty"`
	GroupName          *string `json:"groupName,omitempty"`
	UseAuthentication  *bool   `json:"useAuthentication,omitempty"`
	UseAuthorization   *bool   `json:"useAuthorization,omitempty"`
	UseCapLRUEvictor   *bool   `json:"useCapLRUEvictor,omitempty"`
	GridCapacity       *string `json:"gridCapacity,omitempty"`
	TransactionTimeout *string `json:"transactionTimeout,omitempty"`
	LockTimeout        *string `json:"lockTimeout,omitempty"`
	TimeToLive         *string `json:"timeToLive,omitempty"`
	NumPartition       *string `json:"numPartition,omitempty"`
	NumSyncReplicas    *string `json:"numSyncReplicas,omitempty"`
	NumAsyncReplicas   *string `json:"numAsyncReplicas,omitempty"`
}

// grid is one with all its fields.
type grid struct {
	Name               string `json:"name"`
	Description        string `json:"description"`
	GridType           string `json:"gridType"`
	TemplateName       string `json:"templateName"`
	OwnerName          string `json:"ownerName"`
	GroupName          string `json:"groupName"`
	UseAuthentication  bool   `json:"useAuthentication"`
	UseAuthorization   bool   `json:"useAuthorization"`
	UseCapLRUEvictor   bool   `json:"useCapLRUEvictor"`
	GridCapacity       string `json:"gridCapacity"`
	TransactionTimeout string `json:"transactionTimeout"`
	LockTimeout        string `json:"lockTimeout"`
	TimeToLive         string `json:"timeToLive"`
	NumPartition       string `json:"numPartition"`
	NumSyncReplicas    string `json:"numSyncReplicas"`
	NumAsyncReplicas   string `json:"numAsyncReplicas"`
	Status             string `json:"status"`
	// ID tells a grid from an earlier one of the same name, whose data it must not show.
	ID string `json:"id,omitempty"`
}

func defaultGrid(name string) grid {
	return grid{Name: name, GridType: "Simple", OwnerName: adminUser, GridCapacity: "0", TransactionTimeout: "30",
		LockTimeout: "15", TimeToLive: "0", NumPartition: "7", NumSyncReplicas: "0", NumAsyncReplicas: "1"}
}

func (g grid) shown() grid {
	g.ID = ""
	return g
}

func number(text string) int {
	value, _ := strconv.Atoi(text)
	return value
}

// gridFrom lays the fields of a request over a grid and checks the whole.
func gridFrom(r *http.Request, g grid, db *database) (grid, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return g, err
	}
	var fields gridFields
	if err := decodeStrictly(text, &fields); err != nil {
		return g, bad("a field is unknown, or a number is not sent as a string: " + err.Error())
	}
	plain, err := json.Marshal(fields)
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(plain)).Decode(&g)
	}
	if err != nil {
		return g, err
	}
	for name, value := range map[string]string{"gridCapacity": g.GridCapacity, "transactionTimeout": g.TransactionTimeout,
		"lockTimeout": g.LockTimeout, "timeToLive": g.TimeToLive, "numPartition": g.NumPartition,
		"numSyncReplicas": g.NumSyncReplicas, "numAsyncReplicas": g.NumAsyncReplicas} {
		if value, err := strconv.Atoi(value); err != nil || value < 0 {
			return g, bad(name + " must be a whole number")
		}
	}
	partitions := number(g.NumPartition)
	switch {
	case partitions > 10000 || !big.NewInt(int64(partitions)).ProbablyPrime(10):
		return g, bad("numPartition must be a prime number")
	case g.GridType != "Simple" && g.GridType != "Session" && g.GridType != "DynaCache" && g.GridType != "Custom":
		return g, bad("gridType must be Simple, Session, DynaCache or Custom")
	case g.OwnerName != adminUser:
		return g, bad("there is no user " + g.OwnerName)
	case g.GridType == "Custom" && g.TemplateName == "":
		return g, bad("a Custom grid needs a templateName")
	case g.GridType == "Custom" && db.template(g.TemplateName) == nil:
		return g, bad("there is no template " + g.TemplateName)
	case g.GridType != "Custom" && g.TemplateName != "" && g.TemplateName != g.GridType && db.template(g.TemplateName) == nil:
		return g, bad("there is no template " + g.TemplateName)
	}
	return g, nil
}

func (m *member) getGrids(*http.Request) (any, error) {
	shown := []grid{}
	for _, g := range m.database().Grids {
		shown = append(shown, g.shown())
	}
	return shown, nil
}

func (m *member) getGrid(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if g := m.database().grid(name); g != nil {
		return g.shown(), nil
	}
	return nil, &refusal{http.StatusNotFound, "there is no grid " + name}
}

// postGrid makes a grid: listed when its task starts, usable when it is Online.
func (m *member) postGrid(r *http.Request) (any, error) {
	if err := m.onlyMaster(); err != nil {
		return nil, err
	}
	db := m.database()
	name := r.PathValue("name")
	if db.grid(name) != nil {
		return nil, &refusal{http.StatusConflict, fmt.Sprintf("the grid %s exists", name)}
	}
	g, err := gridFrom(r, defaultGrid(name), db)
	if err != nil {
		return nil, err
	}
	g.Status, g.ID = created, newID()
	return m.gridTask("CreateGridTaskCommand", name, plan{
		steps: []step{
			{0, func() error {
				return m.commit(func(db *database) error {
					db.Grids = append(db.Grids, g)
					return nil
				})
			}},
			{80, func() error { return m.waitUntilPlaced(name) }},
			{90, func() error { return m.gridStatus(name, online) }},
		},
		undo: func() {
			_ = m.commit(func(db *database) error {
				db.dropGrid(name)
				return nil
			})
		},
	})
}

func (m *member) putGrid(r *http.Request) (any, error) {
	if err := m.onlyMaster(); err != nil {
		return nil, err
	}
	db := m.database()
	name := r.PathValue("name")
	before := db.grid(name)
	if before == nil {
		return nil, &refusal{http.StatusNotFound, "there is no grid " + name}
	}
	g, err := gridFrom(r, *before, db)
	if err != nil {
		return nil, err
	}
	if g.GridType != before.GridType || g.TemplateName != before.TemplateName || g.NumPartition != before.NumPartition {
		return nil, bad("gridType, templateName and numPartition of a grid can't be changed")
	}
	return m.gridTask("UpdateGridTaskCommand", name, plan{steps: []step{{50, func() error {
		return m.commit(func(db *database) error {
			if now := db.grid(name); now != nil {
				g.Status = now.Status
				*now = g
			}
			return nil
		})
	}}}})
}

func (m *member) deleteGrid(r *http.Request) (any, error) {
	if err := m.onlyMaster(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if m.database().grid(name) == nil {
		return nil, &refusal{http.StatusNotFound, "there is no grid " + name}
	}
	return m.gridTask("DeleteGridTaskCommand", name, plan{steps: []step{{80, func() error {
		return m.commit(func(db *database) error {
			db.dropGrid(name)
			return nil
		})
	}}}})
}

func (m *member) gridTask(command, name string, p plan) (any, error) {
	p.length = m.scaled(m.task) / 4
	id, err := m.submit(command, "", map[string]string{"gridName": name}, p)
	if err != nil {
		return nil, err
	}
	return map[string]int{"taskId": id}, nil
}

func (m *member) gridStatus(name, status string) error {
	return m.commit(func(db *database) error {
		for _, broken := range m.faults.GridErrorStays {
			if broken == name {
				status = failing
			}
		}
		if g := db.grid(name); g != nil {
			g.Status = status
		}
		return nil
	})
}
