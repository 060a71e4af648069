package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// One request through every variant: same service, same answer, and the database
// knows when it worked for nobody.
func TestVariantsServeTheSameService(t *testing.T) {
	for _, v := range variants(new(page).show) {
		db := newDatabase()
		h, limit := v.build(db)
		req := httptest.NewRequest(http.MethodGet, "/checkout", nil)
		req.Header.Set("X-Timeout", "1000")
		req.Header.Set("X-Sent", strconv.FormatInt(time.Now().Add(-2*patience).UnixNano(), 10))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", v.name, w.Code)
		}
		if got := db.count(); got != (work{done: 1, wasted: 1}) {
			t.Errorf("%s: %+v", v.name, got)
		}
		if limit != nil && limit() != 32 {
			t.Errorf("%s: limit %d", v.name, limit())
		}
	}
}

func TestSummaryCountsTheRightSeconds(t *testing.T) {
	tp := new(tape)
	for second := range length {
		for range 10 {
			status := 200
			if second < settled && second >= slowFrom {
				status = 503
			}
			tp.add(answer{class: 0, second: second, status: status, took: time.Duration(second) * time.Millisecond, told: true})
		}
	}
	s := summarize("x", tp, work{10, 1})
	if s.Served["checkout"] != 1 || s.ServedWhole["checkout"] != round(10.0/12) || s.Wasted != 0.1 || s.RetryAfter != 1 || s.CheckoutP99MS != slowTo-1 {
		t.Errorf("%+v", s)
	}
	printSummary(io.Discard, []summary{s, s, s})
}

func TestTheTableHasAColumnForEachSecond(t *testing.T) {
	tp := new(tape)
	for second := range length {
		tp.add(answer{class: 1, second: second, status: 200})
	}
	s := &screen{out: io.Discard}
	s.begin("x", tp)
	if got := s.table(s.runs, (length+1)*time.Second); strings.Count(got, "█") != length {
		t.Errorf("table:\n%s", got)
	}
}
