// The load driver of the benchmarks: it sends each request of a plan when that is due, whatever
// became of those before, and prints a line for each answer. See benchmarks/load/__init__.py.
//
// It is vegeta's library with a plan of its own. Vegeta has one worker more whenever all are busy,
// so that no answer delays a request. It counts a latency from when a worker takes up a request;
// this program counts from when the request was due.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sys/unix"
)

const usage = "usage: driver PLAN TIMEOUT (of a request, as 60s)"

// What vegeta believes to send to; byNumber sends something else.
const placeholder = "http://plan/"

// Idle connections that are kept for each server: more than ever wait at once.
const idleConnections = 10_000

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New(usage)
	}
	timeout, err := time.ParseDuration(arguments[1])
	if err != nil {
		return err
	}
	plan, err := readPlan(arguments[0])
	if err != nil {
		return err
	}
	newDriver(plan, timeout).drive()
	return nil
}

// A driver sends one plan, once.
type driver struct {
	plan   []planned
	client *http.Client
	pacer  *pacer
	// Python's clock, time.monotonic, when this program read its own.
	clock   int64
	read    time.Time
	printed sync.Mutex
	out     *json.Encoder
}

func newDriver(plan []planned, timeout time.Duration) *driver {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	// No proxy, and no compression that a service would not see from its own callers.
	transport := &http.Transport{
		MaxIdleConnsPerHost: idleConnections,
		DisableCompression:  true,
	}
	asItIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &driver{
		plan:   plan,
		client: &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: asItIs},
		pacer:  &pacer{plan: plan},
		clock:  now.Nano(),
		read:   time.Now(),
		out:    json.NewEncoder(os.Stdout),
	}
}

// drive returns once every request and every follow-up has its answer, or an interrupt ended it.
func (d *driver) drive() {
	d.pacer.onBegin = func() { d.print(map[string]int64{"began_ns": d.at(d.pacer.began)}) }
	sending := *d.client
	sending.Transport = byNumber{d}
	// Workers are without bound; this is vegeta's default too.
	attacker := vegeta.NewAttacker(vegeta.Client(&sending))
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		attacker.Stop()
	}()
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: http.MethodGet, URL: placeholder})
	var following sync.WaitGroup
	for result := range attacker.Attack(target, d.pacer, 0, "") {
		following.Add(1)
		go func() {
			defer following.Done()
			d.finish(result)
		}()
	}
	following.Wait()
}

// byNumber sends the request of the plan that has the number which vegeta gave to this one.
type byNumber struct{ driver *driver }

func (b byNumber) RoundTrip(numbered *http.Request) (*http.Response, error) {
	number, err := strconv.Atoi(numbered.Header.Get("X-Vegeta-Seq"))
	if err != nil {
		return nil, err
	}
	request, err := b.driver.plan[number].build()
	if err != nil {
		return nil, err
	}
	return b.driver.client.Transport.RoundTrip(request.WithContext(numbered.Context()))
}

// An answer is what is printed of a request. Times are nanoseconds of Python's time.monotonic.
type answer struct {
	Seq     int     `json:"seq"`
	WarmUp  bool    `json:"warm_up,omitempty"`
	Due     int64   `json:"due_ns"`
	Sent    int64   `json:"sent_ns"`
	Ended   int64   `json:"ended_ns"`
	Latency int64   `json:"latency_ns"` // From when it was due to the last byte of the answer.
	Status  int     `json:"status"`     // 0: there was no answer, and error says why.
	Error   string  `json:"error,omitempty"`
	Bytes   int     `json:"bytes"`
	Body    string  `json:"body,omitempty"`
	Then    *answer `json:"then,omitempty"`
}

// finish follows a result up, if the plan says so, and prints it.
func (d *driver) finish(result *vegeta.Result) {
	number := int(result.Seq)
	entry := &d.plan[number]
	ended := result.Timestamp.Add(result.Latency)
	found := d.answer(d.pacer.due(number), result.Timestamp, ended)
	found.Seq, found.WarmUp = number, entry.WarmUp
	found.say(entry.request, int(result.Code), result.Error, result.Body)
	if entry.Then != nil && result.Code >= 200 && result.Code < 300 {
		found.Then = d.follow(entry.Then, ended, result.Headers)
		found.Then.Seq, found.Then.WarmUp = number, entry.WarmUp
	}
	d.print(found)
}

// follow sends a follow-up when the user has thought for long enough.
func (d *driver) follow(then *followUp, ended time.Time, headers http.Header) *answer {
	due := ended.Add(time.Duration(then.AfterMS * float64(time.Millisecond)))
	request, err := then.build()
	if err != nil {
		now := time.Now()
		found := d.answer(due, now, now)
		found.Error = err.Error()
		return found
	}
	then.pass(headers, request.Header)
	time.Sleep(time.Until(due))
	sent := time.Now()
	status, body, failure := d.fetch(request)
	found := d.answer(due, sent, time.Now())
	found.say(then.request, status, failure, body)
	return found
}

func (d *driver) fetch(request *http.Request) (status int, body []byte, failure string) {
	response, err := d.client.Do(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, err.Error()
	}
	return response.StatusCode, body, ""
}

func (d *driver) answer(due, sent, ended time.Time) *answer {
	latency := ended.Sub(due).Nanoseconds()
	return &answer{Due: d.at(due), Sent: d.at(sent), Ended: d.at(ended), Latency: latency}
}

// say notes what came back. A status is no error here: whoever reads this judges it.
func (a *answer) say(asked request, status int, failure string, body []byte) {
	a.Status, a.Bytes = status, len(body)
	if status == 0 {
		a.Error = strings.TrimPrefix(failure, fmt.Sprintf("Get %q: ", placeholder))
	}
	if asked.KeepBody {
		a.Body = string(body)
	}
}

// at is a time of this program on Python's clock.
func (d *driver) at(moment time.Time) int64 {
	return d.clock + moment.Sub(d.read).Nanoseconds()
}

func (d *driver) print(line any) {
	d.printed.Lock()
	defer d.printed.Unlock()
	if err := d.out.Encode(line); err != nil { // Nobody reads any more.
		os.Exit(1)
	}
}
