// Command away measures how long this machine keeps a thread from running that
// does nothing but read the clock: one thread for each processor, for -t. What it
// finds no program on the machine can be better than. It must never do anything
// else meanwhile.
package main
