package main

type snapshotCmds struct{}
