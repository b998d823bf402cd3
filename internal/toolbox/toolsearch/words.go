package toolsearch

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/text/query"
)

// joiners lists words that begin a new part after a comma and do not belong to it.
var joiners = []string{"and", "also", "while", "but", "plus", "first", "firstly"}

// orderWords begin a part that runs after the one before it.
var orderWords = []string{"then", "afterwards", "afterward", "finally", "lastly", "next", "subsequently", "thereafter"}

// references lists words for the result of an earlier part.
var references = []string{"it", "its", "them", "their", "that", "this", "these", "those", "result", "results", "output", "same"}

// fillers may come before the verb of a part.
var fillers = []string{"please", "also", "immediately", "additionally", "kindly", "just", "i", "we", "you", "want", "need", "would", "like", "will", "shall",
	"to", "help", "me", "us", "could", "can", "should", "must", "i'd", "i'll", "let", "let's", "lets", "wish", "hope", "you'd", "once", "finally", "then", "and", "afterwards", "subsequently"}

// questions begin a part that is a question.
var questions = []string{"what", "which", "who", "whom", "whose", "where", "when", "why", "how"}

// determiners follow a verb rather than a noun.
var determiners = []string{"a", "an", "the", "my", "your", "our", "his", "her", "its", "their", "it", "them", "this", "that", "these", "those", "all", "any",
	"each", "every", "some", "me", "us", "for", "with", "in", "on", "from", "to", "at", "by", "if", "whether", "how", "what", "which", "who", "as", "into", "about", "new", "one", "two"}

// verbs lists the verbs of requests to tools.
var verbs = strings.Fields(`abort accept activate adapt add adjust admit aggregate allocate allow analyse analyze animate annotate announce append apply approve archive arrange ask assess assign
attach authenticate authorize back ban bin block blow book boot bounce brainstorm brew bring broadcast browse build bump bundle burn buy buzz calculate call cancel
capture carve catch change charge chart check checkout choose chop chuck claim classify clean clear click clone close collect combine commit compare compile complete
compose compress compute condense configure confirm connect consult continue convert cook copy correct count crack crawl create credit crop cut deactivate declare
decode decrypt define delete deliver deploy derive describe destroy detach detect determine diagnose dial diff dig dim disable discard disconnect dispatch display ditch
divide double download draft drag draw drop dump duplicate edit email enable encode encrypt enroll ensure enter enumerate erase escape estimate evaluate examine execute
explain export extend extract feed fetch fill filter finalise finalize find fire fix flag flatten flick flip flush fold follow forbid force forecast fork format forward
freeze gather generate get give glue go grab grade grant grep group halt halve hand help hide hit hold hook hop hunt identify ignore implement import increase index
ingest initialize initiate inquire insert inspect install integrate interrupt invent invite invoke issue join jot keep kick kill knock label launch leave let lift list
load locate lock log login look lookup loosen lower make manage map mark match measure merge message migrate mirror mix modify monitor move multiply mute narrow
navigate note notify nudge nuke obtain open optimize order organize outline overwrite pack park parse paste patch pause pay peek perform pick pin ping place plan play
plot plug point poke pop post pour predict prepare preserve press preview print process produce propose protect provision publish pull purchase purge push put query
quit quote raise rank read rebook reboot rebuild recall receive recommend record recover redeploy redo reduce refresh refund register reject relabel release reload
remember remind remove rename render renew rent renumber reopen repair repeat replace reply report request reschedule research reserve reset resize resolve respond
restart restore resume retire retitle retract retrieve retry return reverse review revoke reword rework rewrite ring roll rotate run save scaffold scale scan schedule
scrap scrape scribble scroll scrub seal search secure see select sell send set settle share shelve shift ship shorten shove show shrink shut sign silence simulate
sketch skim skip slap slice smooth snap solve sort spell spin split spread squash squeeze stack stage stamp star start stash stick stitch stop store stream stretch
strike strip submit subscribe subtract suggest sum summarise summarize swap sweep switch swivel sync synchronize tack tag take tally tap tape teach tear tell terminate
test thaw throw tick tidy tie tip toggle toss trace track train transcribe transfer transform translate trash treat trigger trim try tuck turn tweak tweet type unassign
unblock undo unfollow unfreeze unhook unlink unlock unpack unpin unstar unsubscribe update upgrade upload upsert use vacuum validate verify view visit visualize wait
wake walk warn watch weigh widen wipe wire withdraw work wrap write yank zip zoom`)

var verbForms = makeVerbForms()

// makeVerbForms maps each verb and its form in -ing to the verb.
func makeVerbForms() map[string]string {
	forms := make(map[string]string, 3*len(verbs))
	for _, v := range verbs {
		forms[v] = v
		stem := strings.TrimSuffix(v, "e")
		forms[stem+"ing"] = v
		if n := len(v); n > 2 && strings.IndexByte("bdgmnprt", v[n-1]) >= 0 && strings.IndexByte("aeiou", v[n-2]) >= 0 && strings.IndexByte("aeiou", v[n-3]) < 0 {
			forms[v+v[n-1:]+"ing"] = v // getting
		}
	}
	return forms
}

// opener reports whether a word at the beginning of a sentence is no part of a name.
func opener(word string) bool {
	w := bare(word)
	_, verb := verbForms[w]
	return verb || query.IsStopWord(w) || slices.ContainsFunc([][]string{joiners, orderWords, fillers, questions, determiners, auxiliaries}, func(l []string) bool { return slices.Contains(l, w) })
}

// Actions is a set of the kinds of actions of tools. A word can have several.
type Actions uint16

// The kinds of actions.
const (
	Making   Actions = 1 << iota // makes something new
	Writing                      // writes content
	Booking                      // books something for a time, or buys it
	Changing                     // changes something that exists
	Removing
	Reading // reads or finds
	Sending // sends to people
	Paying
	Entering // logs in to a system
	Computing
	Running
)

var actionWords = makeActionWords(map[Actions]string{
	Making:    "create add put stick jot make new generate compose draft open insert register initiate start launch publish build produce plan arrange set fork clone upload post import install",
	Writing:   "write append record save store note jot type fill",
	Booking:   "book reserve order rent purchase buy reservation schedule appointment place apply request",
	Changing:  "change modify update edit adjust bump hand swap turn tick fix tweak flip move merge rename reschedule rename replace alter amend move shift convert switch upgrade correct revise modification postpone set close reopen mark enable disable activate deactivate toggle star pin follow subscribe label tag assign attach merge approve archive lock resolve restore scale rotate mute pause resume",
	Removing:  "delete remove wipe scrap trash ditch purge kill erase cancel drop clear erase discard cancelling cancellation withdraw terminate revoke uninstall unassign unfollow unlink unpin unset unstar unsubscribe",
	Reading:   "get list search find query check count peek grab navigate look view show inquire enquire see read fetch retrieve lookup browse track know tell confirm verify status display provide describe recommend inquiry info availability count download",
	Running:   "run execute trigger invoke start launch restart rerun perform",
	Sending:   "send notify email mail message ping text post tweet reply tell share forward invite remind notification invitation",
	Paying:    "pay transfer remit repay refund remittance payment repayment recharge deposit",
	Entering:  "login authenticate",
	Computing: "calculate compute convert exchange",
})

func makeActionWords(kinds map[Actions]string) map[string]Actions {
	words := map[string]Actions{}
	for kind, list := range kinds {
		for w := range strings.FieldsSeq(list) {
			words[w] |= kind
			words[strings.TrimSuffix(w, "e")+"ing"] |= kind
		}
	}
	return words
}

// ActionsOf returns the actions of a tool according to its name: those of the first word,
// or else of the last, or else of any other.
func ActionsOf(name string) Actions { return actionsOf(Words(name)) }

func actionsOf(words []string) Actions {
	words = slices.Clone(words)
	if n := len(words); n > 1 {
		words[1], words[n-1] = words[n-1], words[1]
	}
	for _, w := range words {
		if a := actionWords[w]; a != 0 {
			return a
		}
	}
	return 0
}

// RequestedActions returns the actions of a Part.Request: those of its first word, or else of
// its second, after words such as "please".
func RequestedActions(request string) Actions {
	words := fields(request)
	seen := 0
	for i, f := range words {
		w := bare(f.text)
		if seen == 0 && slices.Contains(fillers, w) {
			continue
		}
		next := ""
		if i+1 < len(words) {
			next = bare(words[i+1].text)
		}
		before, _, _ := strings.Cut(w, "'") // what's
		before, _, _ = strings.Cut(before, "’")
		switch a, phrase := actionWords[w], phraseActions[w+" "+next]; {
		case phrase != 0:
			return phrase
		case seen == 0 && (slices.Contains(questions, before) || slices.Contains(auxiliaries, before)):
			return Reading
		case a != 0 || seen == 1:
			return a
		}
		seen++
	}
	return 0
}

// auxiliaries begin a part that is a question, as in "is there a train".
var auxiliaries = []string{"is", "are", "was", "were", "do", "does", "did", "has", "have", "any", "anything"}

// phraseActions holds the actions of verbs of two words.
var phraseActions = map[string]Actions{"tell me": Reading, "show me": Reading, "give me": Reading, "let me": Reading, "remind me": Making, "get rid": Removing, "throw out": Removing,
	"throw away": Removing, "clean up": Removing, "take down": Removing, "take off": Removing, "set up": Making, "spin up": Making, "put up": Making, "put together": Making, "note down": Making | Writing,
	"let everyone": Sending, "look up": Reading, "pull up": Reading, "bring up": Reading, "tick off": Changing, "check off": Changing, "cross off": Changing, "hand over": Changing,
	"turn on": Changing, "turn off": Changing, "put back": Changing, "push back": Changing, "bring back": Changing, "go to": Reading, "call off": Removing}

// abbreviations lists words with a final dot that does not end a sentence.
var abbreviations = map[string]bool{"no.": true, "st.": true, "mr.": true, "mrs.": true, "ms.": true, "dr.": true, "vs.": true, "e.g.": true, "i.e.": true, "etc.": true, "approx.": true}

// Words splits a name at punctuation and changes of case, and returns the words in lower
// case: "list", "user", "ids" for "listUserIDs" and for "list-user_ids".
func Words(name string) []string {
	var list []string
	start := -1 // of a word; -1 between words
	flush := func(end int) {
		if start >= 0 {
			list = append(list, strings.ToLower(name[start:end]))
		}
		start = end
	}
	var last rune
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = -1
		case start < 0:
			start = i
		case unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsDigit(last)):
			flush(i)
		case unicode.IsLower(r) && unicode.IsUpper(last) && i-utf8.RuneLen(last) > start && !pluralEnd(name[i:]):
			flush(i - utf8.RuneLen(last)) // HTTPServer is http server; but userIDs is user ids
		}
		last = r
	}
	flush(len(name))
	return list
}

// pluralEnd reports whether s, which follows an acronym, begins with its plural s.
func pluralEnd(s string) bool {
	next, _ := utf8.DecodeRuneInString(s[1:])
	return s[0] == 's' && !unicode.IsLower(next)
}

// plain removes the search operators from an intent: its quotes contain arguments rather
// than phrases of a description, and a dash does not exclude a word.
func plain(intent string) string {
	var b strings.Builder
	word := false
	for _, r := range intent {
		switch {
		case r == '"' || r == '“' || r == '”':
			r = ' '
		case r == '-' && !word:
			continue
		}
		word = !unicode.IsSpace(r)
		b.WriteRune(r)
	}
	return b.String()
}
