"""The style sheet of the HTML report: light and dark, from a phone's width on."""

from __future__ import annotations

STYLE = """\
:root {
  color-scheme: light dark;
  --back: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --bad: #b3261e; --warn: #8a5a00; --good: #1a6b34; --mark: #2f5fb3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171c; --card: #1d2229; --ink: #e6e9ee; --soft: #a3adb8; --line: #39424d;
    --bad: #ff8a80; --warn: #f0b429; --good: #6fd08c; --mark: #8ab4f8;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--back); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
p { margin: .5rem 0; }
code, .id { font-family: ui-monospace, monospace; font-size: .9em; }
a { color: var(--mark); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 3px solid var(--mark); outline-offset: 2px;
}
nav a { display: inline-block; padding: .25rem .75rem .25rem 0; }
.soft { color: var(--soft); }
.tally {
  display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; list-style: none;
}
.tally li {
  flex: 1 1 8rem; padding: .5rem .75rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem;
}
.tally b { display: block; font-size: 1.5rem; line-height: 1.2; }
details, .lint {
  margin: .75rem 0; background: var(--card); border: 1px solid var(--line);
  border-left: .3rem solid var(--bad); border-radius: .5rem;
}
.lint { border-left-color: var(--warn); padding: .5rem .75rem; }
.known { border-left-color: var(--line); }
summary { padding: .6rem .75rem; cursor: pointer; }
dl {
  display: grid; grid-template-columns: 7rem 1fr; gap: .35rem .75rem; margin: 0;
  padding: .25rem .75rem .75rem;
}
dt { color: var(--soft); }
dd { margin: 0; }
.badge {
  display: inline-block; padding: 0 .45rem; border: 1px solid currentColor; border-radius: 1rem;
  font-size: .8rem; white-space: nowrap;
}
.bad { color: var(--bad); } .warn { color: var(--warn); }
.good { color: var(--good); } .mark { color: var(--mark); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; }
thead th { padding: .25rem .5rem; border-bottom: 2px solid var(--line); }
tbody th {
  width: 6rem; padding: .35rem .5rem; font-weight: 400; color: var(--soft); white-space: nowrap;
  vertical-align: top;
}
td {
  min-width: 9rem; padding: .35rem .5rem; border-left: 2px solid var(--line); vertical-align: top;
}
.event { border-left: .25rem solid var(--line); padding-left: .5rem; }
.event.unguarded { border-color: var(--bad); } .event.write { border-color: var(--mark); }
.event.barrier, .event.guarded, .event.automatic { border-color: var(--good); }
.event.advice { border-left: .25rem dashed var(--good); color: var(--good); }
.event.evidence, .event.lint-event { border-color: var(--warn); }
.event + .event { margin-top: .35rem; }
.event small { display: block; color: var(--soft); }
svg { display: block; width: 100%; max-width: 28rem; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg rect { fill: var(--mark); }
@media (max-width: 45rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  table, tbody, tr, tbody th, td { display: block; width: auto; }
  thead, td:empty { display: none; }
  tr { padding: .35rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { padding: .1rem 0; border: 0; }
  td::before { content: attr(data-service); color: var(--soft); font-size: .85rem; }
}
@media print { body { max-width: none; } }
"""
