//go:build unix

package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/base/home"
	"cairn/tools/client"
)

// step is a call of a scripted task. NAME in its arguments is a name of the task, DIR the
// folder, and «ID» the value that step ID gives: ref in a plan, and pick of the text for an
// agent that calls one tool after the other.
type step struct {
	id, tool, args, ref string
	pick                func(text string) string
}

// scripted is a kind of task. Sessions use the intents but the last two, which are held back
// with all those of a held kind.
type scripted struct {
	intents []string
	steps   []step
	// file is a file of the folder that has want afterwards; "git log" and SQL are commands.
	file, want string
	held       bool
}

func field(name string) func(string) string {
	return func(text string) string {
		var object map[string]any
		_ = json.Unmarshal([]byte(text), &object)
		return fmt.Sprint(object[name])
	}
}

var (
	write = func(content string) step {
		return step{"w", "files:write_file", `{"path":"DIR/NAME.md","content":"` + content + `"}`, "", nil}
	}
	entity = func(text string) step {
		return step{"m", "memory:create_entities", `{"entities":[{"name":"NAME","entityType":"thing","observations":["` + text + `"]}]}`, "", nil}
	}
	insert = func(text string) step {
		return step{"q", "sqlite:write_query", `{"query":"INSERT INTO log VALUES ('NAME', '` + text + `')"}`, "", nil}
	}
	now       = step{"t", "time:get_current_time", `{"timezone":"Europe/Berlin"}`, "${t.datetime}", field("datetime")}
	calculate = step{"c", "calculator:calculate", `{"expression":"6 * 7"}`, "${c.result}", func(text string) string { return text }}
	page      = step{"f", "fetch:fetch", `{"url":"URL/NAME","raw":true}`, "${f}", func(text string) string { return text }}
	read      = step{"r", "files:read_text_file", `{"path":"DIR/a.md"}`, "${r.content}", strings.TrimSpace}
)

const logged = "SELECT text FROM log WHERE name = 'NAME'"

var tasks = []scripted{
	{[]string{"save a note called NAME", "write NAME.md to the folder", "keep the text of NAME in a file", "put my remark NAME on disk", "store the memo NAME as a document"},
		[]step{write("plain NAME")}, "NAME.md", "plain NAME", false},
	{[]string{"write NAME and put it under version control", "create NAME.md and check it in", "version the new page NAME", "draft NAME and record the revision", "add the chapter NAME to the repository's history"},
		[]step{write("versioned NAME"), {"a", "git:git_add", `{"repo_path":"DIR","files":["NAME.md"]}`, "", nil}, {"k", "git:git_commit", `{"repo_path":"DIR","message":"Add NAME"}`, "", nil}}, "git log", "Add NAME", false},
	{[]string{"remember NAME for later", "keep in mind who NAME is", "do not forget NAME", "note for the future that NAME leads the project", "bear NAME in mind"},
		[]step{entity("leads")}, "memory.json", `"NAME"`, false},
	{[]string{"log in NAME.md what time it is", "write down the hour in NAME", "stamp the file NAME with the date in Berlin", "protocol NAME with a timestamp", "make a dated entry NAME"},
		[]step{now, write("at «t»")}, "NAME.md", "+0", false},
	{[]string{"work out six times seven into NAME", "compute the product for NAME and save it", "put the result of the sum NAME in a file", "figure out the amount for NAME and keep it", "how much is it? write the answer to NAME"},
		[]step{calculate, write("is «c»")}, "NAME.md", "is 42", false},
	{[]string{"insert NAME into the log", "add a row for NAME", "record NAME in the database", "file the event NAME as a record", "book NAME in the table"},
		[]step{insert("plain")}, logged, "plain", false},
	{[]string{"report the settings from the database in NAME", "export the rows of the configuration to NAME.md", "query the options and write them to NAME", "dump the stored defaults to NAME", "hand me the saved preferences as NAME"},
		[]step{{"s", "sqlite:read_query", `{"query":"SELECT value FROM settings"}`, "${s}", func(text string) string { return text }}, write("has «s»")}, "NAME.md", "blue", false},
	{[]string{"download the page NAME", "get the site NAME and save it", "mirror NAME to a file", "archive the article NAME offline", "grab NAME from the web for reading later"},
		[]step{page, write("«f»")}, "NAME.md", "page NAME", false},
	{[]string{"remember what a.md says as NAME", "take the contents of the readme into memory as NAME", "learn the document by heart as NAME", "commit the text of the file to memory, as NAME", "absorb the handbook under NAME"},
		[]step{read, entity("«r»")}, "memory.json", `"NAME"`, false},
	{[]string{"make a folder for NAME and move it there", "file NAME away in the archive", "tidy NAME into a directory of its own", "put NAME into a new drawer", "sort NAME into its own box"},
		[]step{write("moved NAME"), {"d", "files:create_directory", `{"path":"DIR/NAME"}`, "", nil}, {"v", "files:move_file", `{"source":"DIR/NAME.md","destination":"DIR/NAME/NAME.md"}`, "", nil}}, "NAME/NAME.md", "moved NAME", false},
	{[]string{"start a branch for NAME", "open a line of development NAME", "branch off for NAME", "begin the feature NAME apart from the main line", "fork the history for NAME"},
		[]step{{"b", "git:git_create_branch", `{"repo_path":"DIR","branch_name":"NAME"}`, "", nil}}, "git branch", "NAME", false},
	{[]string{"think about NAME and remember the conclusion", "reason through NAME and keep the outcome in mind", "reflect on NAME, then memorise it", "ponder NAME and retain the insight", "brood over NAME and store what you learn"},
		[]step{{"h", "thinking:sequentialthinking", `{"thought":"NAME","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "", nil}, entity("thought")}, "memory.json", `"NAME"`, false},
	{[]string{"", "", "", "download NAME and remember what it says", "learn about NAME from its web page"},
		[]step{page, entity("«f»")}, "memory.json", "page NAME", true},
	{[]string{"", "", "", "log the time of NAME in the database", "add a row with the hour for NAME"},
		[]step{now, insert("«t»")}, logged, "+0", true},
	{[]string{"", "", "", "work out six times seven and remember it as NAME", "compute NAME and keep it in mind"},
		[]step{calculate, entity("«c»")}, "memory.json", `"NAME"`, true},
	{[]string{"", "", "", "copy a.md into the database as NAME", "take the text of the file into the table as NAME"},
		[]step{read, insert("«r»")}, logged, "# A", true},
}

// measureTasks runs 200 tasks through cairn mcp, every second one as a plan, and compares the
// plans for held-back tasks before and after the first 100.
func measureTasks(t *testing.T, program string) {
	t.Setenv(home.Variable, t.TempDir())
	dir := t.TempDir()
	s := &site{t, program, dir, nil}
	s.open()
	unrelated := s.unrelated()
	before := s.measurePlans(unrelated)
	t.Logf("node F1 of other words, of kinds that no session had, of an unrelated catalogue: nothing learnt %.3f", before)
	session := s.connect()
	done := 0
	for i := range 200 {
		of := 12
		if i >= 100 {
			of = len(tasks)
		}
		if s.run(session, i, &tasks[i%of]) {
			done++
		}
		if i == 99 {
			session.Close()
			t.Logf("after 100 sessions %.3f", s.measurePlans(unrelated))
			session = s.connect()
		}
	}
	session.Close()
	t.Logf("%d of 200 tasks had their effects", done)
	if done < 200 {
		t.Error("tasks failed")
	}
}

// site is a folder with servers.
type site struct {
	*testing.T
	program, dir string
	web          *httptest.Server
}

// open adds and approves the servers.
func (s *site) open() {
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "page "+strings.TrimPrefix(r.URL.Path, "/"))
	}))
	s.Cleanup(s.web.Close)
	script := `cd "$1" && echo '# A' > a.md && git init -q && git add a.md && git -c user.name=t -c user.email=t@example.org commit -qm first &&
git config user.name t && git config user.email t@example.org &&
python3 -c "import sqlite3; d = sqlite3.connect('log.db'); d.execute('create table log (name text, text text)'); d.execute('create table settings (value text)'); d.execute('insert into settings values (\'blue\')'); d.commit()"`
	if out, err := exec.Command("sh", "-c", script, "sh", s.dir).CombinedOutput(); err != nil {
		s.Skipf("git, python3: %s", out)
	}
	s.Setenv("MEMORY_FILE_PATH", filepath.Join(s.dir, "memory.json"))
	store, err := Open(nil)
	if err != nil {
		s.Fatal(err)
	}
	servers := map[string]Server{
		"files": {Command: []string{"mcp-server-filesystem", s.dir}}, "memory": {Command: []string{"mcp-server-memory"}, Env: []string{"MEMORY_FILE_PATH"}},
		"everything": {Command: []string{"mcp-server-everything"}}, "thinking": {Command: []string{"mcp-server-sequential-thinking"}},
		"git": {Command: []string{"mcp-server-git", "--repository", s.dir}}, "time": {Command: []string{"mcp-server-time"}}, "fetch": {Command: []string{"mcp-server-fetch", "--allow-private-ips"}},
		"calculator": {Command: []string{"mcp-server-calculator"}}, "sqlite": {Command: []string{"mcp-server-sqlite", "--db-path", filepath.Join(s.dir, "log.db")}},
	}
	g := New(store, Options{})
	defer g.Close()
	for name, server := range servers {
		if _, err := exec.LookPath(server.Command[0]); err != nil {
			s.Skipf("%s is not installed", server.Command[0])
		}
		server.Name, server.Permissions = name, map[string]Permission{}
		batch, err := g.Definitions(s.Context(), server)
		if err != nil {
			s.Fatal(err)
		}
		for i := range batch.Tools {
			server.Permissions[batch.Tools[i].BareName()] = Allow
		}
		err = store.Change(func(all map[string]Server) error { all[name] = server; return nil })
		if err == nil {
			err = store.Approve(&server, batch.Tools)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	s.cairn("tools", "approve", "time") // imports the tools of all servers
}

func (s *site) connect() *client.Session {
	session, err := client.Connect(context.Background(), client.Target{Command: []string{s.program, "mcp", "--no-index", "-C", s.dir}}, nil)
	if err != nil {
		s.Fatal(err)
	}
	return session
}

// ask calls a tool of cairn and returns its text.
func (s *site) ask(session *client.Session, tool string, arguments map[string]any) (string, bool) {
	r, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		s.Fatalf("%s(%v): %v", tool, arguments, err)
	}
	return textOf(r), !r.IsError
}

// run makes the calls of a task and reports whether they had their effect.
func (s *site) run(session *client.Session, i int, k *scripted) bool {
	name := fmt.Sprint("item", i)
	fill := strings.NewReplacer("NAME", name, "DIR", s.dir, "URL", s.web.URL)
	intent := fill.Replace(k.intents[i/12%3])
	if k.held {
		intent = "task " + name
	}
	plan := (i+i/12)%2 == 1 // each kind in both ways
	values, calls, text, ok := []string{}, []map[string]any{}, "", true
	s.ask(session, "search_tools", map[string]any{"query": intent})
	for _, c := range k.steps {
		arguments := json.RawMessage(strings.NewReplacer(values...).Replace(fill.Replace(c.args)))
		if plan {
			calls = append(calls, map[string]any{"id": c.id, "tool": c.tool, "arguments": arguments})
			values = append(values, "«"+c.id+"»", c.ref)
			continue
		}
		if text, ok = s.ask(session, "call_tool", map[string]any{"tool": c.tool, "arguments": arguments}); !ok {
			break
		}
		if c.pick != nil {
			escaped, _ := json.Marshal(c.pick(text))
			values = append(values, "«"+c.id+"»", strings.Trim(string(escaped), `"`))
		}
	}
	if plan {
		text, ok = s.ask(session, "run_plan", map[string]any{"plan": map[string]any{"intent": intent, "calls": calls}})
	}
	got := s.effect(fill.Replace(k.file))
	if want := fill.Replace(k.want); !ok || !strings.Contains(got, want) {
		s.Logf("task %d, %s: %s has %.200q, want %q; the answer is %.600s", i, intent, k.file, got, want, text)
		return false
	}
	return true
}

// effect returns what a task has changed, read without the servers.
func (s *site) effect(where string) string {
	command := []string{"cat", where}
	switch {
	case strings.HasPrefix(where, "git "):
		command = append([]string{"git", "-C", s.dir}, strings.Fields(where)[1:]...)
	case strings.HasPrefix(where, "SELECT "):
		command = []string{"python3", "-c", "import sqlite3, sys; print(sqlite3.connect('log.db').execute(sys.argv[1]).fetchall())", where}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = s.dir
	out, _ := c.CombinedOutput()
	return string(out)
}

// held is an intent of which no session has the words, and the tools that serve it.
type held struct {
	intent string
	want   []string
}

// heldBack returns the held-back intents: of kinds that sessions have, or of the others.
func heldBack(kinds bool) (all []held) {
	for _, k := range tasks {
		var want []string
		for _, c := range k.steps {
			want = append(want, c.tool)
		}
		for _, intent := range k.intents[3:] {
			if k.held == kinds {
				all = append(all, held{strings.ReplaceAll(intent, "NAME", "item"), want})
			}
		}
	}
	return all
}

// unrelated imports a catalogue that no session uses, from CAIRN_DATA, and returns its intents.
func (s *site) unrelated() (all []held) {
	dir := filepath.Join(os.Getenv("CAIRN_DATA"), "tools", "gtc-k8s")
	text, err := os.ReadFile(filepath.Join(dir, "tasks.jsonl"))
	if err != nil {
		s.Logf("no unrelated catalogue: %v", err)
		return nil
	}
	s.cairn("tools", "import", "--server", "k8s", filepath.Join(dir, "tools.jsonl"))
	for line := range strings.Lines(string(text)) {
		var task struct {
			Intent string
			Calls  []struct{ Tool string }
		}
		if err := json.Unmarshal([]byte(line), &task); err != nil {
			s.Fatal(err)
		}
		h := held{intent: task.Intent}
		for _, c := range task.Calls {
			h.want = append(h.want, "k8s:"+c.Tool)
		}
		all = append(all, h)
	}
	return all
}

// cairn runs a command in the folder.
func (s *site) cairn(args ...string) {
	if out, err := exec.Command(s.program, append(args, "-C", s.dir)...).CombinedOutput(); err != nil {
		s.Fatal(string(out))
	}
}

// plans returns the mean node F1 of suggest_dag for intents.
func (s *site) plans(session *client.Session, intents []held) float64 {
	sum := 0.0
	for _, h := range intents {
		text, _ := s.ask(session, "suggest_dag", map[string]any{"intent": h.intent})
		var plan struct{ Tasks []struct{ Tool string } }
		if err := json.Unmarshal([]byte(text), &plan); err != nil {
			s.Fatal(text)
		}
		right := 0
		for _, p := range plan.Tasks {
			if slices.Contains(h.want, p.Tool) {
				right++
			}
		}
		sum += 2 * float64(right) / float64(len(h.want)+len(plan.Tasks))
	}
	return sum / float64(max(1, len(intents)))
}

// measurePlans returns the quality of the plans for held-back intents, for kinds that no
// session had, and for an unrelated catalogue, all with complete vectors.
func (s *site) measurePlans(unrelated []held) (f1 [3]float64) {
	s.cairn("suggest", "--wait", "5m", "save a note")
	session := s.connect()
	defer session.Close()
	for i, intents := range [][]held{heldBack(false), heldBack(true), unrelated} {
		f1[i] = s.plans(session, intents)
	}
	return f1
}

// TestTasksAreWellFormed: every value that a step uses comes from a step before it.
func TestTasksAreWellFormed(t *testing.T) {
	for _, k := range tasks {
		given := map[string]bool{}
		for _, c := range k.steps {
			for _, part := range strings.Split(c.args, "«")[1:] {
				if id, _, _ := strings.Cut(part, "»"); !given[id] {
					t.Errorf("%s: no value %s before %s", k.intents[4], id, c.tool)
				}
			}
			given[c.id] = c.pick != nil
		}
	}
}
