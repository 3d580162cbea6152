package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"
)

// A request is what is sent.
type request struct {
	Method   string            `json:"method"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	KeepBody bool              `json:"keep_body"` // Print what came back.
}

// A followUp is sent after a good answer.
type followUp struct {
	request
	AfterMS float64  `json:"after_ms"` // How long a user thinks who has the answer.
	Cookies bool     `json:"cookies"`  // Send back the cookies of the answer, as a browser does.
	Copied  []string `json:"copied"`   // Headers of the answer that are sent along.
}

// A planned request is a line of a plan.
type planned struct {
	request
	AtS    float64   `json:"at_s"` // When it is due, in seconds from the beginning.
	WarmUp bool      `json:"warm_up"`
	Then   *followUp `json:"then"`
}

func readPlan(path string) ([]planned, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var plan []planned
	lines := json.NewDecoder(file)
	lines.DisallowUnknownFields()
	for {
		var line planned
		err := lines.Decode(&line)
		if err == io.EOF {
			return plan, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s, request %d: %w", path, len(plan), err)
		}
		if last := len(plan) - 1; last >= 0 && line.AtS < plan[last].AtS {
			return nil, fmt.Errorf("%s: request %d is due before the one above it", path, last+1)
		}
		plan = append(plan, line)
	}
}

func (r request) build() (*http.Request, error) {
	var body io.Reader
	if r.Body != "" {
		body = strings.NewReader(r.Body)
	}
	built, err := http.NewRequest(r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	for name, value := range r.Headers {
		built.Header.Set(name, value)
	}
	return built, nil
}

// pass takes what the application wants back from one answer into the next request.
func (f *followUp) pass(answered, sent http.Header) {
	if f.Cookies {
		for _, line := range answered["Set-Cookie"] {
			cookie, _, _ := strings.Cut(line, ";")
			if before := sent.Get("Cookie"); before != "" {
				cookie = before + "; " + cookie
			}
			sent.Set("Cookie", cookie)
		}
	}
	for _, name := range f.Copied {
		if value := answered.Get(name); value != "" {
			sent.Set(name, value)
		}
	}
}

// A pacer lets each request go when the plan says that it is due.
type pacer struct {
	plan    []planned
	began   time.Time
	onBegin func()
}

// Pace is vegeta's question: how long until the next request, and is there one.
func (p *pacer) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	if p.began.IsZero() {
		p.began = time.Now().Add(-elapsed)
		p.onBegin()
	}
	if hits >= uint64(len(p.plan)) {
		return 0, true
	}
	return max(0, p.offset(int(hits))-elapsed), false
}

// Rate is the mean over the plan, in requests a second.
func (p *pacer) Rate(time.Duration) float64 {
	if len(p.plan) == 0 {
		return 0
	}
	return float64(len(p.plan)) / math.Max(p.offset(len(p.plan)-1).Seconds(), 1e-9)
}

func (p *pacer) due(number int) time.Time { return p.began.Add(p.offset(number)) }

func (p *pacer) offset(number int) time.Duration {
	return time.Duration(p.plan[number].AtS * float64(time.Second))
}
