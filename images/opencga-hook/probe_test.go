package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_800_000_000, 0)

func ago(d time.Duration) string { return now.Add(-d).UTC().Format(time.RFC3339Nano) }

// fixture is a health file: the server was up so long ago, and there are these plans.
func fixture(up time.Duration, applied int, replication string, plans ...string) string {
	return fmt.Sprintf(
		`{"statuses":{"demo-0":{"IsInGoalState":false,"LastMongoUpTime":%d,"ExpectedToBeUp":true,"ReplicationStatus":%s}},`+
			`"mmsStatus":{"demo-0":{"name":"demo-0","lastGoalVersionAchieved":%d,"plans":[%s],"errorCode":0}}}`,
		now.Add(-up).Unix(), replication, applied, strings.Join(plans, ","))
}

func open(name string, wait bool, age time.Duration) string {
	return fmt.Sprintf(`{"step":%q,"isWaitStep":%t,"started":%q,"completed":null,"result":""}`, name, wait, ago(age))
}

func done(name string) string {
	return fmt.Sprintf(`{"step":%q,"isWaitStep":true,"started":%q,"completed":%q}`, name, ago(time.Hour), ago(time.Minute))
}

func planOf(steps ...string) string {
	return fmt.Sprintf(`{"started":%q,"completed":null,"moves":[{"move":"M","steps":[%s]}]}`, ago(time.Hour), strings.Join(steps, ","))
}

func over(steps ...string) string {
	return strings.Replace(planOf(steps...), `"completed":null,"moves"`, fmt.Sprintf(`"completed":%q,"moves"`, ago(time.Minute)), 1)
}

const second = time.Second

func TestTheTableOfReadiness(t *testing.T) {
	long := time.Hour
	rows := map[string]struct {
		health string
		ready  bool
	}{
		"goal, a stale step of an old plan":         {fixture(15*second, 5, "1", planOf(open("WaitRsInit", true, long)), over()), true},
		"goal, and no replication status":           {fixture(15*second, 5, "null"), true},
		"goal, undefined replication":               {fixture(15*second, 5, "-1"), true},
		"goal, up 30 s ago":                         {fixture(30*second, 5, "1"), true},
		"goal, up 90 s ago":                         {fixture(90*second, 5, "1"), false},
		"goal, up an hour ago":                      {fixture(long, 5, "1"), false},
		"goal, up two days ago":                     {fixture(48*long, 5, "1"), false},
		"goal, recovering":                          {fixture(15*second, 5, "3"), false},
		"no goal, no plans":                         {fixture(15*second, 4, "1"), false},
		"no goal, an open wait step of old":         {fixture(15*second, 4, "1", planOf(open("WaitAllRsMembersUp", true, long))), true},
		"no goal, WaitCanUpdate in the last plan":   {fixture(15*second, 4, "1", over(), over(), planOf(open("WaitCanUpdate", true, long))), true},
		"no goal, a wait step in the future":        {fixture(15*second, 4, "1", planOf(open("WaitCanUpdate", true, -long))), false},
		"no goal, a wait step since a moment":       {fixture(15*second, 4, "1", planOf(open("WaitCanUpdate", true, 10*second))), false},
		"no goal, it waits since a moment, serving": {fixture(second, 4, "1", planOf(open("WaitTurn", true, second))), true},
		"no goal, it waits in the future, serving":  {fixture(second, 4, "1", planOf(open("WaitTurn", true, -long))), false},
		"no goal, it drains, and serves on":         {fixture(second, 4, "1", planOf(open("Drain", false, second))), false},
		"no goal, it recovers, and waits":           {fixture(second, 4, "3", planOf(open("WaitTurn", true, long))), false},
		"no goal, two open steps: the last counts":  {fixture(15*second, 4, "1", planOf(open("WaitRsInit", false, long), open("WaitLater", true, long))), true},
		"no goal, a step that does not wait":        {fixture(15*second, 4, "1", planOf(open("Stop", false, long))), false},
		"no goal, all steps of the plan are done":   {fixture(15*second, 4, "1", planOf(done("WaitRsInit"))), false},
		"no goal, it waits, and is down":            {fixture(90*second, 4, "1", planOf(open("WaitCanUpdate", true, long))), false},
		"nothing is told of plans":                  {`{"statuses":{"demo-0":{"LastMongoUpTime":1800000000,"ExpectedToBeUp":true}}}`, true},
		"it is switched off":                        {`{"statuses":{"demo-0":{"ExpectedToBeUp":false}}}`, true},
		"it speaks of somebody else":                {`{"statuses":{"demo-1":{"ExpectedToBeUp":false}}}`, false},
		"nothing at all":                            {`{}`, false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var found told
			if err := json.Unmarshal([]byte(row.health), &found); err != nil {
				t.Fatal(err)
			}
			if err := judged(probe{me: "demo-0", now: now}, found, 5); (err == nil) != row.ready {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestFilesThatAreMissingOrBrokenAreNoReadiness(t *testing.T) {
	folder := t.TempDir()
	p := probe{"demo-0", filepath.Join(folder, "health"), filepath.Join(folder, "document"), now}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		err := ready(p)
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
	check("no such file")
	write(p.health, "{")
	check("can't be read")
	write(p.health, fixture(15*second, 5, "1"))
	check("no such file")
	write(p.document, "{")
	check("can't be read")
	write(p.document, `{"version": 6}`)
	check("version 5 of the configuration is applied, 6 is wanted")
	write(p.document, `{"version": 5}`)
	check("")
}
