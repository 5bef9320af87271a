package main

import (
	"strings"
	"testing"
)

func TestGridFields(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	s.grid(m, "taken", `{"description":"d","gridType":"Session","numPartition":"37","timeToLive":"60","useAuthorization":true}`)
	var g grid
	s.admin(m, "GET", "/grid/taken", nil, &g)
	wanted := defaultGrid("taken")
	wanted.Description, wanted.GridType, wanted.NumPartition, wanted.TimeToLive = "d", "Session", "37", "60"
	wanted.UseAuthorization, wanted.Status = true, online
	if g != wanted {
		t.Errorf("%+v", g)
	}
	for body, code := range map[string]int{
		`{"numPartition":7}`:                          400,
		`{"numPartition":"9"}`:                        400,
		`{"numPartition":"1"}`:                        400,
		`{"useAuthentication":"true"}`:                400,
		`{"colour":"red"}`:                            400,
		`{"gridType":"Custom"}`:                       400,
		`{"gridType":"Custom","templateName":"none"}`: 400,
		`{"gridType":"Round"}`:                        400,
		`{"ownerName":"nobody"}`:                      400,
		`{"timeToLive":"-1"}`:                         400,
	} {
		if got := s.admin(m, "POST", "/grid/new", body, nil); got != code {
			t.Errorf("%s: %d", body, got)
		}
	}
	s.grid(m, "new", `{"templateName":"Simple","gridType":"Simple"}`)
	if code := s.admin(m, "POST", "/grid/taken", `{}`, nil); code != 409 {
		t.Errorf("one that exists: %d", code)
	}
	s.eventually("it can be changed", func() bool { return s.admin(m, "PUT", "/grid/taken", `{"timeToLive":"61"}`, nil) == 200 })
	s.eventually("it is changed", func() bool { return m.database().grid("taken").TimeToLive == "61" })
	if code := s.admin(m, "PUT", "/grid/taken", `{"numPartition":"3"}`, nil); code != 400 {
		t.Errorf("a change of partitions: %d", code)
	}
	s.eventually("it is deleted", func() bool {
		s.admin(m, "DELETE", "/grid/taken", nil, nil)
		return s.admin(m, "GET", "/grid/taken", nil, nil) == 404
	})
}

func TestTemplates(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	if code := s.admin(m, "PUT", "/gridTemplate/t", `{"objectGridXml":"<a/>","deploymentXml":"<b/>","description":"d"}`, nil); code != 200 {
		t.Fatal(code)
	}
	s.grid(m, "g", `{"gridType":"Custom","templateName":"t"}`)
	if code := s.admin(m, "DELETE", "/gridTemplate/t", nil, nil); code != 409 {
		t.Errorf("one in use: %d", code)
	}
	var all []template
	if s.admin(m, "GET", "/gridTemplate", nil, &all); len(all) != 1 || all[0] != (template{"t", "d", "<a/>", "<b/>"}) {
		t.Errorf("%+v", all)
	}
	s.eventually("the grid is gone", func() bool { return s.admin(m, "DELETE", "/grid/g", nil, nil) == 404 })
	if code := s.admin(m, "DELETE", "/gridTemplate/t", nil, nil); code != 200 {
		t.Errorf("one that is free: %d", code)
	}
}

func TestSettings(t *testing.T) {
	whole := map[string]string{"LICENSE": "accept", "SECRET_KEY": secret, "XSADMIN_PWD": password}
	for change, words := range map[string]string{
		"LICENSE=":                "licence",
		"SECRET_KEY=short":        "SECRET_KEY must have at least 10",
		"XSADMIN_PWD=lowercase-1": "upper-case",
		"XSADMIN_PWD=Nodigits-x":  "digit",
		"XSADMIN_PWD=Nospecial11": "one of",
		`XSADMIN_PWD=Quoted"-1xx`: "double quote",
		"XSLD_SPEED=0":            "above 0",
		"XSLD_PORTS=1,2":          "admin,data,ui,catalog,control",
		"MEMBER_CAP=1":            "",
	} {
		name, value, _ := strings.Cut(change, "=")
		_, err := settingsFrom(func(key string) string {
			if key == name {
				return value
			}
			return whole[key]
		})
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", change, err)
		}
	}
}
