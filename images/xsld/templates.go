package main

import (
	"io"
	"net/http"
	"slices"
)

// template is a pair of descriptors that Custom grids are made from.
type template struct {
	Name          string `json:"name"`
	Description   string `json:"description"`
	ObjectGridXML string `json:"objectGridXml"`
	DeploymentXML string `json:"deploymentXml"`
}

func (m *member) getTemplates(*http.Request) (any, error) {
	return append([]template{}, m.database().Templates...), nil
}

func (m *member) getTemplate(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if t := m.database().template(name); t != nil {
		return *t, nil
	}
	return nil, noTemplate(name)
}

func noTemplate(name string) error {
	return &refusal{http.StatusNotFound, "there is no template " + name}
}

func (m *member) putTemplate(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var sent struct {
		Description   string `json:"description"`
		ObjectGridXML string `json:"objectGridXml"`
		DeploymentXML string `json:"deploymentXml"`
	}
	if err := decodeStrictly(text, &sent); err != nil {
		return nil, bad(err.Error())
	}
	if sent.ObjectGridXML == "" || sent.DeploymentXML == "" {
		return nil, bad("objectGridXml and deploymentXml are needed")
	}
	t := template{r.PathValue("name"), sent.Description, sent.ObjectGridXML, sent.DeploymentXML}
	return t, m.commit(func(db *database) error {
		if known := db.template(t.Name); known != nil {
			*known = t
		} else {
			db.Templates = append(db.Templates, t)
		}
		return nil
	})
}

func (m *member) deleteTemplate(r *http.Request) (any, error) {
	name := r.PathValue("name")
	return struct{}{}, m.commit(func(db *database) error {
		if db.template(name) == nil {
			return noTemplate(name)
		}
		for _, g := range db.Grids {
			if g.TemplateName == name {
				return &refusal{http.StatusConflict, "the template is in use by grid " + g.Name}
			}
		}
		db.Templates = slices.DeleteFunc(db.Templates, func(t template) bool { return t.Name == name })
		return nil
	})
}
