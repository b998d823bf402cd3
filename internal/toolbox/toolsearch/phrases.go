package toolsearch

import (
	"cmp"
	"slices"
	"strings"
)

// phrasings lists the phrases of everyday requests after the words that names and descriptions
// of tools have for them. A gap stands for at most maxGap words, which stay. A bar after the
// words means that only content follows.
const phrasings = `
delete: get rid of, throw away, throw _ away, throw out, throw _ out, toss, toss out, scrap, ditch, bin, wipe out, nuke, zap, axe, clear out, clean out, take down, strike off, do away with, take _ off
remove: kick out, kick _ out, boot out, boot _ out, cut out, cut _ out, strip, take out, take _ out of
cancel: call off, call _ off, back out of, scratch, pull out of
create: spin up, put together, whip up, set up, set _ up, draw up, come up with, put up, raise a, raise an, file a, file an, log a, open a, open an, open a new, start a, start a new, make a, make me a, make us a
add: put, put _ on, put _ in, stick, stick _ in, stick _ on, pop, pop _ in, chuck, slot in, slot _ in, tack on, throw in, throw _ in
add comment: leave a comment, leave a note, leave a remark, drop a comment
create note: jot down, jot, note down, note _ down, write down, write _ down, scribble, make a note, take a note
create reminder task|: remind me to, remind us to, remind me that, don't let me forget to, don't let me forget
search: look up, look _ up, look for, look around for, hunt for, hunt down, track down, dig up, dig out, dig through, dig for, sift through, scout for, hunt
get: pull up, pull _ up, bring up, bring _ up, look at, look in, look into, look through, take a look at, have a look at, check out, grab, show me, give me, get me, tell me, let me see, let me know, see, peek at, go through, find out, what's, what is, what are, what was, what were
read: look over, go over, leaf through
count: how many
get price: how much does, how much do, how much is, how much are, what does _ cost, what do _ cost
list: which
update: bump, bump up, tweak, touch up, fix up, alter, amend, polish
reschedule: push back, push _ back, put off, put _ off, move forward, bring forward, move _ to
set: turn down, turn up, turn _ down, turn _ up, crank up, dial down, bump _ to
complete: tick off, tick _ off, check off, check _ off, cross off, cross _ off, wrap up, mark _ done, mark _ as done, finish off
start: kick off, kick _ off, fire up, fire _ up, boot up, get _ going, get _ started
stop: shut down, shut _ down, halt, put an end to
restart: bounce, start _ over
enable: turn on, turn _ on, switch on, switch _ on, flip on
disable: turn off, turn _ off, switch off, switch _ off, flip off
toggle: flip, switch to, switch over to
mute: hush, quiet
send message to: tell, ping, drop _ a line, drop _ a message, drop _ a direct message, shoot _ a message, message, let _ know, give _ a heads-up, announce to, inform, text, dm, direct message, pass on to, say to
send email to: email, mail, e-mail, drop _ an email, shoot _ an email
post message: post
post tweet: tweet
assign: hand over, hand _ over, hand, give _ to, pass _ to, put _ in charge of
publish: put _ live, put live, take _ live, push live, push _ live, go live with, make _ public
deploy: roll out, roll _ out, ship
restore: bring back, bring _ back, put back, put _ back, undelete
copy: make a copy of, make my own copy of, make our own copy of
replace: swap, swap out
invite member with access: give _ access to, let _ into, give _ access
rename: call the, call this, change the name of
save: keep, hold on to, stash, stow
purchase: get hold of, pick up
upscale: blow up, blow _ up
join: hop on, hop into
navigate to: go to, head to, head over to
download: pull down, pull in
install: pull in
sign up: enlist
log in: sign in, log on, sign on
translate: put _ into
generate speech: say, read _ out loud, read _ aloud`

// maxGap bounds the words between those of a phrase.
const maxGap = 5

// phrasing is a phrase and the words that replace it.
type phrasing struct {
	words []string
	to    string
}

// phrasingsByVerb holds the phrases by their first word, those of more words first.
var phrasingsByVerb = makePhrasings()

func makePhrasings() map[string][]phrasing {
	m := map[string][]phrasing{}
	for line := range strings.Lines(phrasings) {
		to, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for p := range strings.SplitSeq(list, ", ") {
			if words := strings.Fields(p); len(words) > 0 {
				m[words[0]] = append(m[words[0]], phrasing{words, to})
			}
		}
	}
	for _, list := range m {
		slices.SortStableFunc(list, func(a, b phrasing) int { return cmp.Compare(len(b.words), len(a.words)) })
	}
	return m
}

// match returns the words of a request after the phrase at their start, with those of its
// gap. ok is false if the request does not begin with the phrase.
func (p *phrasing) match(words []string) (rest []string, ok bool) {
	for i, w := range p.words {
		if w == "_" {
			for n := 1; n <= maxGap && n < len(words); n++ {
				after, ok := (&phrasing{words: p.words[i+1:]}).match(words[n:])
				if ok {
					return append(slices.Clone(words[:n]), after...), true
				}
			}
			return nil, false
		}
		if len(words) == 0 {
			return nil, false
		}
		if have := bare(words[0]); have != w && (i > 0 || verbForms[have] != w) {
			return nil, false
		}
		words = words[1:]
	}
	return words, true
}

// rephrase returns the words of a request with those of descriptions in place of its first
// phrase.
func rephrase(words []string) []string {
	first := 0
	for first < len(words)-1 && slices.Contains(fillers, bare(words[first])) {
		first++
	}
	verb := bare(words[first])
	for _, key := range []string{verb, verbForms[verb]} {
		for _, p := range phrasingsByVerb[key] {
			if rest, ok := p.match(words[first:]); ok {
				to, content := strings.CutSuffix(p.to, "|")
				if content {
					rest = nil
				}
				return slices.Concat(strings.Fields(to), rest)
			}
		}
	}
	return words
}
