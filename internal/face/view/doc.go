// Package view is the model of an answer for people: its notes, the words to mark in it, and
// graphs of it. The terminal and the pages lay it out. Programs receive the answer itself.
package view
