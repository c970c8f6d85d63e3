//go:build race

package main

// raceDetector holds memory of its own, which it never gives back.
const raceDetector = true
