package main

import (
	"fmt"
	"testing"
	"time"
)

// Each fault of the admin port, and that peers do not feel it.
func TestAdminFaults(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	for _, each := range []struct {
		faults string
		code   int
	}{
		{`{"refuse":true}`, 0},
		{`{"status503":true}`, 503},
		{`{"unauthorized":true}`, 401},
		{`{"conflict":1}`, 409},
		{`{"dropReply":1}`, 0},
	} {
		s.control(all[0], "PUT", "/faults", each.faults)
		if code := s.admin(all[0], "POST", "/task", `{"command":"UpdateXMSettingTaskCommand"}`, nil); code != each.code {
			t.Errorf("%s: %d", each.faults, code)
		}
		s.control(all[0], "DELETE", "/faults", nil)
		if code := s.admin(all[0], "GET", "/task", nil, nil); code != 200 {
			t.Errorf("after %s: %d", each.faults, code)
		}
		if got := s.groupOf(all[1]).Members[0].Status; got != online {
			t.Errorf("%s made it %s for others", each.faults, got)
		}
	}
	// The one whose answer was cut was carried out.
	var tasks []task
	s.admin(all[0], "GET", "/task", nil, &tasks)
	if len(tasks) != 1 {
		t.Errorf("%+v", tasks)
	}
}

func TestHangAndCut(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.control(all[0], "PUT", "/faults", `{"hang":true}`)
	answered := make(chan int)
	go func() { answered <- s.admin(all[0], "GET", "/task", nil, nil) }()
	select {
	case code := <-answered:
		t.Errorf("answered %d", code)
	case <-time.After(300 * time.Millisecond):
	}
	s.control(all[1], "PUT", "/faults", `{"cutPeers":true,"memberStatus":{"m0":"Stopped"}}`)
	s.eventually("it is offline for itself", func() bool { return s.groupOf(all[1]).Members[1].Status == offline })
	if got := s.groupOf(all[1]).Members[0].Status; got != "Stopped" {
		t.Errorf("the word for m0: %s", got)
	}
	s.control(all[0], "DELETE", "/faults", nil)
	s.eventually("it is offline for m0", func() bool { return s.groupOf(all[0]).Members[1].Status == offline })
	s.control(all[1], "DELETE", "/faults", nil)
	s.online(all[0], 2)
	if code, text := request("PUT", fmt.Sprintf("http://%s:9446/faults", all[0].address), `{"refuze":true}`); code != 400 {
		t.Errorf("an unknown fault: %d %s", code, text)
	}
}

func TestTaskFaults(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.control(all[0], "PUT", "/faults", `{"failNext":1}`)
	s.fails(all[0], pairing("m0", "m1"), "failed by a fault")
	s.control(all[0], "PUT", "/faults", `{"failAt":{"percent":30,"command":"Derby","times":1}}`)
	s.fails(all[0], pairing("m0", "m1"), "at 30 %")

	s.control(all[0], "PUT", "/faults", `{"stuckAt":45,"transientStatus":2}`)
	id := s.submit(all[0], pairing("m0", "m1"))
	path := fmt.Sprintf("/task/%d", id)
	for range 2 {
		var said map[string]string
		if s.admin(all[0], "GET", path+"/status", nil, &said); said["error"] != "Failed to get the task status" {
			t.Errorf("%v", said)
		}
	}
	var now task
	s.eventually("it is stuck", func() bool {
		s.admin(all[0], "GET", path+"/status", nil, &now)
		return now.Progress == 45
	})
	time.Sleep(50 * time.Millisecond)
	if s.admin(all[0], "GET", path+"/status", nil, &now); now.Progress != 45 || now.Status != runs {
		t.Errorf("%+v", now)
	}
	if code := s.admin(all[0], "PUT", fmt.Sprintf("/task/cancel/%d/force", id), nil, nil); code != 200 {
		t.Errorf("cancel: %d", code)
	}
	if now = s.await(all[0], id); now.Status != cancelled {
		t.Errorf("%+v", now)
	}
	id = s.submit(all[0], pairing("m0", "m1"))
	s.control(all[0], "DELETE", "/faults", nil)
	if now = s.await(all[0], id); now.Status != success {
		t.Errorf("%+v", now)
	}

	s.control(all[0], "PUT", "/faults", `{"forgetTasks":true}`)
	if code := s.admin(all[0], "GET", path+"/status", nil, nil); code != 404 {
		t.Errorf("a forgotten task: %d", code)
	}
}

func TestZombieTask(t *testing.T) {
	s := newSite(t)
	all := s.group(2)
	s.control(all[0], "PUT", "/faults", `{"dieAt":30,"zombieTasks":true}`)
	id := s.submit(all[0], remove("m1"))
	s.eventually("it died", func() bool { return s.admin(all[0], "GET", "/task", nil, nil) == 0 })
	again := s.start("m0")
	if code := s.admin(again, "POST", "/task", remove("m1"), nil); code != 409 {
		t.Errorf("beside the leftover: %d", code)
	}
	s.admin(again, "PUT", fmt.Sprintf("/task/cancel/%d/force", id), nil, nil)
	s.online(again, 2)
	s.succeeds(again, remove("m1"))
}

func TestGridFaults(t *testing.T) {
	s := newSite(t)
	all := s.group(1)
	s.grid(all[0], "g", `{}`)
	s.grid(all[0], "h", `{}`)
	s.control(all[0], "PUT", "/faults", `{"gridError":["g"],"loseGrid":["h"],"gridErrorStays":["i"]}`)
	var g grid
	if s.admin(all[0], "GET", "/grid/g", nil, &g); g.Status != failing {
		t.Errorf("%+v", g)
	}
	if code := s.admin(all[0], "GET", "/grid/h", nil, nil); code != 404 {
		t.Errorf("the lost grid: %d", code)
	}
	s.grid(all[0], "i", `{}`)
	if s.admin(all[0], "GET", "/grid/i", nil, &g); g.Status != failing {
		t.Errorf("%+v", g)
	}
}

func TestFaultsOverRestarts(t *testing.T) {
	s := newSite(t)
	m := s.start("m0")
	for faults, code := range map[string]int{`{"status503":true}`: 200, `{"status503":true,"sticky":true}`: 503} {
		s.control(m, "PUT", "/faults", faults)
		m.kill()
		m = s.start("m0")
		if got := s.admin(m, "GET", "/task", nil, nil); got != code {
			t.Errorf("after a restart with %s: %d", faults, got)
		}
	}
	s.control(m, "PUT", "/faults", `{"slowStart":30}`) // 0.3 s at this speed
	m.kill()
	began := time.Now()
	if m = s.start("m0"); time.Since(began) < 300*time.Millisecond {
		t.Error("the start was not slow")
	}
}
