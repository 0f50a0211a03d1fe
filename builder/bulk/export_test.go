package bulk

// KeyOf returns the columns that identify a row of a table, and whether the table is listed.
var KeyOf = keyOf
