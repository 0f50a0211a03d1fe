package main

// version is the release that this source becomes, MAJOR.MINOR.PATCH after a v. A build says beside it which commit it is of.
var version = "v1.0.0"

// commit is set when the binary is built.
var commit = "unknown"
